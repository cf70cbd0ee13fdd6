// Dialogues between a node's lease book and a store: the test gives the store's answers and
// compares the book's messages as text. The limit is 100 a second with a burst of 1000, so it is
// not exact. The ttl is 2 s, and the node may spend a lease for 1.9 s. An overloaded key
// pauses for 20 ms.
// Not thread-safe.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "headgate/limiter/lease/ask_budget.h"
#include "headgate/limiter/lease/lease_book.h"

namespace headgate::testing {

class LeaseDialogue : public ::testing::Test {
 protected:
  static constexpr base::Hash128 kKey{7, 9};

  store::LimitHandle Intern(const algorithm::LimitSpec& spec) {
    return *limits.Intern(*algorithm::Limit::Make(spec));
  }

  static std::string Text(const auto& value) {
    std::ostringstream out;
    out << value;
    return out.str();
  }

  base::BootTime now() const { return base::BootTime{0} + std::chrono::seconds(10) + at; }

  limiter::lease::LeaseVerdict Take(algorithm::Cost cost = 1, const base::Hash128& key = kKey) {
    return book.Take(
        key, *limit, cost, [](std::string& name) { name += "k"; }, now());
  }
  std::string Says(algorithm::Cost cost = 1) { return Text(Take(cost)); }

  limiter::lease::LeaseVerdict TakeAgain(algorithm::Cost cost = 1) {
    return book.TakeAgain(
        kKey, *limit, cost, [](std::string& name) { name += "k"; }, now());
  }
  std::string SaysAgain(algorithm::Cost cost = 1) { return Text(TakeAgain(cost)); }

  // The store's answer to a request: allowed, with this much left.
  static store::SharedAnswer Allowed(uint64_t remaining) {
    store::SharedAnswer answer;
    answer.decision = {.allowed = true, .limit = 1000, .remaining = remaining, .reset_after = kOne};
    return answer;
  }
  // Denied; a request of this cost can pass after `next_after`.
  static store::SharedAnswer Denied(base::Duration next_after, uint64_t remaining = 0,
                                    uint64_t others = 0) {
    store::SharedAnswer answer;
    answer.decision = {.allowed = false,
                       .limit = 1000,
                       .remaining = remaining,
                       .retry_after = next_after,
                       .reset_after = kOne};
    answer.grant = {.others = others, .next_after = next_after};
    return answer;
  }

  // The answer to a request that was sent alone. Returns false if the book can pay for it.
  bool Exact(algorithm::Cost cost, const store::SharedAnswer& answer) {
    return book.OnExact(kKey, *limit, cost, answer, now());
  }

  // Returns nothing, or the action that has to be sent at once.
  std::string Answer(uint64_t number, const store::SharedAnswer& answer) {
    const limiter::lease::LeaseAction* action = book.OnGrant(kKey, number, answer, now());
    return action != nullptr ? Text(*action) : "";
  }
  std::string Grant(uint64_t number, uint64_t granted, uint64_t remaining = 500,
                    base::Duration ttl = std::chrono::seconds(2)) {
    store::SharedAnswer answer = Allowed(remaining);
    answer.grant = {.granted = granted, .ttl = ttl};
    return Answer(number, answer);
  }
  std::string Fail(uint64_t number, const absl::Status& status) {
    store::SharedAnswer answer;
    answer.status = status;
    return Answer(number, answer);
  }

  std::vector<std::string> Time() {
    std::vector<std::string> said;
    book.OnTime(now(),
                [&](const limiter::lease::LeaseAction& action) { said.push_back(Text(action)); });
    return said;
  }

  // The requests that may be spent.
  uint64_t Held() const { return book.Held(kKey)->left(); }

  // Returns the next key as at the end of the process. The result is the action, or empty if no key
  // is left.
  std::string Return() {
    const limiter::lease::LeaseAction* action = book.ReturnNext(now());
    return action != nullptr ? Text(*action) : "";
  }

  // Makes two requests. The first one is sent alone, and leaves 999. For the second one the store
  // decides and grants a lease of `granted`, which leaves `remaining`.
  void Lease(uint64_t granted, uint64_t remaining = 500) {
    ASSERT_EQ(Says(), "ask the store");
    ASSERT_TRUE(Exact(1, Allowed(999)));
    ASSERT_EQ(Says(), "await the answer; ask #1 of k, taking 1, for 40 or 2 of a part of 2");
    ASSERT_EQ(Grant(1, granted, remaining), "");
  }
  // Eight requests use up the budget of calls, and one more overspends it. The store gives each of
  // them this answer.
  void Overspend(const store::SharedAnswer& answer, algorithm::Cost cost = 1) {
    for (int i = 0; i <= limiter::lease::AskBudget::kAtOnce; ++i) {
      const limiter::lease::LeaseVerdict verdict = Take(cost);
      if (verdict.kind == limiter::lease::LeaseVerdict::Kind::kAskStore) {
        ASSERT_TRUE(Exact(cost, answer));
      } else {
        ASSERT_NE(verdict.action, nullptr) << verdict;
        ASSERT_EQ(Answer(verdict.action->ask.id.number, answer), "");
      }
    }
  }

  static constexpr base::Duration kOne = std::chrono::seconds(1);

  store::LimitTable limits;
  store::LimitHandle limit = Intern({.requests = 1000, .period = std::chrono::seconds(10)});
  limiter::lease::LeaseBook book{{.node = 1, .keys_max = 64}};
  base::Duration at{0};
};

}  // namespace headgate::testing
