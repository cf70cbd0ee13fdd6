#include "tests/linearizability/history_checker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "headgate/algorithm/decide.h"
#include "headgate/algorithm/no_hits.h"

namespace headgate::linearizability {
namespace history_checker_test {

using algorithm::Limit;
using store::Operation::kPeek;
using store::Operation::kRefund;
using namespace std::chrono_literals;
using History = std::vector<Operation>;

constexpr base::Instant kAt = base::Instant::FromNanos(1'790'000'000'000'000'000);
constexpr int64_t kNever = Operation::kNever;

Limit Of(uint64_t requests, algorithm::Algorithm algorithm = algorithm::Algorithm::kTokenBucket) {
  return *Limit::Make(
      {.algorithm = algorithm, .requests = requests, .period = std::chrono::hours(1)});
}
Operation Allowed(int64_t called, int64_t returned, uint64_t remaining) {
  return {.called = called, .returned = returned, .answer = {{true, remaining}}};
}
Operation Denied(int64_t called, int64_t returned, uint64_t remaining = 0) {
  return {.called = called, .returned = returned, .answer = {{false, remaining}}};
}
Operation Lost(int64_t called) { return {.called = called}; }
Operation Refund(int64_t called, int64_t returned, uint64_t remaining) {
  return {
      .operation = kRefund, .called = called, .returned = returned, .answer = {{true, remaining}}};
}
Operation Peek(int64_t called, int64_t returned, uint64_t remaining) {
  return {.cost = 0,
          .operation = kPeek,
          .called = called,
          .returned = returned,
          .answer = {{true, remaining}}};
}

TEST(HistoryChecker, AcceptsOneAfterTheOther) {
  EXPECT_EQ(Check(Of(2), kAt, {}), "");
  EXPECT_EQ(Check(Of(2), kAt, {Allowed(1, 2, 1), Allowed(3, 4, 0), Denied(5, 6)}), "");
}

TEST(HistoryChecker, AcceptsAnyOrderOfThoseThatOverlap) {
  EXPECT_EQ(Check(Of(2), kAt, {Denied(1, 10), Allowed(2, 9, 0), Allowed(3, 8, 1)}), "");
  EXPECT_EQ(Check(Of(1), kAt, {Denied(1, 5), Allowed(5, 6, 0)}), "") << "they touch";
}

TEST(HistoryChecker, RefusesOneTooMany) {
  const std::string why =
      Check(Of(2), kAt, {Allowed(1, 10, 1), Allowed(2, 9, 0), Allowed(3, 8, 0)});
  EXPECT_THAT(why, ::testing::HasSubstr("take 1 in ["));
  EXPECT_NE(Check(Of(1), kAt, {Allowed(1, 10, 0), Allowed(11, 12, 0)}), "");
}

TEST(HistoryChecker, RefusesAnAnswerThatReadAnOldState) {
  // The denial began after the refund was answered.
  EXPECT_NE(Check(Of(1), kAt, {Allowed(1, 2, 0), Refund(3, 4, 1), Denied(5, 6)}), "");
  EXPECT_EQ(Check(Of(1), kAt, {Allowed(1, 2, 0), Refund(3, 5, 1), Denied(4, 6)}), "");
  EXPECT_NE(Check(Of(2), kAt, {Allowed(1, 2, 1), Peek(3, 4, 2)}), "");
  EXPECT_EQ(Check(Of(2), kAt, {Allowed(1, 3, 1), Peek(2, 4, 2)}), "");
}

TEST(HistoryChecker, RefusesADenialBeforeAnythingWasTaken) {
  EXPECT_NE(Check(Of(1), kAt, {Denied(1, 2), Allowed(3, 4, 0)}), "");
}

TEST(HistoryChecker, RefusesTwoThatSawTheSameRest) {
  EXPECT_NE(Check(Of(3), kAt, {Allowed(1, 10, 2), Allowed(2, 9, 2)}), "");
}

TEST(HistoryChecker, ALostAnswerMayHaveBeenDoneAtAnyTimeOrNever) {
  EXPECT_EQ(Check(Of(1), kAt, {Lost(1), Denied(2, 3)}), "") << "done before";
  EXPECT_EQ(Check(Of(1), kAt, {Lost(1), Allowed(2, 3, 0)}), "") << "never, or denied";
  EXPECT_EQ(Check(Of(1), kAt, {Lost(1), Allowed(2, 3, 0), Refund(4, 5, 1), Denied(6, 7)}), "")
      << "done late";
  EXPECT_NE(Check(Of(1), kAt, {Denied(2, 3), Lost(4)}), "") << "not before it was sent";
  EXPECT_NE(Check(Of(1), kAt, {Lost(1), Denied(2, 3), Refund(4, 5, 1), Denied(6, 7)}), "")
      << "only once";
}

TEST(HistoryChecker, KnowsWindowsToo) {
  const Limit window = Of(2, algorithm::Algorithm::kFixedWindow);
  EXPECT_EQ(Check(window, kAt, {Denied(1, 10), Allowed(2, 9, 0), Allowed(3, 8, 1)}), "");
  EXPECT_NE(Check(window, kAt, {Allowed(1, 10, 0), Allowed(2, 9, 0)}), "");
}

// The answers of a bucket that gets the requests in this order.
void Record(const Limit& limit, const std::vector<size_t>& order, History& history) {
  algorithm::BucketState state;
  algorithm::NoHits no_hits;
  for (const size_t i : order) {
    Operation& operation = history[i];
    algorithm::BucketState copy = state;
    algorithm::BucketState& used = operation.operation == kPeek ? copy : state;
    const algorithm::Decision decision =
        operation.operation == kRefund
            ? *algorithm::Refund(limit, used, no_hits, operation.cost, kAt)
            : Decide(limit, used, no_hits, operation.cost, kAt);
    operation.answer = {{decision.allowed, decision.remaining}};
  }
}

// Tries all orders of the requests.
bool IsPossible(const Limit& limit, const History& history) {
  std::vector<size_t> order(history.size());
  std::iota(order.begin(), order.end(), 0u);
  do {
    bool fits = true;
    for (size_t a = 0; a < order.size(); ++a) {
      for (size_t b = a + 1; b < order.size(); ++b)
        fits = fits && history[order[b]].returned >= history[order[a]].called;
    }
    if (!fits) continue;
    History again = history;
    Record(limit, order, again);
    for (size_t i = 0; i < history.size(); ++i)
      fits = fits && (!history[i].answer || history[i].answer == again[i].answer);
    if (fits) return true;
  } while (std::next_permutation(order.begin(), order.end()));
  return false;
}

class Drawn {
 public:
  explicit Drawn(uint64_t seed) : random_(seed) {}
  uint64_t Below(uint64_t end) { return random_() % end; }

