// A request that waits for its turn in the queue of a rule, or for the answer of the shared store.
// Once decided, this object only forwards the data that it receives.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "headgate/proxy/rule_gate.h"

namespace headgate::proxy {

class WaitingRequest final : public http::RequestReceiver, private HeldRequests::Entry {
 public:
  // All arguments except the exchange must outlive this object.
  WaitingRequest(RuleGate& gate, Entrance& entrance, http::ServerExchange& exchange)
      : gate_(gate), entrance_(entrance), exchange_(exchange) {}
  ~WaitingRequest() override;

  // Creates the state of a request that waits for the shared store.
  gate::Asked& MakeAsked();
  // The request, before anything of it is received.
  void Keep(Arrival arrival, base::Instant now);
  // Waits for the turn that the verdict states.
  void Hold(const gate::Verdict& verdict, base::Instant now);

  void OnData(std::string_view bytes, base::Instant now) override;
  void OnEnd(const http::Fields& trailers, base::Instant now) override;
  void OnAbort(base::Instant now) override;
  void OnWritable(base::Instant now) override;
  size_t HeldBytes() const override { return next_ != nullptr ? next_->HeldBytes() : 0; }

 private:
  void OnDue(base::Instant now) override;
  void OnQueueEnded(base::Instant now) override;
  void OnAnswer(base::Instant now);
  void Enter(const std::optional<wire::RateLimitState>& limit, base::Instant now);
  // Passes on to `next` the data that was received meanwhile, and everything that follows.
  void Become(std::unique_ptr<http::RequestReceiver> next, base::Instant now);
  void EndHold();
  void Leave(base::Instant now);

  RuleGate& gate_;
  Entrance& entrance_;
  http::ServerExchange& exchange_;
  std::unique_ptr<http::RequestReceiver> next_;  // null: it waits, or its client has left
  bool left_ = false;

  Arrival arrival_;
  net::Peer peer_;
  base::Instant arrived_{0};
  std::optional<gate::Asked> asked_;  // absent: the answer is known
  bool in_queue_ = false;
  std::optional<wire::RateLimitState> limit_;
  std::string policy_;  // of limit_
  base::Instant decided_{0};

  std::string body_;  // received, and not credited
  bool ended_ = false;
  http::Fields trailers_;
};

}  // namespace headgate::proxy
