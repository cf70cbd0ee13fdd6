// A lease book of one key that decides as SharedDecider does, and a bucket that runs the arithmetic
// of a store. For tests of the answers that a client of such a node gets. Not thread-safe.
#pragma once

#include <functional>
#include <utility>

#include "headgate/algorithm/lease.h"
#include "headgate/limiter/lease/lease_book.h"

namespace headgate::testing {

// A bucket at the store, with all its leases.
struct LeasedBucket {
  algorithm::BucketState state{};
  algorithm::Leases leases{};

  store::SharedAnswer Ask(const algorithm::Limit& limit, const store::LeaseAsk& ask,
                          base::Instant now) {
    store::SharedAnswer answer;
    answer.decision = algorithm::AskLease(limit, state, leases, ask, now, answer.grant);
    return answer;
  }
};

class LeaseNode {
 public:
  static constexpr base::Hash128 kKey{7, 9};
  // The store's answer; the clock may move meanwhile.
  using Ask = std::function<store::SharedAnswer(const store::LeaseAsk& ask)>;

  LeaseNode(const limiter::lease::LeaseBookOptions& options, Ask ask,
            std::function<base::BootTime()> now)
      : book(options), node_(options.node), ask_(std::move(ask)), now_(std::move(now)) {}

  algorithm::Decision Take(const store::LimitEntry& limit, algorithm::Cost cost = 1) {
    const auto name = [](std::string& out) { out += "k"; };
    limiter::lease::LeaseVerdict verdict = book.Take(kKey, limit, cost, name, now_());
    while (true) {
      const bool awaits = verdict.kind == limiter::lease::LeaseVerdict::Kind::kAwait;
      if (verdict.action != nullptr) {
        const algorithm::Decision decision = Send(*verdict.action);
        if (awaits) return Told(limit, cost, decision);
      } else if (awaits) {
        return {};  // the test holds the answer back
      }
      if (verdict.kind != limiter::lease::LeaseVerdict::Kind::kAskStore) return verdict.decision;
      ++calls;
      const store::SharedAnswer answer = ask_({.id = {.node = node_}, .cost = cost});
      if (book.OnExact(kKey, limit, cost, answer, now_()))
        return Told(limit, cost, answer.decision);
      verdict = book.TakeAgain(kKey, limit, cost, name, now_());
    }
  }

  // Sends the message, and all that its answer causes. Returns the decision about its request.
  algorithm::Decision Send(const limiter::lease::LeaseAction& action) {
    ++calls;
    const uint64_t number = action.ask.id.number;
    const store::SharedAnswer answer = ask_(action.ask);
    if (const limiter::lease::LeaseAction* next = book.OnGrant(kKey, number, answer, now_()))
      Send(*next);
    return answer.decision;
  }
  void OnTime() {
    book.OnTime(now_(), [this](const limiter::lease::LeaseAction& action) { Send(action); });
  }

  limiter::lease::LeaseBook book;
  int64_t calls = 0;

 private:
  algorithm::Decision Told(const store::LimitEntry& limit, algorithm::Cost cost,
                           algorithm::Decision decision) {
    if (decision.allowed) {
      return limiter::lease::LeaseDenials::WithHeld(limit.limit, cost, decision,
                                                    book.Spendable(kKey, limit, now_()));
    }
    decision.retry_after = std::max(decision.retry_after, book.DeniedFor(kKey, limit, now_()));
    return decision;
  }

  const uint64_t node_;
  const Ask ask_;
  const std::function<base::BootTime()> now_;
};

}  // namespace headgate::testing
