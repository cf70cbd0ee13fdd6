// Several instances on one key, with a service that loses races and answers, applies writes late,
// and is slow, overloaded or away: whatever happens, they admit no more than one bucket would, no
// answer is missing, and the answers are those of one bucket.
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include <fmt/format.h>

#include "headgate/base/wide.h"
#include "headgate/store/bucket_codec.h"
#include "headgate/store/cas/fleet_rig.h"
#include "tests/linearizability/history_checker.h"

namespace headgate::cas_test {
namespace fleet_test {

using algorithm::Algorithm;
using algorithm::LimitSpec;
using base::Duration;
using linearizability::Operation;
using store::SharedAnswer;
using store::cas::FleetRig;
using store::cas::ServiceFaults;
using namespace std::chrono_literals;

// Each seed disables some of the faults.
ServiceFaults FaultsOf(std::mt19937_64& random) {
  const auto percent = [&](uint32_t most) {
    return random() % 2 == 0 ? 0 : static_cast<uint32_t>(random() % (most + 1));
  };
  return {.lost_race = percent(20),
          .lost_answer = percent(20),
          .lost_write = percent(20),
          .late_write = percent(20),
          .throttled = percent(10),
          .unavailable = percent(10),
          .delay_max = Duration(static_cast<int64_t>(random() % 8'000'000))};
}

struct Outcome {
  Operation operation;
  absl::StatusCode code = absl::StatusCode::kOk;
  int answers = 0;
};

// Whether the request may have been done although it failed.
bool MayHaveBeenDone(absl::StatusCode code) {
  return code == absl::StatusCode::kDeadlineExceeded || code == absl::StatusCode::kAborted;
}

class Walk {
 public:
  static constexpr Duration kTimeout = 60ms;

  Walk(uint64_t seed, size_t instances, const std::vector<Duration>& skews = {})
      : random_(seed), fleet(instances, seed, {}, skews) {
    fleet.service.faults = FaultsOf(random_);
  }

  // Asks this many times, from random instances at random times.
  void Run(const LimitSpec& spec, size_t count, Duration pause_max,
           const std::function<void(Operation&, std::mt19937_64&)>& draw) {
    const store::LimitHandle limit = fleet.Limit(spec);
    outcomes.resize(count);
    Duration at{0};
    for (size_t i = 0; i < count; ++i) {
      at += Duration(static_cast<int64_t>(random_() % static_cast<uint64_t>(pause_max.count())));
      draw(outcomes[i].operation, random_);
      fleet.service.After(at, [this, i, limit] { Ask(outcomes[i], limit); });
    }
    fleet.Run();
  }

  std::mt19937_64 random_;
  FleetRig fleet;
  std::vector<Outcome> outcomes;

 private:
  void Ask(Outcome& outcome, const store::LimitHandle& limit) {
    Operation& operation = outcome.operation;
    operation.called = fleet.clock.BootNow().ns;
    fleet.Ask(
        random_() % fleet.instances(), "k",
        {.name = "k", .limit = limit, .cost = operation.cost, .operation = operation.operation},
        kTimeout, [this, &outcome](const SharedAnswer& answer) {
          ++outcome.answers;
          outcome.code = answer.status.code();
          outcome.operation.returned = fleet.clock.BootNow().ns;
          if (answer.status.ok())
            outcome.operation.answer = {{answer.decision.allowed, answer.decision.remaining}};
        });
  }
};

TEST(CasFleet, EveryRequestGetsOneAnswerInTime) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Walk walk(seed, 1 + seed % 6);
    walk.Run({.requests = 20, .period = 1s}, 80, 5ms, [](Operation&, std::mt19937_64&) {});
    for (const Outcome& outcome : walk.outcomes) {
      ASSERT_EQ(outcome.answers, 1) << "seed " << seed;
      ASSERT_LE(outcome.operation.returned - outcome.operation.called, Walk::kTimeout.count())
          << "seed " << seed;
    }
  }
}

// The status of each failure is true: a request is taken from the bucket if and only if it was
// allowed, or failed with a status that says that it may have been.
TEST(CasFleet, NothingIsTakenThatIsNotAccountedFor) {
  uint64_t ambiguous = 0, failed = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Walk walk(seed, 1 + seed % 6);
    walk.Run(
        {.requests = 1'000, .period = std::chrono::hours(10'000)}, 60, 4ms,
        [](Operation& operation, std::mt19937_64& random) { operation.cost = 1 + random() % 3; });
    uint64_t allowed = 0, perhaps = 0;
    for (const Outcome& outcome : walk.outcomes) {
      if (outcome.operation.answer) allowed += outcome.operation.cost;
      if (MayHaveBeenDone(outcome.code)) perhaps += outcome.operation.cost;
      failed += !outcome.operation.answer;
    }
    ambiguous += perhaps;
    walk.fleet.service.faults = {};
    const SharedAnswer rest = walk.fleet.Ask(
        0, "k",
        {.name = "k",
         .limit = walk.fleet.Limit({.requests = 1'000, .period = std::chrono::hours(10'000)}),
         .cost = 0,
         .operation = store::Operation::kPeek});
    const uint64_t taken = 1'000 - rest.decision.remaining;
    ASSERT_GE(taken, allowed) << "seed " << seed;
    ASSERT_LE(taken, allowed + perhaps) << "seed " << seed;
  }
  EXPECT_GT(ambiguous, 100u) << "the premise";
  EXPECT_GT(failed, ambiguous);
}

