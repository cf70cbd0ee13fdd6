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

  struct LeaseAnswer {
    algorithm::Decision decision;
    store::LeaseGrant grant;
  };
  LeaseAnswer Send(store::LeaseAsk ask) {
    ask.ttl = kTtl;
    const store::SharedAnswer answer = Answer({.name = bucket_, .limit = limit_, .lease = ask});
    return {answer.decision, answer.grant};
  }
  // A brief lease of the wanted requests, as far as they are there.
  LeaseAnswer Send(store::LeaseId id, uint64_t want,
                   const std::vector<store::LeaseReport>& reports) {
    return Send({.id = id, .want = want, .brief = want, .reports = reports});
  }
  store::LeaseGrant Ask(store::LeaseId id, uint64_t want,
                        const std::vector<store::LeaseReport>& reports = {}) {
    return Send(id, want, reports).grant;
  }
  // Returns how much is left after the node's reports.
  uint64_t Report(store::LeaseId id, const std::vector<store::LeaseReport>& reports) {
    return Send(id, 0, reports).decision.remaining;
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

TEST_P(LeaseContract, WhileARequestIsWithheldNoLeaseIsGranted) {
  ForEachLimit([&] {
    const auto ask_some = [&](uint64_t number) {
      return Send({.id = {.node = kNode, .number = number}, .want = 100, .brief = 3, .parts = 4})
          .grant.granted;
    };
    EXPECT_EQ(Ask({.node = kNode, .number = 1}, 30).granted, 30u);
    EXPECT_FALSE(Send({.id = {.node = kOther, .number = 1}, .cost = 80}).decision.allowed);
    // Everything has come back, so the bucket is full again.
    EXPECT_EQ(Report({.node = kNode, .number = 2}, {{.number = 1, .returned = true}}), kCapacity);
    EXPECT_EQ(ask_some(3), 0u);
    PassTime(kTtl);
    EXPECT_EQ(ask_some(4), 0u) << "the request may come a little late";
    PassTime(algorithm::kWithheldLonger);
    EXPECT_EQ(ask_some(5), 3u);
  });
}

TEST_P(LeaseContract, WhatIsGrantedIsTakenFromTheBucket) {
  ForEachLimit([&] {
    const LeaseAnswer first = Send({.node = kNode, .number = 1}, 40, {});
    EXPECT_EQ(first.grant.granted, 40u);
    EXPECT_EQ(first.grant.others, 0u);
    EXPECT_EQ(first.decision.remaining, kCapacity - 40);
    EXPECT_GT(first.grant.ttl.count(), 0);
    EXPECT_LE(first.grant.ttl, kTtl);
    EXPECT_EQ(Remaining(), kCapacity - 40);
    const LeaseAnswer second = Send({.node = kOther, .number = 1}, 50, {});
    EXPECT_EQ(second.grant.granted, 50u);
    EXPECT_EQ(second.grant.others, 40u);
    EXPECT_EQ(second.decision.remaining, 10u);
    EXPECT_EQ(Remaining(), 10u);
  });
}

TEST_P(LeaseContract, ALeaseIsSmallOrBrief) {
  ForEachLimit([&] {
    EXPECT_EQ(Send({.id = {.node = kNode, .number = 1}, .want = 50}).grant.granted, 3u)
        << "a part in 32 of 100";
    EXPECT_EQ(Send({.id = {.node = kNode, .number = 2}, .want = 50}).grant.granted, 0u)
        << "as much as the node may hold";
    EXPECT_EQ(Send({.id = {.node = kOther, .number = 1}, .want = 50, .brief = 8}).grant.granted,
              8u);
    EXPECT_EQ(
        Send({.id = {.node = 7, .number = 1}, .want = 50, .brief = 50, .parts = 4}).grant.granted,
        22u)
        << "a quarter of 89";
    EXPECT_EQ(Remaining(), 67u);
  });
}

TEST_P(LeaseContract, TheRequestInTheMessageIsDecidedWithWhatTheNodeReturns) {
  ForEachLimit([&] {
    EXPECT_EQ(Ask({.node = kNode, .number = 1}, 60).granted, 60u);
    EXPECT_TRUE(Do(store::Operation::kTake, 40).allowed);
    const std::vector<store::LeaseReport> returned{{.number = 1, .spent = 10, .returned = true}};
    const LeaseAnswer denied = Send({.id = {.node = kNode, .number = 2},
                                     .cost = 51,
                                     .want = 50,
                                     .brief = 50,
                                     .reports = returned});
    EXPECT_FALSE(denied.decision.allowed);
    EXPECT_EQ(denied.decision.remaining, 50u);
    EXPECT_EQ(denied.grant.granted, 0u);
    EXPECT_EQ(denied.grant.next_after, denied.decision.retry_after);
    EXPECT_GT(denied.grant.next_after.count(), 0);
    const LeaseAnswer allowed =
        Send({.id = {.node = kNode, .number = 3}, .cost = 45, .want = 50, .brief = 50});
    EXPECT_TRUE(allowed.decision.allowed);
    EXPECT_EQ(allowed.grant.granted, 5u) << "the rest";
    EXPECT_EQ(allowed.decision.remaining, 0u);
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
    EXPECT_EQ(Report({.node = kNode, .number = 3}, returned), kCapacity - 15);
    EXPECT_EQ(Report({.node = kNode, .number = 4}, returned), kCapacity - 15) << "twice";
    EXPECT_EQ(Report({.node = kOther, .number = 5}, {{.number = 1, .spent = 0, .returned = true}}),
              kCapacity - 15)
        << "of a lease that another node had";
  });
}

TEST_P(LeaseContract, AReportThatIsOlderThanAnotherChangesNothing) {
  ForEachLimit([&] {
    EXPECT_EQ(Ask({.node = kNode, .number = 1}, 40).granted, 40u);
    Ask({.node = kNode, .number = 2}, 0, {{.number = 1, .spent = 30}});
    const std::vector<store::LeaseReport> late{{.number = 1, .spent = 5, .returned = true}};
    EXPECT_EQ(Report({.node = kNode, .number = 3}, late), kCapacity - 30);
  });
}

TEST_P(LeaseContract, WhatNobodyReturnsIsWithheldUntilItsLeaseHasExpired) {
  ForEachLimit([&] {
    const store::LeaseGrant grant = Ask({.node = kNode, .number = 1}, 40);
    PassTime(grant.ttl - base::Duration(1000));
    EXPECT_LE(Remaining(), kCapacity - 40);
    PassTime(std::chrono::seconds(60));
    EXPECT_EQ(Remaining(), kCapacity);
    EXPECT_EQ(Report({.node = kNode, .number = 2}, {{.number = 1, .spent = 0, .returned = true}}),
              kCapacity)
        << "too late, and nothing comes of it";
  });
}

TEST_P(LeaseContract, AReportAfterTheEndGivesBackWhatIsStillMissing) {
  ForEachLimit([&] {
    const store::LeaseGrant grant = Ask({.node = kNode, .number = 1}, 40);
    EXPECT_EQ(Ask({.node = kOther, .number = 1}, 40).granted, 40u);
    PassTime(grant.ttl);
    EXPECT_EQ(Remaining(), kCapacity - 80);
    const std::vector<store::LeaseReport> returned{{.number = 1, .spent = 10, .returned = true}};
    EXPECT_EQ(Report({.node = kNode, .number = 2}, returned), kCapacity - 50);
    EXPECT_EQ(Report({.node = kNode, .number = 3}, returned), kCapacity - 50) << "twice";
    PassTime(std::chrono::seconds(60));
    EXPECT_TRUE(Do(store::Operation::kTake, 50).allowed);
    EXPECT_EQ(Report({.node = kOther, .number = 2}, returned), kCapacity - 50)
        << "it has come back by itself";
  });
}

TEST_P(LeaseContract, AResetEndsAllLeases) {
  ForEachLimit([&] {
    EXPECT_EQ(Ask({.node = kNode, .number = 1}, 40).granted, 40u);
    Do(store::Operation::kReset, 0);
    EXPECT_EQ(Remaining(), kCapacity);
    EXPECT_EQ(Send({.node = kNode, .number = 2}, 40, {{.number = 1, .spent = 0, .returned = true}})
                  .decision.remaining,
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

// Whatever the nodes ask for, spend, report and withhold, the leased and the remaining requests
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
      std::vector<store::LeaseReport> reports;  // some of them late
      std::erase_if(out, [&](Out& lease) {
        if (lease.id.node != id.node || below(3) != 0) return false;
        lease.reported += below(lease.granted - lease.reported + 1);
        reports.push_back(
            {.number = lease.id.number, .spent = lease.reported, .returned = below(2) == 0});
        return reports.back().returned;
      });
      const store::LeaseGrant grant = Ask(id, below(30), reports);
      if (grant.granted > 0) out.push_back({id, grant.granted, 0, now() + grant.ttl});
      uint64_t owed = 0;
      for (const Out& lease : out) owed += lease.until > now() ? lease.granted - lease.reported : 0;
      ASSERT_LE(owed + Remaining(), kCapacity) << "step " << step;
    }
  });
}

}  // namespace headgate::testing
