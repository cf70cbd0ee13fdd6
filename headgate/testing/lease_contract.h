// The promises that every shared store makes about leases, as a GoogleTest suite. A store's own
// test runs it together with store_contract.h, which covers the promises about decisions:
//
//   #include "headgate/testing/lease_contract.h"
//   INSTANTIATE_TEST_SUITE_P(Redis, LeaseContract, ::testing::Values(SharedStoreUnderTest{…}));
//
// docs/internals/leases.md gives the rules behind it and why they hold. Steps are drawn from a
// fixed seed. Include this file in one source file of a test.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "headgate/store/shared_store.h"
#include "headgate/testing/shared_store_rig.h"

namespace headgate::testing {

struct SharedStoreUnderTest {
  std::string name;
  std::function<std::unique_ptr<SharedStoreRig>()> make;
  // The number of steps of a random walk.
  int steps = 400;

  friend std::ostream& operator<<(std::ostream& out, const SharedStoreUnderTest& store) {
    return out << store.name;
  }
};

class LeaseContract : public ::testing::TestWithParam<SharedStoreUnderTest> {
 protected:
  static constexpr base::Duration kTtl = std::chrono::seconds(2);
  static constexpr uint64_t kCapacity = 100;
  // Nodes of two instances.
  static constexpr uint64_t kNode = 0x10000;
  static constexpr uint64_t kOther = 0x20000;

  LeaseContract() : rig_(GetParam().make()) { rig_->SetNow(now_); }

  // All kinds of limits that can be leased, each with a capacity of 100.
  static std::vector<algorithm::LimitSpec> Limits() {
    using algorithm::Algorithm;
    using std::chrono::seconds;
    return {
        {.algorithm = Algorithm::kTokenBucket, .requests = 100, .period = seconds(10)},
        {.algorithm = Algorithm::kTokenBucket,
         .requests = 7,
         .period = seconds(1),
         .burst = kCapacity},
        {.algorithm = Algorithm::kLeakyBucket, .requests = 100, .period = seconds(10)},
        {.algorithm = Algorithm::kFixedWindow, .requests = 100, .period = seconds(10)},
        {.algorithm = Algorithm::kFixedWindow,
         .requests = 100,
         .period = seconds(10),
         .align = algorithm::Align::kFirstHit},
        {.algorithm = Algorithm::kSlidingWindowCounter, .requests = 100, .period = seconds(10)}};
  }

