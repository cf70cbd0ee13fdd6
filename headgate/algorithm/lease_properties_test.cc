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
// included. Messages are lost, repeated and late; some speak of leases only when these are over.
class Fleet {
 public:
  // In some fleets nothing is lost, so that hardly anything counts as taken that was not admitted.
  Fleet(const Limit& limit_of_it, uint64_t seed)
      : limit(limit_of_it), random(seed), loses(seed % 4 != 0) {}

  void Step() {
    const uint64_t wait = Between(random, 0, random() % 3 == 0 ? 3'000'000'000 : 1 + PaceOf(limit));
    WaitUntil(now + Duration(static_cast<int64_t>(wait)));
    Spend();
    switch (random() % 8) {
      case 0:
        if (!loses) break;
        DecideLeased(limit, state, leases, Between(random, 1, 4), now);  // the answer is lost
        break;
      case 1: {
        const Cost cost = random() % 2 == 0 ? std::max<Cost>(1, Left()) : Between(random, 1, 4);
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
  bool loses;
  BucketState state{};
  Leases leases{};
  Instant now{1'790'000'000'000'000'000};

  struct Admission {
    Instant at;
    Cost cost;
  };
  std::vector<Admission> admissions;

  struct Message {
    LeaseAsk ask;  // without its reports
    std::vector<LeaseReport> reports;
  };
  std::vector<Message> messages;
  uint64_t late_reports = 0;  // final reports of leases that had ended
  Decision decision{};        // of the last message

  LeaseGrant Deliver(const Message& message) {
    ExpireLeases(limit, state, leases, now);
    for (const LeaseReport& report : message.reports) {
      const LeaseId id{.node = message.ask.id.node, .number = report.number};
      for (const Lease& lease : leases)
        if (lease.id == id && lease.has_ended() && report.returned) ++late_reports;
    }
    LeaseAsk ask = message.ask;
    ask.ttl = kTtl;
    ask.reports = message.reports;
    LeaseGrant grant;
    decision = AskLease(limit, state, leases, ask, now, grant);
    return grant;
  }

  // Granted to this node and not reported, by all its leases that live.
  uint64_t HeldBy(uint64_t node) const {
    uint64_t sum = 0;
    for (const Lease& lease : leases) sum += lease.id.node == node ? lease.outstanding() : 0;
    return sum;
  }

  Message AnyMessage() {
    Message message{.ask = {.id = {.node = random() % 3, .number = ++number},
                            .cost = random() % 3 == 0 ? Between(random, 1, 4) : 0,
                            .want = random() % 40,
                            .brief = random() % 40,
                            .parts = static_cast<uint32_t>(random() % 4)},
                    .reports = {}};
    for (Held& lease : held) {
      if (lease.id.node != message.ask.id.node || random() % 2 == 0) continue;
      // Once it says so, a node spends no more.
      lease.returned = lease.returned || random() % 3 == 0;
      message.reports.push_back(
          {.number = lease.id.number, .spent = lease.spent, .returned = lease.returned});
    }
    for (const Held& lease : over) {
      if (lease.id.node != message.ask.id.node || random() % 4 != 0) continue;
      message.reports.push_back(
          {.number = lease.id.number, .spent = lease.spent, .returned = true});
    }
    return message;
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
      Held& lease = held.front();
      if (!lease.returned && lease.spent < lease.granted && random() % 2 == 0) {
        now = std::max(now, lease.until - Duration(1));
        Admit(lease.granted - lease.spent);
        lease.spent = lease.granted;
      }
      over.push_back(lease);
      if (over.size() > 20) over.pop_front();
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
    const Message message = AnyMessage();
    messages.push_back(message);
    if (loses && random() % 5 == 0) return;  // lost, for now
    const LeaseGrant grant = Deliver(message);
    const Held lease{.id = message.ask.id, .granted = grant.granted, .until = now + grant.ttl};
    // Many answers never arrive, and nothing that they granted is spent.
    if (loses && random() % 4 == 0) {
      if (grant.granted > 0) over.push_back(lease);
      return;
    }
    if (decision.allowed && message.ask.cost > 0) Admit(message.ask.cost);
    // The node's own deadline is not after the store's.
    if (grant.granted > 0) {
      held.push_back(lease);
      std::sort(held.begin(), held.end(),
                [](const Held& a, const Held& b) { return a.until < b.until; });
    }
  }

  uint64_t number = 0;
  std::deque<Held> held;
  std::deque<Held> over;  // leases that are over for the node
};

class LeaseProperties : public ::testing::TestWithParam<Kind> {
 protected:
  template <typename Body>
  void ForAllFleets(const Body& body) {
    for (uint64_t seed = 1; seed <= kRuns && !HasFailure(); ++seed) {
      Random random(seed);
      LimitSpec spec = AnySpec(GetParam(), random);
      // In every other fleet leases live about as long as it takes to refill some of their
      // requests.
      if (seed % 2 == 0 && !IsCalendar(spec.align)) {
        const uint64_t requests = IsBucket(spec.algorithm) ? spec.requests : 1;
        spec.period = Duration(
            static_cast<int64_t>(requests * Between(random, 10'000'000, 6'000'000'000 / requests)));
      }
      const Limit limit = *Limit::Make(spec);
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
  uint64_t late_reports = 0;
  ForAllFleets([&](Fleet& fleet) {
    for (int i = 0; i < kSteps; ++i) fleet.Step();
    late_reports += fleet.late_reports;
    const std::vector<Fleet::Admission>& all = fleet.admissions;
    from_leases += all.size();
    if (fleet.limit.spec().align != Align::kFirstHit) {
      // One bucket would have admitted all of it. (A window of the first hit begins with a lease.)
      BucketState one;
      NoHits no_hits;
      for (const Fleet::Admission& admission : all)
        ASSERT_TRUE(Decide(fleet.limit, one, no_hits, admission.cost, admission.at).allowed);
    }
    for (size_t first = 0; first < all.size(); ++first) {
      uint64_t admitted = 0;
      for (size_t last = first; last < all.size(); ++last) {
        admitted += all[last].cost;
        ASSERT_LE(admitted, Bound(fleet.limit, all[last].at - all[first].at));
      }
    }
  });
  EXPECT_GT(from_leases, kRuns);
  EXPECT_GT(late_reports, kRuns / 4);
}

// The brief part of a window that ends before kBrief is over.
uint64_t BriefOf(const LeaseAsk& ask, const Fleet& fleet) {
  if (!IsWindow(fleet.limit.algorithm())) return ask.brief;
  const Instant now = std::max(fleet.now, fleet.state.seen);
  Duration left = WindowEnd(fleet.limit, now) - now;
  if (fleet.limit.algorithm() == Algorithm::kSlidingWindowCounter) {
    const auto period = static_cast<int64_t>(fleet.limit.period());
    left = Duration(period - now.ns % period);
  } else if (fleet.state.edge > static_cast<uint64_t>(now.ns)) {
    left = Instant::FromNanos(static_cast<int64_t>(fleet.state.edge)) - now;
  }
  return left >= kBrief ? ask.brief
                        : ask.brief * static_cast<uint64_t>(left.count() / 1000) / 100'000;
}

// A node holds in all at most a small or a brief part of the rest, and gets this part as far as it
// is there.
TEST_P(LeaseProperties, ANodeHoldsNoMoreThanASmallOrABriefPart) {
  uint64_t granted = 0;
  ForAllFleets([&](Fleet& fleet) {
    for (int i = 0; i < kSteps; ++i) {
      fleet.Step();
      const Fleet::Message message = fleet.AnyMessage();
      const LeaseAsk& ask = message.ask;
      const LeaseGrant grant = fleet.Deliver(message);
      const uint64_t left = fleet.decision.remaining;
      const uint64_t mine = fleet.HeldBy(ask.id.node);
      ASSERT_GE(mine, grant.granted);
      uint64_t others = 0;
      for (const Lease& lease : fleet.leases)
        others += lease.id.node == ask.id.node ? 0 : lease.outstanding();
      ASSERT_EQ(grant.others, others);
      const uint64_t most =
          std::max(std::min(ask.want, (left + mine) / 32),
                   std::min(BriefOf(ask, fleet), (left + mine) / std::max(1u, ask.parts)));
      if (grant.granted > 0) {
        ++granted;
        ASSERT_LE(mine, most);
        ASSERT_TRUE(left + mine >= kFewLeft || ask.parts <= 1);
      }
      const bool few = left + mine < kFewLeft && ask.parts > 1;
      // At the end of a window a brief lease is less.
      if (fleet.decision.allowed && ask.want > 0 && left > 0 && !few &&
          !IsWindow(fleet.limit.algorithm())) {
        ASSERT_GE(mine, most);
      }
    }
  });
  EXPECT_GT(granted, kRuns / 4);
}

TEST_P(LeaseProperties, AMessageThatComesTwiceChangesNothing) {
  ForAllFleets([](Fleet& fleet) {
    for (int i = 0; i < kSteps; ++i) {
      fleet.Step();
      if (fleet.messages.empty()) continue;
      // Any message, however late: the second delivery changes nothing and gives the same answer.
      const Fleet::Message& message = fleet.messages[fleet.random() % fleet.messages.size()];
      const LeaseGrant grant = fleet.Deliver(message);
      // A request without a lease is taken each time, like any other.
      if (message.ask.cost > 0 && grant.granted == 0) continue;
      const BucketState state = fleet.state;
      const Leases leases = fleet.leases;
      const Decision decision = fleet.decision;
      ASSERT_EQ(fleet.Deliver(message), grant);
      ASSERT_EQ(fleet.state, state);
      ASSERT_EQ(fleet.leases, leases);
      ASSERT_EQ(fleet.decision, decision);
    }
  });
}

// The order in which reports of one message, or of several, come does not matter.
TEST_P(LeaseProperties, ReportsMayComeInAnyOrder) {
  ForAllFleets([](Fleet& fleet) {
    for (int i = 0; i < kSteps; ++i) fleet.Step();
    const LeaseAsk none{.id = {.node = 1, .number = ~uint64_t{0}}};
    fleet.Deliver({.ask = none, .reports = {}});  // ends what is over
    std::vector<LeaseReport> reports;
    for (const Lease& lease : fleet.leases) {
      if (lease.id.node != 1) continue;
      if (lease.has_ended()) {
        reports.push_back({.number = lease.id.number,
                           .spent = Between(fleet.random, 0, lease.granted),
                           .returned = true});
        continue;
      }
      for (int n = 0; n < 3; ++n)
        reports.push_back({.number = lease.id.number, .spent = fleet.random() % 10});
    }
    Fleet other = fleet;
    fleet.Deliver({.ask = none, .reports = reports});
    std::shuffle(reports.begin(), reports.end(), other.random);
    for (const LeaseReport& report : reports) other.Deliver({.ask = none, .reports = {report}});
    ASSERT_EQ(fleet.leases, other.leases);
    ASSERT_EQ(fleet.Left(), other.Left());
  });
}

TEST_P(LeaseProperties, NoRequestPassesBeforeTheMomentNamedUnlessSomethingComesBack) {
  ForAllFleets([](Fleet& fleet) {
    for (int i = 0; i < kSteps; ++i) {
      fleet.Step();
      Fleet copy = fleet;
      const Fleet::Message message = copy.AnyMessage();
      const LeaseGrant grant = copy.Deliver(message);
      const bool some_are_out = copy.Outstanding() > 0;
      if (grant.next_after == Duration(0)) continue;
      if (grant.next_after == kNever) {
        ASSERT_GT(message.ask.cost, copy.limit.capacity());
        continue;
      }
      copy.now = std::max(copy.now, copy.state.seen) + grant.next_after - Duration(1);
      const Cost cost = std::max<Cost>(1, message.ask.cost);
      // A moment at which it passes for certain: the first of these leases may end before.
      const bool withheld =
          IsTokenBucket(copy.limit.algorithm()) && cost + grant.others > copy.limit.capacity();
      if (withheld && grant.others > 0) continue;
      ASSERT_FALSE(DecideLeased(copy.limit, copy.state, copy.leases, cost, copy.now).allowed);
      if (some_are_out) continue;
      copy.now = copy.now + Duration(1);
      ASSERT_TRUE(DecideLeased(copy.limit, copy.state, copy.leases, cost, copy.now).allowed);
    }
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

// A bucket may be forgotten from then on: a fresh one decides the same.
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
