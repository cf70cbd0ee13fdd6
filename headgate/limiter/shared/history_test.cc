// A limit was changed and changed back: the messages that tell the store.
#include <gtest/gtest.h>

#include <vector>

#include "headgate/testing/direct_fleet.h"

namespace headgate::limiter::shared {
namespace history_test {

using namespace std::chrono_literals;

class FleetHistory : public ::testing::Test, protected testing::DirectFleet {
 protected:
  FleetHistory() {
    now += 1s;
    changes.push_back({.before = before.get(), .at = now});
    now += 1s;
    changes.push_back({.before = between.get(), .at = now});
  }

  // The history in the next message to be answered.
  void ExpectHistory() {
    ASSERT_GT(shared.waiting(), 0u);
    EXPECT_EQ(shared.oldest().history.size(), changes.size());
    EXPECT_EQ(shared.oldest().now, now);
  }

  store::LimitHandle before = Intern({.requests = 1000, .period = 1h}, 1);
  store::LimitHandle between = Intern({.requests = 100, .period = 1h}, 2);
  store::LimitHandle after = Intern({.requests = 1000, .period = 1h}, 3);
  std::vector<store::LimitChange> changes;
};

TEST_F(FleetHistory, IsPartOfAnAskThatARequestWaitsFor) {
  Ask(1, after, changes);
  Begin(1, after, changes, 1, fleet);
  ASSERT_TRUE(shared.oldest().lease.has_value());
  ExpectHistory();
  shared.AnswerAll();
}

TEST_F(FleetHistory, IsPartOfABackgroundAskAndOutlivesTheRequest) {
  for (int i = 0; i < 3; ++i) Ask(1, after, changes);
  std::vector<store::LimitChange> brief = changes;
  while (shared.waiting() == 0)
    ASSERT_TRUE(Begin(1, after, brief, 1, fleet)) << "decided by the lease";
  brief.clear();
  ASSERT_GT(shared.oldest().lease->want, 0u);
  ExpectHistory();
  EXPECT_EQ(shared.oldest().history[1].before, between.get());
  shared.AnswerAll();
}

TEST_F(FleetHistory, IsPartOfTheReturnOfEarlierLeases) {
  for (int i = 0; i < 3; ++i) Ask(1, before);
  ASSERT_GT(books.totals().held, 0u);
  Begin(1, after, changes, 1, fleet);
  ASSERT_EQ(shared.oldest().lease->want, 0u);
  ExpectHistory();
  shared.AnswerAll();
}

TEST_F(FleetHistory, IsPartOfADebtThatBeganBeforeTheChange) {
  shared.failure = absl::UnavailableError("gone");
  EXPECT_TRUE(Ask(1, before));
  EXPECT_TRUE(Ask(1, after, changes));
  shared.failure = absl::OkStatus();
  now += 600ms;
  fleet.OnTime();
  ExpectHistory();
  EXPECT_EQ(shared.oldest().cost, 2u);
  shared.AnswerAll();
}

TEST_F(FleetHistory, IsPartOfADebt) {
  shared.failure = absl::UnavailableError("gone");
  EXPECT_TRUE(Ask(1, after, changes));
  EXPECT_EQ(settled.mode, Mode::kLocal);
  shared.failure = absl::OkStatus();
  now += 600ms;
  fleet.OnTime();
  ExpectHistory();
  EXPECT_TRUE(shared.oldest().keeps_limit);
  shared.AnswerAll();
}

}  // namespace history_test
}  // namespace headgate::limiter::shared