  // Requests with random intervals, and the answers of a bucket that gets each of them at a point
  // within.
  History Possible(const Limit& limit, size_t count, int64_t span) {
    History history(count);
    std::vector<std::pair<int64_t, size_t>> points;
    for (size_t i = 0; i < count; ++i) {
      Operation& operation = history[i];
      operation.cost = 1 + Below(2);
      const uint64_t kind = Below(6);
      if (kind == 0) operation.operation = kPeek;
      if (kind == 1) operation.operation = kRefund;
      const auto point = static_cast<int64_t>(Below(count * 10)) + span;
      operation.called = point - static_cast<int64_t>(Below(static_cast<uint64_t>(span)));
      operation.returned = point + static_cast<int64_t>(Below(static_cast<uint64_t>(span)));
      points.emplace_back(point, i);
    }
    std::sort(points.begin(), points.end());
    std::vector<size_t> order;
    for (const auto& [point, i] : points) order.push_back(i);
    Record(limit, order, history);
    for (Operation& operation : history) {
      if (Below(10) != 0) continue;
      operation.answer.reset();
      operation.returned = kNever;
    }
    return history;
  }

 private:
  std::mt19937_64 random_;
};

TEST(HistoryChecker, AcceptsWhateverABucketMayHaveAnswered) {
  Drawn drawn(1);
  for (int i = 0; i < 300; ++i) {
    const Limit limit = Of(1 + drawn.Below(20));
    ASSERT_EQ(Check(limit, kAt, drawn.Possible(limit, 40, 30)), "") << i;
  }
  const Limit limit = Of(100);
  EXPECT_EQ(Check(limit, kAt, drawn.Possible(limit, 2'000, 30)), "");
}

TEST(HistoryChecker, AgreesWithTryingAllOrders) {
  Drawn drawn(2);
  int possible = 0;
  constexpr int kHistories = 2'000;
  for (int i = 0; i < kHistories; ++i) {
    const Limit limit = Of(1 + drawn.Below(4));
    History history = drawn.Possible(limit, 5, 20);
    // A wrong answer, or a wrong time.
    Operation& wrong = history[drawn.Below(history.size())];
    if (drawn.Below(2) == 0 && wrong.answer) {
      wrong.answer->remaining += drawn.Below(2);
      if (drawn.Below(2) == 0) wrong.answer->allowed = !wrong.answer->allowed;
    } else if (wrong.answer) {
      wrong.called += 10;
      wrong.returned += 10;
    }
    const bool expected = IsPossible(limit, history);
    possible += expected;
    ASSERT_EQ(Check(limit, kAt, history).empty(), expected) << i;
  }
  EXPECT_GT(possible, kHistories / 10);
  EXPECT_LT(possible, kHistories * 9 / 10);
}

}  // namespace history_checker_test
}  // namespace headgate::linearizability
