// Dialogues between a node's lease book and a store: the test gives the store's answers and
// compares the book's messages as text. The limit is 100 a second with a burst of 100. The ttl is
// 2 s, so four requests within 1 s are worth a lease, and the node may spend a lease for 1.9 s.
// Not thread-safe.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "headgate/limiter/lease_book.h"

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

  limiter::LeaseVerdict Take(algorithm::Cost cost = 1, const base::Hash128& key = kKey) {
    return book.Take(
        key, *limit, cost, [](std::string& name) { name += "k"; }, now());
  }
  std::string Says(algorithm::Cost cost = 1) { return Text(Take(cost)); }

  std::string SaysAgain(algorithm::Cost cost = 1) {
    return Text(book.TakeAgain(kKey, *limit, cost, now()));
  }

  void Exact(algorithm::Cost cost, const algorithm::Decision& decision) {
    book.OnExact(kKey, *limit, cost, decision, now(), now());
  }

  // Nothing, or the action to send at once.
  std::string Answer(uint64_t number, const store::SharedAnswer& answer) {
    const limiter::LeaseAction* action = book.OnGrant(kKey, number, answer, now());
    return action != nullptr ? Text(*action) : "";
  }
  std::string Grant(uint64_t number, uint64_t granted, uint64_t remaining = 0,
                    base::Duration ttl = std::chrono::seconds(2)) {
    store::SharedAnswer answer;
    answer.grant = {.granted = granted, .remaining = remaining, .holders = 1, .ttl = ttl};
    return Answer(number, answer);
  }
  std::string Fail(uint64_t number, const absl::Status& status) {
    store::SharedAnswer answer;
    answer.status = status;
    return Answer(number, answer);
  }
  std::string Refuse(uint64_t number, base::Duration retry_after) {
    store::SharedAnswer answer;
    answer.grant = {.holders = 1, .retry_after = retry_after};
    return Answer(number, answer);
  }

  std::vector<std::string> Time() {
    std::vector<std::string> said;
    book.OnTime(now(), [&](const limiter::LeaseAction& action) { said.push_back(Text(action)); });
    return said;
  }

  // The action that returns one more key when the process ends; or nothing.
  std::string Return() {
    const limiter::LeaseAction* action = book.ReturnNext(now());
    return action != nullptr ? Text(*action) : "";
  }

  // Four requests that the store decides, and a lease of `granted`.
  void Lease(uint64_t granted) {
    for (int i = 0; i < 3; ++i) ASSERT_EQ(Says(), "ask the store");
    ASSERT_THAT(Says(), ::testing::StartsWith("await a lease; ask #1 of k for 4 (at least 1)"));
    ASSERT_EQ(Grant(1, granted), "");
  }

  store::LimitTable limits;
  store::LimitHandle limit = Intern({.requests = 100, .period = std::chrono::seconds(1)});
  limiter::LeaseBook book{{.node = 1, .keys_max = 64, .pause_spread_percent = 0}};
  base::Duration at{0};
};

}  // namespace headgate::testing
