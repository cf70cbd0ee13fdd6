// A request that waits for the next round of a fleet's pool (share/fleet_pool.h), which may bring a
// part for its client. It asks again every kAskAgain; after kPatience it is refused. Once decided,
// this object only forwards the data that it receives.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "headgate/http/exchange.h"
#include "headgate/proxy/admission.h"
#include "headgate/proxy/held_requests.h"
#include "headgate/proxy/rule_gate.h"
#include "headgate/wire/http_fields.h"

namespace headgate::proxy {

class PartWait final : public http::RequestReceiver, private HeldRequests::Entry {
 public:
  static constexpr base::Duration kAskAgain = std::chrono::milliseconds(2);
  static constexpr base::Duration kPatience = std::chrono::milliseconds(250);

  // The way on.
  class Owner {
   public:
    virtual AdmissionVerdict AskAgain(const Arrival& arrival, Asking asking, base::Instant now) = 0;
    // Passes the request on, or refuses it.
    virtual std::unique_ptr<http::RequestReceiver> Proceed(
        Arrival arrival, const AdmissionVerdict& verdict,
        const std::optional<wire::RateLimitState>& rule_limit, http::ServerExchange& exchange,
        base::Instant now) = 0;

   protected:
    ~Owner() = default;
  };

  // The owner, the queue and the exchange must outlive this object. `ticket` is that of the verdict
  // that told the request to wait.
  PartWait(Owner& owner, HeldRequests& held, Arrival arrival,
           const std::optional<wire::RateLimitState>& rule_limit, uint64_t ticket,
           http::ServerExchange& exchange, base::Instant now);

  void OnData(std::string_view bytes, base::Instant now) override;
  void OnEnd(const http::Fields& trailers, base::Instant now) override;
  void OnAbort(base::Instant now) override;
  void OnWritable(base::Instant now) override;
  size_t HeldBytes() const override { return next_ != nullptr ? next_->HeldBytes() : 0; }

 private:
  void OnDue(base::Instant now) override;

  Owner& owner_;
  HeldRequests& held_;
  http::ServerExchange& exchange_;
  Arrival arrival_;
  net::Peer peer_;
  std::optional<wire::RateLimitState> rule_limit_;
  std::string policy_;  // keeps rule_limit_'s name alive if the rules are replaced meanwhile
  uint64_t ticket_;
  const base::Instant arrived_;
  std::unique_ptr<http::RequestReceiver> next_;  // null: it waits, or its client has left

  std::string body_;  // received, and not credited
  bool ended_ = false;
  http::Fields trailers_;
};

}  // namespace headgate::proxy
