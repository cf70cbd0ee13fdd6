// The promises of leases for all limits, all sequences of events and all orders of messages.
#include <gtest/gtest.h>

#include <deque>

#include <fmt/format.h>

#include "headgate/algorithm/lease.h"
#include "headgate/algorithm/no_hits.h"
#include "headgate/algorithm/properties.h"

namespace headgate::algorithm {
namespace lease_properties_test {

using base::Duration;
using base::Instant;

constexpr uint64_t kRuns = 400;
constexpr int kSteps = 120;
constexpr Duration kTtl = std::chrono::seconds(2);

// One bucket, and nodes that spend what they hold at random times, the last instant of a lease
// included. Messages are lost, repeated and late.
class Fleet {
 public:
  Fleet(const Limit& limit_of_it, uint64_t seed) : limit(limit_of_it), random(seed) {}

  void Step() {
    const uint64_t wait = Between(random, 0, random() % 3 == 0 ? 3'000'000'000 : 1 + PaceOf(limit));
    WaitUntil(now + Duration(static_cast<int64_t>(wait)));
    Spend();
    switch (random() % 8) {
      case 0:
        DecideLeased(limit, state, leases, Between(random, 1, 4), now);  // the answer is lost
        break;
      case 1: {
        const Cost cost = random() % 3 == 0 ? std::max<Cost>(1, Left()) : Between(random, 1, 4);
        if (DecideLeased(limit, state, leases, cost, now).allowed) Admit(cost);
        break;
      }
      case 2:
        if (!messages.empty()) Deliver(messages[random() % messages.size()]);
        break;
      default:
        Ask();
    }
  }

  // The invariant of the file head of lease.h.
  uint64_t Outstanding() const {
    uint64_t sum = 0;
    for (const Lease& lease : leases)
      sum += lease.IsLive(std::max(now, state.seen)) ? lease.outstanding() : 0;
    return sum;
  }
  uint64_t Left() const {
    BucketState copy = state;
    Leases copies = leases;
    return DecideLeased(limit, copy, copies, 0, now).remaining;
  }

  const Limit limit;
  Random random;
  BucketState state{};
  Leases leases{};
  Instant now{1'790'000'000'000'000'000};

  struct Admission {
    Instant at;
    Cost cost;
  };
  std::vector<Admission> admissions;

  struct Message {
    LeaseId id;
    uint64_t want;
    std::vector<LeaseReport> reports;
  };
  std::vector<Message> messages;

  LeaseGrant Deliver(const Message& message) {
    return AskLease(limit, state, leases,
                    {.id = message.id,
                     .want = message.want,
                     .least = 1,
                     .ttl = kTtl,
                     .reports = message.reports},
                    now);
  }

 private:
  struct Held {
    LeaseId id;
    uint64_t granted;
    uint64_t spent = 0;
    Instant until;
    bool returned = false;
  };

  void Admit(Cost cost) { admissions.push_back({now, cost}); }

  // Many nodes spend all that they hold in the last instant.
  void WaitUntil(Instant next) {
    for (; !held.empty() && held.front().until <= next; held.pop_front()) {
      const Held& lease = held.front();
      if (lease.returned || lease.spent == lease.granted || random() % 2 == 0) continue;
      now = std::max(now, lease.until - Duration(1));
      Admit(lease.granted - lease.spent);
    }
    now = next;
  }

  void Spend() {
    for (Held& lease : held) {
      if (lease.returned || random() % 3 != 0) continue;
      const uint64_t cost = Between(random, 0, lease.granted - lease.spent);
      if (cost == 0) continue;
      lease.spent += cost;
      Admit(cost);
    }
  }

  void Ask() {
    Message message{
        .id = {.node = random() % 3, .number = ++number}, .want = random() % 40, .reports = {}};
    for (Held& lease : held) {
      if (lease.id.node != message.id.node || random() % 2 == 0) continue;
      // Once it says so, a node spends no more.
      lease.returned = lease.returned || random() % 3 == 0;
      message.reports.push_back(
          {.number = lease.id.number, .spent = lease.spent, .returned = lease.returned});
    }
    messages.push_back(message);
    if (random() % 5 == 0) return;  // lost, for now
    const LeaseGrant grant = Deliver(message);
    // The node's own deadline is not after the store's. Many grants never arrive.
    if (grant.granted > 0 && random() % 4 != 0) {
      held.push_back({.id = message.id, .granted = grant.granted, .until = now + grant.ttl});
      std::sort(held.begin(), held.end(),
                [](const Held& a, const Held& b) { return a.until < b.until; });
    }
  }

  uint64_t number = 0;
  std::deque<Held> held;
};

class LeaseProperties : public ::testing::TestWithParam<Kind> {
 protected:
  template <typename Body>
  void ForAllFleets(const Body& body) {
    for (uint64_t seed = 1; seed <= kRuns && !HasFailure(); ++seed) {
      Random random(seed);
      const Limit limit = AnyLimit(GetParam(), random);
      SCOPED_TRACE(fmt::format("seed {}: {} per {}ns, burst {}", seed, limit.spec().requests,
                               limit.spec().period.count(), limit.capacity()));
      Fleet fleet(limit, seed);
      body(fleet);
    }
  }
};

// Leased requests count as taken: together with the rest they never exceed the capacity.
TEST_P(LeaseProperties, LeasedAndRemainingRequestsNeverExceedTheCapacity) {
  ForAllFleets([](Fleet& fleet) {
    for (int i = 0; i < kSteps; ++i) {
      fleet.Step();
      ASSERT_LE(fleet.Left() + fleet.Outstanding(), fleet.limit.capacity()) << "step " << i;
    }
  });
}

// All nodes together admit no more than one bucket of this limit would, in any interval.
TEST_P(LeaseProperties, AllNodesTogetherKeepTheBound) {
  uint64_t from_leases = 0;
  ForAllFleets([&](Fleet& fleet) {
    for (int i = 0; i < kSteps; ++i) fleet.Step();
    const std::vector<Fleet::Admission>& all = fleet.admissions;
    from_leases += all.size();
    for (size_t first = 0; first < all.size(); ++first) {
      uint64_t admitted = 0;
      for (size_t last = first; last < all.size(); ++last) {
        admitted += all[last].cost;
        ASSERT_LE(admitted, Bound(fleet.limit, all[last].at - all[first].at));
      }
    }
  });
  EXPECT_GT(from_leases, kRuns);
}

TEST_P(LeaseProperties, AMessageThatComesTwiceChangesNothing) {
  ForAllFleets([](Fleet& fleet) {
    for (int i = 0; i < kSteps; ++i) {
      fleet.Step();
      if (fleet.messages.empty()) continue;
      // Whatever it is, and however late: at the second time all is as it was.
      const Fleet::Message& message = fleet.messages[fleet.random() % fleet.messages.size()];
      const LeaseGrant grant = fleet.Deliver(message);
      const BucketState state = fleet.state;
      const Leases leases = fleet.leases;
      const LeaseGrant again = fleet.Deliver(message);
      ASSERT_EQ(fleet.state, state);
      ASSERT_EQ(fleet.leases, leases);
      ASSERT_EQ(again.granted, grant.granted);
      ASSERT_EQ(again.remaining, grant.remaining);
    }
  });
}

// The order in which reports of one message, or of several, come does not matter.
TEST_P(LeaseProperties, ReportsMayComeInAnyOrder) {
  ForAllFleets([](Fleet& fleet) {
    for (int i = 0; i < kSteps; ++i) fleet.Step();
    const Fleet::Message empty{.id = {.node = 1, .number = ~uint64_t{0}}, .want = 0, .reports = {}};
    fleet.Deliver(empty);  // ends what is over
    std::vector<LeaseReport> reports;
    for (const Lease& lease : fleet.leases) {
      if (lease.id.node != 1) continue;
      for (int n = 0; n < 3; ++n)
        reports.push_back({.number = lease.id.number, .spent = fleet.random() % 10});
    }
    Fleet other = fleet;
    fleet.Deliver({.id = empty.id, .want = 0, .reports = reports});
    std::shuffle(reports.begin(), reports.end(), other.random);
    for (const LeaseReport& report : reports) {
      other.Deliver({.id = empty.id, .want = 0, .reports = {report}});
    }
    ASSERT_EQ(fleet.leases, other.leases);
    ASSERT_EQ(fleet.Left(), other.Left());
  });
}

// Without leases the functions are the kernels'.
TEST_P(LeaseProperties, WithoutLeasesABucketIsDecidedAsEver) {
  for (uint64_t seed = 1; seed <= kRuns && !HasFailure(); ++seed) {
    Random random(seed);
    Bucket bucket = AnyBucket(GetParam(), random);
    BucketState state = bucket.state;
    Leases leases;
    const Cost cost = Between(random, 0, 5);
    ASSERT_EQ(DecideLeased(bucket.limit, state, leases, cost, bucket.now), bucket.Ask(cost));
    ASSERT_EQ(state, bucket.state);
    ASSERT_EQ(RefundLeased(bucket.limit, state, leases, cost, bucket.now),
              *Refund(bucket.limit, bucket.state, bucket.hits, cost, bucket.now));
    ASSERT_EQ(state, bucket.state);
    ASSERT_EQ(KeptUntil(bucket.limit, state, leases, bucket.now),
              FreshAt(bucket.limit, state, NoHits()));
  }
}

// A bucket may be forgotten from then on: one as if never used decides the same.
TEST_P(LeaseProperties, NothingIsLostByForgettingABucketInTime) {
  ForAllFleets([](Fleet& fleet) {
    for (int i = 0; i < kSteps / 4; ++i) fleet.Step();
    const Instant until =
        KeptUntil(fleet.limit, fleet.state, fleet.leases, std::max(fleet.now, fleet.state.seen));
    fleet.now = std::max(fleet.now, until);
    ASSERT_EQ(fleet.Left(), fleet.limit.capacity());
  });
}

INSTANTIATE_TEST_SUITE_P(Of, LeaseProperties, ::testing::ValuesIn(kLeasedKinds),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace lease_properties_test
}  // namespace headgate::algorithm
