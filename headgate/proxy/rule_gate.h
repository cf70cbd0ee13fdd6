// Rules in front of the pool: any rule of the rule files can refuse a proxied request, or hold it.
//
//              ┌─ passes ──────────────▶ Entrance: the pool, then an upstream
//   mapping, ──┼─ queue ──▶ held until its turn ──▶ Entrance
//   rules      ├─ shared store ──▶ held until it answers, then as above
//              └─ denied ──▶ the proxy's own answer
//
// Requests are mapped and judged as those of forward-auth (gate/judge.h). A request that does not
// wait costs no allocation here. While a request waits, the beginning of its body is kept. That is
// at most a window, because the client gets no credit to send more. If its client leaves, the
// request ends, but its turn in the queue stays taken, as for forward-auth.
//
// A turn cannot be given back. So a request that may not be held, or not for long, peeks at the
// queue before it takes anything (Judge::Decide).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/gate/judge.h"
#include "headgate/http/exchange.h"
#include "headgate/proxy/admission.h"
#include "headgate/proxy/held_requests.h"
#include "headgate/proxy/own_answer.h"
#include "headgate/proxy/request_end.h"
#include "headgate/proxy/settler.h"
#include "headgate/wire/http_fields.h"

namespace headgate::proxy {

struct Arrival {
  http::RequestHead head{};
  const net::Peer* peer = nullptr;  // valid during the call
  // If the pool was asked before the rules: its verdict, which admits the request.
  std::optional<AdmissionVerdict> admitted{};
  // A rule has refused the request, and it passes only because of passthrough.
  bool let_through = false;
  // The request is a preflight of CORS (wire/preflight.h) that passes without being counted.
  bool is_preflight = false;
  // Told when the request has ended, in whatever way.
  RequestEnd end{};
};

// Takes the requests that the rules let pass.
class Entrance {
 public:
  // `rule_limit` is the tightest limit of the rules, if one applies.
  virtual std::unique_ptr<http::RequestReceiver> Enter(
      Arrival arrival, const std::optional<wire::RateLimitState>& rule_limit,
      http::ServerExchange& exchange, base::Instant now) = 0;
  // The request is not forwarded: a rule has refused it, or its client has left.
  virtual void OnRefused(const Arrival& arrival, base::Instant now) = 0;
  virtual void OnClientLeft(const Arrival& arrival, base::Instant now) = 0;
  // False in passthrough: every request passes at once, whatever the rules say.
  virtual bool refuses() const = 0;
  // The CORS fields of refusals.
  virtual const CorsOptions& cors() const = 0;

 protected:
  ~Entrance() = default;
};

// One per loop; the loop writes, any thread reads.
struct RuleCounters {
  gate::Counters verdicts{};
  base::Counter held_refused{};  // too many others were held
  base::Counter held_left{};     // the client left before the turn of its request
  base::Counter let_through{};   // passed only because of passthrough
};

// The rules of one loop.
class RuleGate {
 public:
  // All arguments must outlive this object. `judge` must judge for its own proxy, and count in
  // `counters`.
  RuleGate(gate::Judge& judge, wire::RateLimitDialect dialect, HeldRequests& held,
           RuleCounters& counters)
      : judge_(judge), dialect_(dialect), held_(held), counters_(counters) {}

  // For costs by size, which are corrected when a request ends, and permits, which are given back
  // then. Without it, the reserve is the cost, and no permit is kept. It must outlive this object.
  void SetSettler(Settler& settler) { settler_ = &settler; }
  // Call it when the loop no longer runs: no request is judged afterwards.
  void LeaveLoop() {
    if (settler_ != nullptr) settler_->Close();
  }

  // The receiver of a new request. `entrance` must outlive it.
  std::unique_ptr<http::RequestReceiver> Receive(Arrival arrival, Entrance& entrance,
                                                 http::ServerExchange& exchange, base::Instant now);

 private:
  friend class WaitingRequest;

  enum class Next : uint8_t { kEnter, kHold, kRefuse };
  struct Refusal {
    int status = 0;
    std::string_view detail{};
    std::string_view hint{};
    bool retry_soon = false;
  };
  static const Refusal kLeaves;

  // How long the request may be held, if it must be.
  gate::WaitBound BoundOf(const Arrival& arrival, const Entrance& entrance,
                          base::Instant now) const;
  mapping::DescribedRequest Describe(const Arrival& arrival);
  // Takes over the permits and the charges by size of the judge's last request, until its end.
  void Follow(Arrival& arrival, base::Instant now);
  // Changes the target so that its path is the one that was matched.
  void UseMatchedPath(std::string& target);
  // The next step of this request, by verdict_. A request that has a turn in a queue is held even
  // if the table of held requests has filled up meanwhile: the turn cannot be given back. Sets
  // refusal_ with kRefuse, and `let_through`.
  Next NextOf(Arrival& arrival, const Entrance& entrance, base::Instant now);
  Next RefuseBecause(const Refusal& refusal);
  // Answers by verdict_ and refusal_.
  std::unique_ptr<http::RequestReceiver> Refuse(const Arrival& arrival, Entrance& entrance,
                                                http::ServerExchange& exchange, base::Instant now);
  // Refuses a request that still waits when the process shuts down.
  std::unique_ptr<http::RequestReceiver> RefuseAtEnd(const Arrival& arrival, Entrance& entrance,
                                                     http::ServerExchange& exchange,
                                                     base::Instant now);

  gate::Judge& judge_;
  const wire::RateLimitDialect dialect_;
  HeldRequests& held_;
  RuleCounters& counters_;
  Settler* settler_ = nullptr;
  gate::Verdict verdict_;
  Refusal refusal_;
  std::vector<mapping::HeaderField> fields_;
  std::string scratch_;
};

}  // namespace headgate::proxy
