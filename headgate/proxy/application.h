// The sidecar's application: finds the client of each request, asks whether the request passes, and
// forwards it to an upstream or refuses it with 429.
//
// With rules (rule_gate.h), a request has to pass them and the pool. A refusal by one should take
// nothing from the other, so the one that looks exhausted is asked first:
//
//   the pool shows room ───▶ rules ──▶ the pool ──▶ upstream
//   it shows none ───▶ the pool, which may find a way ──▶ rules ──▶ upstream
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <absl/container/flat_hash_map.h>

#include "headgate/base/clock.h"
#include "headgate/base/random_secret.h"
#include "headgate/http/exchange.h"
#include "headgate/proxy/admission.h"
#include "headgate/proxy/forwarded_fields.h"
#include "headgate/proxy/part_wait.h"
#include "headgate/proxy/relay.h"
#include "headgate/proxy/rule_gate.h"
#include "headgate/wire/http_fields.h"

namespace headgate::proxy {

struct ApplicationOptions {
  // The field that names the client. Empty: the peer's address is the client.
  std::string client_field = "X-Client-Id";
  // For requests of HTTP/1.0 that name no host (RFC 9112, 3.3).
  std::string default_authority{};
  ForwardedOptions forwarded{};
  // The fields that describe the client's share, the name of the policy in them, and its cycle.
  wire::RateLimitDialect dialect = wire::RateLimitDialect::kDraft;
  std::string policy = "fair-share";
  base::Duration cycle{0};
  // The body of refusals by the pool; null: a problem document.
  std::shared_ptr<const rule::Refusal> refusal{};
  // Whether answers to admitted requests have these fields too, or those of a rule that leaves the
  // client fewer requests.
  bool describes_admitted = true;
  // Whether preflights of CORS pass without being counted. They cannot name their client.
  bool passes_preflights = true;
  // The most uncounted preflights in flight, divided among addresses (dynamic_threshold.h). Beyond
  // it, preflights are counted like other requests, so that a flood of them leaves connections to
  // other requests.
  size_t preflights_max = 64;
  // For Date, and dialects that state a time of day; null: the time of decisions.
  const base::Clock* clock = nullptr;
};

// A request that has passed this many proxies of this name is refused as a loop.
inline constexpr size_t kViaMax = 8;

// One per loop; the loop writes, any thread reads.
struct ApplicationCounters {
  base::Counter admitted{};
  base::Counter refused{};
  base::Counter loops{};            // refused as loops; not in `refused`
  base::Counter not_forwarded{};    // answered here because of their Max-Forwards
  base::Counter preflights{};       // passed on without being counted; not in `admitted`
  base::Counter preflights_over{};  // beyond preflights_max, or the part of their address
};

// The preflights in flight that are not counted, and how many of them each address has sent.
struct PreflightsInFlight {
  size_t all = 0;
  // By HashOf the address. Addresses without a preflight in flight are removed.
  absl::flat_hash_map<uint64_t, size_t> by_address{};
};

// One per loop.
class Application final : public http::Application, private Entrance, private PartWait::Owner {
 public:
  // Everything must outlive this object.
  Application(const ApplicationOptions& options, const RelayContext& relays,
              ApplicationCounters& counters)
      : options_(options), relays_(relays), counters_(counters) {}

  // Applies rules too, from the next request on. `rules` must outlive this object.
  void SetRules(RuleGate& rules) { rules_ = &rules; }
  // Requests can wait in this queue for the pool. It must outlive this object.
  void SetHeld(HeldRequests& held) { held_ = &held; }

  std::unique_ptr<http::RequestReceiver> OnRequest(http::RequestHead&& head, const net::Peer& peer,
                                                   http::ServerExchange& exchange,
                                                   base::Instant now) override;

 private:
  // Takes from the pool, unless that is done already, and forwards the request or refuses it.
  std::unique_ptr<http::RequestReceiver> Enter(
      Arrival arrival, const std::optional<wire::RateLimitState>& rule_limit,
      http::ServerExchange& exchange, base::Instant now) override;
  AdmissionVerdict AskAgain(const Arrival& arrival, Asking asking, base::Instant now) override;
  std::unique_ptr<http::RequestReceiver> Proceed(
      Arrival arrival, const AdmissionVerdict& verdict,
      const std::optional<wire::RateLimitState>& rule_limit, http::ServerExchange& exchange,
      base::Instant now) override;
  void OnRefused(const Arrival& arrival, base::Instant now) override;
  void OnClientLeft(const Arrival& arrival, base::Instant now) override { GiveBack(arrival, now); }
  bool refuses() const override { return relays_.admission.refuses(); }
  const CorsOptions& cors() const override { return relays_.options.cors; }

  // Answers a request that may not be passed on.
  std::unique_ptr<http::RequestReceiver> AnswerAsLast(const http::RequestHead& head,
                                                      http::ServerExchange& exchange,
                                                      base::Instant now);
  // Returns the request's unit to the pool, if the pool was asked before the rules.
  void GiveBack(const Arrival& arrival, base::Instant now);
  // Whether this is a preflight of an unnamed client. With a named client it can be counted.
  bool IsPreflight(const http::RequestHead& head) const;
  // Whether this preflight of a peer passes without being counted. Then it is in flight until
  // `end`.
  bool BeginPreflight(const net::Peer& peer, RequestEnd& end, base::Instant now);
  std::string_view ClientOf(const http::RequestHead& head, const net::Peer& peer);
  std::string_view AddressOf(const net::Peer& peer);
  uint64_t HashOf(std::string_view client) const {
    return base::HashBytes(secret_, base::KeyKind::kRaw, client).low;
  }
  // The client's key for dividing the connections. Absent in passthrough.
  std::optional<uint64_t> KeyOf(std::string_view client) const;
  http::Fields Describe(const AdmissionVerdict& verdict,
                        const std::optional<wire::RateLimitState>& rule_limit, base::Instant now);
  std::unique_ptr<http::RequestReceiver> Refuse(const http::RequestHead& head,
                                                const AdmissionVerdict& verdict,
                                                http::ServerExchange& exchange, base::Instant now);

  const ApplicationOptions& options_;
  const RelayContext& relays_;
  ApplicationCounters& counters_;
  const base::HashSecret secret_ = base::RandomHashSecret();  // for HashOf
  RuleGate* rules_ = nullptr;                                 // null: there are none
  HeldRequests* held_ = nullptr;                              // null: no request can wait
  PreflightsInFlight preflights_;
  std::string address_;
  std::string client_;  // the id of the present client, if it is not a part of the request
  std::string scratch_;
};

}  // namespace headgate::proxy
