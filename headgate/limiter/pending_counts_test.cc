#include "headgate/limiter/pending_counts.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace headgate::limiter {
namespace pending_counts_test {

using algorithm::CounterAnswer;
using base::Decimal;

CounterAnswer Value(int64_t value) {
  return {.value = Decimal::Integer(value), .applied = Decimal::Integer(1)};
}

// A store that answers when the test tells it to.
struct Later {
  bool Ask(PendingCounts& counts) {
    return counts.Ask([&](PendingCounts::Done done) { asked.push_back(std::move(done)); });
  }
  std::vector<PendingCounts::Done> asked;
};

TEST(PendingCounts, KeepTheOrderOfTheRequestsWhateverTheOrderOfTheAnswers) {
  int ready = 0;
  PendingCounts counts([&] { ++ready; });
  Later later;
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(later.Ask(counts));
  later.asked[2](Value(2));
  later.asked[0](absl::UnavailableError("gone"));
  EXPECT_TRUE(counts.waiting());
  EXPECT_EQ(ready, 0);
  later.asked[1](Value(1));
  EXPECT_EQ(ready, 1);
  EXPECT_EQ(counts.size(), 3u);
  EXPECT_EQ(counts.TakeNext().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(counts.TakeNext()->value, Decimal::Integer(1));
  EXPECT_EQ(counts.TakeNext()->value, Decimal::Integer(2));
  EXPECT_TRUE(counts.empty());
  EXPECT_FALSE(later.Ask(counts));
  later.asked[3](Value(3));
  EXPECT_EQ(counts.TakeNext()->value, Decimal::Integer(3));
}

TEST(PendingCounts, AnAnswerWithinTheCallWakesNobody) {
  int ready = 0;
  PendingCounts counts([&] { ++ready; });
  EXPECT_TRUE(counts.Ask([](const PendingCounts::Done& done) { done(Value(1)); }));
  counts.Add(Value(2));
  EXPECT_FALSE(counts.waiting());
  EXPECT_EQ(ready, 0);
  EXPECT_EQ(counts.TakeNext()->value, Decimal::Integer(1));
  EXPECT_EQ(counts.TakeNext()->value, Decimal::Integer(2));
}

TEST(PendingCounts, AnAnswerAfterTheEndOfTheConversationIsDropped) {
  int ready = 0;
  Later later;
  {
    PendingCounts counts([&] { ++ready; });
    later.Ask(counts);
  }
  later.asked[0](Value(1));
  EXPECT_EQ(ready, 0);
}

}  // namespace pending_counts_test
}  // namespace headgate::limiter