TEST(CasFleet, TheAnswersAreThoseOfOneBucket) {
  for (const Algorithm algorithm : {Algorithm::kTokenBucket, Algorithm::kFixedWindow}) {
    uint64_t answered = 0;
    for (uint64_t seed = 1; seed <= 300; ++seed) {
      const LimitSpec spec{
          .algorithm = algorithm, .requests = 10, .period = std::chrono::hours(10'000)};
      Walk walk(seed, 1 + seed % 5);
      walk.Run(spec, 40, 4ms, [](Operation& operation, std::mt19937_64& random) {
        operation.cost = 1 + random() % 2;
        const uint64_t kind = random() % 8;
        if (kind == 0) operation.operation = store::Operation::kPeek;
        if (kind <= 2) operation.operation = store::Operation::kRefund;
      });
      std::vector<Operation> history;
      for (const Outcome& outcome : walk.outcomes) {
        if (!outcome.operation.answer && !MayHaveBeenDone(outcome.code)) continue;
        history.push_back(outcome.operation);
        answered += outcome.operation.answer.has_value();
        // Perhaps it is done after its failure was told.
        if (!outcome.operation.answer) history.back().returned = Operation::kNever;
      }
      const base::Instant at = base::Instant::FromNanos(FleetRig::kStart.ns);
      ASSERT_EQ(linearizability::Check(*algorithm::Limit::Make(spec), at, history), "")
          << "seed " << seed;
    }
    EXPECT_GT(answered, 300u * 40 / 2) << "the premise";
  }
}

// The bound of a token bucket in every interval, by clocks that differ: it grows by the rate times
// the difference (README.md).
TEST(CasFleet, NoIntervalAdmitsMoreThanOneBucketWould) {
  constexpr Duration kSkew = 40ms;
  constexpr uint64_t kBurst = 10;
  const LimitSpec spec{.requests = 100, .period = 1s, .burst = kBurst};
  uint64_t admitted_most = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Walk walk(seed, 3, {Duration(0), kSkew, kSkew / 2});
    walk.Run(spec, 150, 4ms, [](Operation&, std::mt19937_64&) {});
    std::vector<Operation> admitted;
    for (const Outcome& outcome : walk.outcomes) {
      if (outcome.operation.answer && outcome.operation.answer->allowed)
        admitted.push_back(outcome.operation);
    }
    for (const Operation& first : admitted) {
      for (const Operation& last : admitted) {
        if (last.returned < first.called) continue;
        uint64_t count = 0;
        for (const Operation& each : admitted)
          count += each.called >= first.called && each.returned <= last.returned;
        const auto span = static_cast<uint64_t>(last.returned - first.called + kSkew.count());
        ASSERT_LE(count, kBurst + span * 100 / 1'000'000'000) << "seed " << seed;
      }
    }
    admitted_most = std::max<uint64_t>(admitted_most, admitted.size());
  }
  EXPECT_GT(admitted_most, 3 * kBurst) << "the premise";
}

// Leases under the same faults: what is out and what is left never exceed the bucket.
TEST(CasFleet, LeasesAreNotGrantedTwice) {
  constexpr uint64_t kCapacity = 100;
  const LimitSpec spec{.requests = kCapacity, .period = std::chrono::hours(10'000)};
  uint64_t granted_in_all = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Walk walk(seed, 3);
    FleetRig& fleet = walk.fleet;
    const store::LimitHandle limit = fleet.Limit(spec);
    uint64_t granted = 0;
    for (uint64_t i = 0; i < 30; ++i) {
      fleet.service.After(Duration(static_cast<int64_t>(i) * 2'000'000), [&, i] {
        // Some asks are sent twice, as by a client that did not get the answer.
        for (uint64_t twice = 0; twice <= i % 2; ++twice) {
          fleet.Ask(
              walk.random_() % 3, "k",
              {.name = "k",
               .limit = limit,
               .lease =
                   store::LeaseAsk{.id = {i, 1}, .cost = i % 3, .want = 10, .brief = 10, .ttl = 2s},
               .leased = true},
              Walk::kTimeout, [&granted, i, twice](const SharedAnswer& answer) {
                if (!answer.status.ok() || twice > 0) return;
                granted += answer.grant.granted + (answer.decision.allowed ? i % 3 : 0);
              });
        }
      });
    }
    fleet.Run();
    ASSERT_LE(granted, kCapacity) << "seed " << seed;
    granted_in_all += granted;
  }
  EXPECT_GT(granted_in_all, 200 * kCapacity / 4) << "the premise";
}

// The rig must be able to find something: the faults happen, and the exchange meets them.
TEST(CasFleet, EveryFaultIsMet) {
  uint64_t conflicts = 0, applied = 0, repeated = 0, throttled = 0, unavailable = 0, timed_out = 0,
           exhausted = 0, combined = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Walk walk(seed, 1 + seed % 6);
    walk.Run({.requests = 20, .period = 1s}, 60, 4ms, [](Operation&, std::mt19937_64&) {});
    for (size_t i = 0; i < walk.fleet.instances(); ++i) {
      const store::cas::CasCounters& counters = walk.fleet.owner(i).counters();
      conflicts += counters.conflicts.value();
      applied += counters.ambiguous_applied.value();
      repeated += counters.ambiguous_repeated.value();
      throttled += counters.throttled.value();
      unavailable += counters.unavailable.value();
      timed_out += counters.timed_out.value();
      exhausted += counters.exhausted.value();
      combined += counters.combined.value();
    }
  }
  for (const uint64_t count :
       {conflicts, applied, repeated, throttled, unavailable, timed_out, combined})
    EXPECT_GT(count, 100u);
  EXPECT_GT(exhausted + timed_out, 100u);
}

}  // namespace fleet_test
}  // namespace headgate::cas_test
