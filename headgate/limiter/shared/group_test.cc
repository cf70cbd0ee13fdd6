// Tests of the requests that a denied group gives back to shared buckets and leases.
#include <gtest/gtest.h>

#include <array>

#include "headgate/testing/direct_fleet.h"

namespace headgate::limiter::shared {
namespace group_test {

using algorithm::Algorithm;
using algorithm::Align;
using store::Operation;
using namespace std::chrono_literals;

constexpr uint64_t kCommon = 1;  // of all clients
constexpr uint64_t kOwn = 2;     // of the client whose requests are denied

class SharedGroup : public ::testing::Test, protected testing::DirectFleet {
 protected:
  // Begins to ask for both buckets, the common one first.
  void BeginBoth(const store::LimitHandle& common, uint64_t cost, rule::Sharing sharing) {
    std::array<BatchEntry, 2> batch;
    const std::array keys{kCommon, kOwn};
    for (size_t i = 0; i < batch.size(); ++i) {
      batch[i] = {.request = {.key = {keys[i] * 0x9e3779b97f4a7c15, keys[i] * 0xc2b2ae3d27d4eb4f},
                              .limit = (i == 0 ? common : own).get(),
                              .cost = cost},
                  .terms = fleet.default_terms()};
    }
    batch[0].terms.sharing = sharing;
    batch[1].terms.sharing = rule::Sharing::kExact;
    batch[1].request.joined = store::Joined::kOtherRule;
    const auto name = [&](size_t i, std::string& out) { out += std::to_string(keys[i]); };
    group.Forget();
    EXPECT_FALSE(fleet.Decide(batch, name, &group, now));
  }
  bool EndBoth() {
    shared.AnswerAll();
    EXPECT_FALSE(group.waiting());
    return group.settled()[0].decision.allowed && group.settled()[1].decision.allowed;
  }
  // Another request is decided, while the group waits for its second answer.
  bool AskMeanwhile(const store::LimitHandle& common) {
    const bool at_once = Begin(kCommon, common, {}, 1, fleet);
    while (shared.waiting() > 1) shared.AnswerAt(1);
    return (at_once ? settled : pending.settled().front()).decision.allowed;
  }
  // The requests that are left, in the bucket or in leases.
  uint64_t Left(const store::LimitHandle& common) {
    return shared.Remaining(std::to_string(kCommon), common) + books.totals().held;
  }

  const store::LimitHandle own = Intern({.requests = 1, .period = 24h});
  Pending group{[] {}};
};

// The window in which the denied request took has ended before the answer that denies it.
TEST_F(SharedGroup, ADeniedRequestLowersNoLaterWindow) {
  for (const Align align : {Align::kEpoch, Align::kFirstHit}) {
    const store::LimitHandle common = Intern(
        {.algorithm = Algorithm::kFixedWindow, .requests = 10, .period = 20s, .align = align});
    operation = Operation::kReset;
    for (const uint64_t key : {kCommon, kOwn}) Ask(key, key == kOwn ? own : common);
    operation = Operation::kTake;
    ASSERT_TRUE(Ask(kOwn, own));

    BeginBoth(common, 5, rule::Sharing::kExact);
    shared.AnswerOne();
    now += 20s;
    // An honest client takes the whole of the next window.
    EXPECT_FALSE(Begin(kCommon, common, {}, 10, fleet));
    shared.AnswerAt(shared.waiting() - 1);
    EXPECT_TRUE(pending.settled().front().decision.allowed);
    EXPECT_FALSE(EndBoth());
    EXPECT_FALSE(Ask(kCommon, common)) << "ten of ten have passed";
  }
}

TEST_F(SharedGroup, ADeniedRequestTakesNothingFromTheSameWindow) {
  const store::LimitHandle common =
      Intern({.algorithm = Algorithm::kFixedWindow, .requests = 10, .period = 20s});
  ASSERT_TRUE(Ask(kOwn, own));
  BeginBoth(common, 5, rule::Sharing::kExact);
  shared.AnswerOne();
  now += 10s;
  EXPECT_FALSE(EndBoth());
  EXPECT_TRUE(Ask(kCommon, common, {}, 10));
}

// The refill between the take and the denial stays there for everybody.
TEST_F(SharedGroup, ADeniedRequestGivesBackWhatABucketStillLacks) {
  const store::LimitHandle common = Intern({.requests = 10, .period = 10s});
  ASSERT_TRUE(Ask(kOwn, own));
  ASSERT_TRUE(Ask(kCommon, common, {}, 5));
  BeginBoth(common, 4, rule::Sharing::kExact);
  shared.AnswerOne();
  EXPECT_EQ(shared.Remaining("1", common), 1u);
  now += 3s;
  EXPECT_FALSE(EndBoth());
  EXPECT_EQ(shared.Remaining("1", common), 5u) << "1, 3 of time, and 1 that is still missing";
}

const algorithm::LimitSpec kBucket{.requests = 1000, .period = 1h};
const algorithm::LimitSpec kWindow{
    .algorithm = Algorithm::kFixedWindow, .requests = 1000, .period = 1h};

TEST_F(SharedGroup, WhatALeaseGaveGoesBackIntoIt) {
  for (const algorithm::LimitSpec& spec : {kBucket, kWindow}) {
    const store::LimitHandle common = Intern(spec);
    Ask(kOwn, own);
    Ask(kCommon, common);
    now += 10s;  // a bucket is exact for a while after a change of its limit
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(Ask(kCommon, common));
    ASSERT_EQ(settled.mode, Mode::kLeased);
    const uint64_t held = books.totals().held;
    BeginBoth(common, 3, rule::Sharing::kLeased);
    EXPECT_EQ(books.totals().held, held - 3);
    EXPECT_FALSE(EndBoth());
    EXPECT_EQ(books.totals().held, held);
  }
}

// The instance has told the store that it has spent the requests, so the lease is not theirs any
// more.
TEST_F(SharedGroup, WhatALeaseGaveAndHasReportedIsUndoneAtTheStore) {
  for (const algorithm::LimitSpec& spec : {kBucket, kWindow}) {
    const store::LimitHandle common = Intern(spec);
    Ask(kOwn, own);
    Ask(kCommon, common);
    now += 10s;  // a bucket is exact for a while after a change of its limit
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(Ask(kCommon, common));
    const uint64_t left = Left(common);
    BeginBoth(common, 3, rule::Sharing::kLeased);
    const size_t asked = shared.names().size();
    uint64_t others = 0;
    while (shared.names().size() == asked) others += AskMeanwhile(common) ? 1u : 0u;
    EXPECT_FALSE(EndBoth());
    EXPECT_EQ(Left(common), left - others);
  }
}

TEST_F(SharedGroup, NothingGoesIntoALeaseThatWasGrantedLater) {
  const store::LimitHandle common = Intern(kWindow);
  Ask(kOwn, own);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(Ask(kCommon, common));
  BeginBoth(common, 3, rule::Sharing::kLeased);
  now += 1h;
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(AskMeanwhile(common));
  ASSERT_EQ(settled.mode, Mode::kLeased);
  EXPECT_FALSE(EndBoth());
  EXPECT_EQ(Left(common), 980u) << "of 1000 in this window, 20 have passed";
}

}  // namespace group_test
}  // namespace headgate::limiter::shared