  // Runs the test with a new bucket under each limit, at the beginning of a window.
  template <typename Test>
  void ForEachLimit(const Test& test) {
    for (const algorithm::LimitSpec& spec : Limits()) {
      SCOPED_TRACE(::testing::Message()
                   << algorithm::Name(spec.algorithm) << " of " << spec.requests);
      bucket_ = "hg:{lease contract " + std::to_string(++buckets_) + "}";
      Use(spec);
      test();
      PassTime(std::chrono::seconds(20) - base::Duration((now_ - kStart).count() % 10'000'000'000));
    }
  }

  void Use(const algorithm::LimitSpec& spec) {
    limit_ = *rig_->store().limits().Intern(*algorithm::Limit::Make(spec));
  }
  const algorithm::LimitSpec& limit() const { return limit_->limit.spec(); }
  void PassTime(base::Duration time) { rig_->SetNow(now_ += time); }
  base::Instant now() const { return now_; }

  store::LeaseGrant Ask(store::LeaseId id, uint64_t want,
                        std::vector<store::LeaseReport> reports = {}, uint64_t least = 1) {
    const store::LeaseAsk ask{
        .id = id, .want = want, .least = least, .ttl = kTtl, .reports = reports};
    return Answer({.name = bucket_, .limit = limit_, .lease = ask}).grant;
  }
  algorithm::Decision Do(store::Operation operation, algorithm::Cost cost) {
    return Answer({.name = bucket_, .limit = limit_, .cost = cost, .operation = operation})
        .decision;
  }
  uint64_t Remaining() { return Do(store::Operation::kPeek, 0).remaining; }

 private:
  static constexpr base::Instant kStart = base::Instant::FromNanos(1'790'000'000'000'000'000);

  store::SharedAnswer Answer(store::SharedRequest request) {
    request.leased = true;
    request.timeout = std::chrono::seconds(5);
    std::optional<store::SharedAnswer> answer;
    rig_->store().Ask(request, [&](const store::SharedAnswer& given) { answer = given; });
    EXPECT_TRUE(rig_->Wait([&] { return answer.has_value(); }));
    if (!answer) return {};
    EXPECT_TRUE(answer->status.ok()) << answer->status;
    return *answer;
  }

  std::unique_ptr<SharedStoreRig> rig_;
  base::Instant now_ = kStart;
  std::string bucket_;
  int buckets_ = 0;
  store::LimitHandle limit_;
};

TEST_P(LeaseContract, WhatIsGrantedIsTakenFromTheBucketAndSomethingIsLeft) {
  ForEachLimit([&] {
    const store::LeaseGrant grant = Ask({.node = kNode, .number = 1}, 40);
    EXPECT_EQ(grant.granted, 40u);
    EXPECT_EQ(grant.remaining, kCapacity - 40);
    EXPECT_EQ(grant.holders, 1u);
    EXPECT_GT(grant.ttl.count(), 0);
    EXPECT_LE(grant.ttl, kTtl);
    EXPECT_EQ(Remaining(), kCapacity - 40);
    const store::LeaseGrant greedy = Ask({.node = kOther, .number = 1}, 1000);
    EXPECT_GT(greedy.granted, 0u);
    EXPECT_EQ(greedy.holders, 2u);
    EXPECT_GT(greedy.remaining, 0u) << "others find something";
    EXPECT_EQ(Remaining(), kCapacity - 40 - greedy.granted);
  });
}

TEST_P(LeaseContract, LessThanIsWorthTheWhileIsNotGranted) {
  ForEachLimit([&] {
    EXPECT_TRUE(Do(store::Operation::kTake, 95).allowed);
    const store::LeaseGrant none = Ask({.node = kNode, .number = 1}, 50, {}, 10);
    EXPECT_EQ(none.granted, 0u);
    EXPECT_GT(none.retry_after.count(), 0);
    EXPECT_EQ(Remaining(), 5u);
    EXPECT_EQ(Ask({.node = kNode, .number = 2}, 50, {}, 5).granted, 5u);
    EXPECT_EQ(Ask({.node = kNode, .number = 3}, 50).granted, 0u);
  });
}

TEST_P(LeaseContract, AnAskThatComesTwiceIsGrantedOnce) {
  ForEachLimit([&] {
    const store::LeaseGrant first = Ask({.node = kNode, .number = 1}, 40);
    PassTime(std::chrono::milliseconds(500));
    const uint64_t left = Remaining();
    const store::LeaseGrant again = Ask({.node = kNode, .number = 1}, 40);
    EXPECT_EQ(again.granted, first.granted);
    EXPECT_EQ(again.ttl, first.ttl - std::chrono::milliseconds(500));
    EXPECT_EQ(Remaining(), left);
  });
}

TEST_P(LeaseContract, WhatIsReturnedComesBackOnce) {
  ForEachLimit([&] {
    EXPECT_EQ(Ask({.node = kNode, .number = 1}, 40).granted, 40u);
    EXPECT_EQ(Ask({.node = kNode, .number = 2}, 0, {{.number = 1, .spent = 10}}).granted, 0u);
    EXPECT_EQ(Remaining(), kCapacity - 40) << "a report alone brings nothing back";
    const std::vector<store::LeaseReport> returned{{.number = 1, .spent = 15, .returned = true}};
    EXPECT_EQ(Ask({.node = kNode, .number = 3}, 0, returned).remaining, kCapacity - 15);
    EXPECT_EQ(Ask({.node = kNode, .number = 4}, 0, returned).remaining, kCapacity - 15) << "twice";
    EXPECT_EQ(Ask({.node = kOther, .number = 5}, 0, {{.number = 1, .spent = 0, .returned = true}})
                  .remaining,
              kCapacity - 15)
        << "of a lease that another node had";
  });
}

TEST_P(LeaseContract, AReportThatIsOlderThanAnotherChangesNothing) {
  ForEachLimit([&] {
    EXPECT_EQ(Ask({.node = kNode, .number = 1}, 40).granted, 40u);
    Ask({.node = kNode, .number = 2}, 0, {{.number = 1, .spent = 30}});
    const std::vector<store::LeaseReport> late{{.number = 1, .spent = 5, .returned = true}};
    EXPECT_EQ(Ask({.node = kNode, .number = 3}, 0, late).remaining, kCapacity - 30);
  });
}

TEST_P(LeaseContract, WhatNobodyReturnsIsWithheldUntilItsLeaseHasExpired) {
  ForEachLimit([&] {
    const store::LeaseGrant grant = Ask({.node = kNode, .number = 1}, 40);
    PassTime(grant.ttl - base::Duration(1000));
    EXPECT_LE(Remaining(), kCapacity - 40);
    PassTime(std::chrono::seconds(60));
    EXPECT_EQ(Remaining(), kCapacity);
    EXPECT_EQ(Ask({.node = kNode, .number = 2}, 0, {{.number = 1, .spent = 0, .returned = true}})
                  .remaining,
              kCapacity)
        << "too late, and nothing comes of it";
  });
}

TEST_P(LeaseContract, AResetEndsAllLeases) {
  ForEachLimit([&] {
    EXPECT_EQ(Ask({.node = kNode, .number = 1}, 40).granted, 40u);
    Do(store::Operation::kReset, 0);
    EXPECT_EQ(Remaining(), kCapacity);
    EXPECT_EQ(Ask({.node = kNode, .number = 2}, 40, {{.number = 1, .spent = 0, .returned = true}})
                  .remaining,
              kCapacity - 40);
  });
}

TEST_P(LeaseContract, WhatIsOutIsOutUnderAnotherLimitToo) {
  ForEachLimit([&] {
    EXPECT_EQ(Ask({.node = kNode, .number = 1}, 40).granted, 40u);
    algorithm::LimitSpec smaller = limit();
    (smaller.burst ? *smaller.burst : smaller.requests) = 60;
    Use(smaller);
    EXPECT_EQ(Remaining(), 20u);
    EXPECT_TRUE(Do(store::Operation::kTake, 1).allowed);
    EXPECT_EQ(Remaining(), 19u);
  });
}

// Whatever nodes ask for, spend, report and withhold: the leased and the remaining requests
// together never exceed one bucket.
TEST_P(LeaseContract, WhatIsOutAndWhatIsLeftAreNeverMoreThanTheCapacity) {
  struct Out {
    store::LeaseId id;
    uint64_t granted;
    uint64_t reported;
    base::Instant until;
  };
  std::mt19937_64 random(1);
  const auto below = [&](uint64_t end) { return random() % end; };
  ForEachLimit([&] {
    std::vector<Out> out;
    for (int step = 0; step < GetParam().steps; ++step) {
      if (below(3) == 0)
        PassTime(std::chrono::microseconds(below(below(10) == 0 ? 3'000'000 : 100'000)));
      if (below(4) == 0) Do(store::Operation::kTake, 1 + below(10));
      const store::LeaseId id{.node = below(2) == 0 ? kNode : kOther,
                              .number = static_cast<uint64_t>(step) + 1};
      std::vector<store::LeaseReport> reports;
      std::erase_if(out, [&](Out& lease) {
        if (lease.until <= now()) return true;
        if (lease.id.node != id.node || below(3) != 0) return false;
        lease.reported += below(lease.granted - lease.reported + 1);
        reports.push_back(
            {.number = lease.id.number, .spent = lease.reported, .returned = below(2) == 0});
        return reports.back().returned;
      });
      const store::LeaseGrant grant = Ask(id, below(30), reports);
      if (grant.granted > 0) out.push_back({id, grant.granted, 0, now() + grant.ttl});
      uint64_t owed = 0;
      for (const Out& lease : out) owed += lease.granted - lease.reported;
      ASSERT_LE(owed + Remaining(), kCapacity) << "step " << step;
    }
  });
}

}  // namespace headgate::testing
