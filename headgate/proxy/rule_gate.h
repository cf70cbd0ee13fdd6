// Rules in front of the pool: any rule of the rule files can refuse a proxied request, or hold it.
//
//              ┌─ passes ──────────────▶ Entrance: the pool, then an upstream
//   mapping, ──┼─ queue ──▶ held until its turn ──▶ Entrance
//   rules      ├─ shared store ──▶ held until it answers, then as above
//              └─ denied ──▶ the proxy's own answer
//
// Requests are mapped and judged as those of forward-auth (front/auth/judge.h). A request that need
// not wait costs no allocation here. One that waits keeps the beginning of its body, which is not
// credited, so it is at most a window; and it gives up if its client leaves. Its turn in the queue
// stays taken then, as for forward-auth.
//
// A turn cannot be given back. So a request that may not be held, or not for long, looks at the
// queue before it takes anything (Judge::Decide).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/front/auth/judge.h"
#include "headgate/http/exchange.h"
#include "headgate/proxy/admission.h"
#include "headgate/proxy/held_requests.h"
#include "headgate/proxy/request_end.h"
#include "headgate/proxy/settler.h"
#include "headgate/wire/http_fields.h"

namespace headgate::proxy {

struct Arrival {
  http::RequestHead head{};
  const net::Peer* peer = nullptr;  // valid during the call
  // If the pool was asked before the rules: its verdict, which admits the request.
  std::optional<Verdict> admitted{};
  // A rule has refused it, and it passes only because every request is to pass.
  bool let_through = false;
  // Told when the request has ended, in whatever way.
  RequestEnd end{};
};

// The way on for a request that the rules let pass.
class Entrance {
 public:
  // `rule_limit` is the tightest limit of the rules, if one applies.
  virtual std::unique_ptr<http::RequestReceiver> Enter(
      Arrival arrival, const std::optional<wire::RateLimitState>& rule_limit,
      http::ServerExchange& exchange, base::Instant now) = 0;
  // The request does not go on: a rule has refused it, or its client has left.
  virtual void OnRefused(const Arrival& arrival, base::Instant now) = 0;
  virtual void OnClientLeft(const Arrival& arrival, base::Instant now) = 0;
  // False if every request is to pass at once, whatever the rules say.
  virtual bool refuses() const = 0;

 protected:
  ~Entrance() = default;
};

// One per loop; the loop writes, any thread reads.
struct RuleCounters {
  front::auth::Counters verdicts{};
  base::Counter held_refused{};  // too many others were held
  base::Counter held_left{};     // the client left before the turn of its request
  base::Counter let_through{};   // would have been refused, if requests were refused at all
};

// The rules of one loop.
class RuleGate {
 public:
  // All arguments must outlive this object. `judge` must judge for its own proxy, and count in
  // `counters`.
  RuleGate(front::auth::Judge& judge, wire::RateLimitDialect dialect, HeldRequests& held,
           RuleCounters& counters)
      : judge_(judge), dialect_(dialect), held_(held), counters_(counters) {}

  // For what requests hold until they end: costs by size are corrected then, and permits given
  // back. Without it, the reserve is the cost, and no permit is kept. It must outlive this object.
  void SetSettler(Settler& settler) { settler_ = &settler; }
  // Nothing is asked any more, because the loop does not run any more.
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
  front::auth::WaitBound BoundOf(const Arrival& arrival, const Entrance& entrance,
                                 base::Instant now) const;
  mapping::RequestHead Describe(const Arrival& arrival);
  // Takes over what the judge's last request holds until its end: permits, and charges by size.
  void Follow(Arrival& arrival, base::Instant now);
  // Changes the target so that its path is the one that was matched.
  void UseMatchedPath(std::string& target);
  // The next step of this request, by verdict_. One that has got a turn in a queue is held even if
  // others have filled its place meanwhile: the turn cannot be given back. Sets refusal_ with
  // kRefuse, and `let_through`.
  Next NextOf(Arrival& arrival, const Entrance& entrance, base::Instant now);
  Next RefuseBecause(const Refusal& refusal);
  // Answers by verdict_ and refusal_.
  std::unique_ptr<http::RequestReceiver> Refuse(const Arrival& arrival, Entrance& entrance,
                                                http::ServerExchange& exchange, base::Instant now);
  // Answers a request that has waited in vain, because the process leaves.
  std::unique_ptr<http::RequestReceiver> RefuseAtEnd(const Arrival& arrival, Entrance& entrance,
                                                     http::ServerExchange& exchange,
                                                     base::Instant now);

  front::auth::Judge& judge_;
  const wire::RateLimitDialect dialect_;
  HeldRequests& held_;
  RuleCounters& counters_;
  Settler* settler_ = nullptr;
  front::auth::Verdict verdict_;
  Refusal refusal_;
  std::vector<mapping::HeaderField> fields_;
  std::string scratch_;
};

}  // namespace headgate::proxy
