#include "tests/simulation/plan.h"

#include <fmt/format.h>

namespace headgate::simulation {

using algorithm::Algorithm;
using algorithm::Align;
using base::Duration;
using base::Instant;
using base::Random;
using namespace std::chrono_literals;

namespace {

Duration Between(Random& random, Duration from, Duration to) {
  return from + Duration(static_cast<int64_t>(
                    random.Below(static_cast<uint64_t>((to - from).count()) + 1)));
}

constexpr std::array kAlgorithms{Algorithm::kTokenBucket, Algorithm::kTokenBucket,
                                 Algorithm::kTokenBucket, Algorithm::kLeakyBucket,
                                 Algorithm::kFixedWindow, Algorithm::kSlidingWindowCounter};

bool Chance(Random& random, uint64_t percent) { return random.Below(100) < percent; }

void DrawAlign(Random& random, algorithm::LimitSpec& spec) {
  constexpr std::array kAligns{Align::kEpoch,       Align::kEpoch,    Align::kEpoch,
                               Align::kFirstHit,    Align::kFirstHit, Align::kCalendarMonth,
                               Align::kCalendarYear};
  spec.align = kAligns[random.Below(kAligns.size())];
  spec.count_denied = Chance(random, 20);
  if (IsCalendar(spec)) spec.period = 0s;
}

algorithm::LimitSpec DrawLimit(Random& random, Algorithm algorithm) {
  algorithm::LimitSpec spec{.algorithm = algorithm};
  switch (algorithm) {
    case Algorithm::kFixedWindow:
    case Algorithm::kSlidingWindowCounter:
    case Algorithm::kSlidingWindowLog:
      spec.period = Between(random, 1s, 2s) / 1'000'000 * 1'000'000;
      spec.requests = 20 + random.Below(300);
      if (algorithm == Algorithm::kFixedWindow) DrawAlign(random, spec);
      break;
    default:
      spec.period = 1s;
      spec.requests = 20 + random.Below(180);
      // From bursts that are too small for leases (so always exact) to three seconds of the rate.
      spec.burst = Chance(random, 10)
                       ? 1 + random.Below(8)
                       : std::max<uint64_t>(8, spec.requests * (1 + random.Below(30)) / 10);
  }
  return spec;
}

void DrawLongPeriod(Random& random, algorithm::LimitSpec& spec) {
  if (IsCalendar(spec) || !Chance(random, 15)) return;
  constexpr std::array<Duration, 3> kPeriods{1h, 24h, 24h * 30};
  spec.period = kPeriods[random.Below(kPeriods.size())];
  spec.requests *= 1 + random.Below(10);
  if (spec.burst) spec.burst = spec.requests;
}

KeyPlan DrawKey(Random& random, Duration calm_from) {
  constexpr std::array<uint64_t, 6> kDemand{30, 80, 120, 150, 200, 500};
  KeyPlan key;
  const Algorithm algorithm = kAlgorithms[random.Below(kAlgorithms.size())];
  key.spec = DrawLimit(random, algorithm);
  DrawLongPeriod(random, key.spec);
  if (Chance(random, 25)) {
    key.changed = DrawLimit(random, algorithm);
    key.changed->period = key.spec.period;
    key.changed->align = key.spec.align;
    if (Chance(random, 50)) {
      // A little more or less, as people change limits. A large change would hide errors, because
      // the larger limit bounds both.
      key.changed->requests = key.spec.requests * (90 + random.Below(30)) / 100;
      key.changed->burst = key.spec.burst;
    }
    key.change_in_stampede = Chance(random, 50);
    key.changed_at = Between(random, 500ms, calm_from - 500ms);
  }
  if (Chance(random, 25)) key.cost_max = 1 + random.Below(4);
  key.demand_percent = kDemand[random.Below(kDemand.size())];
  key.demand_percent_calm = 125 + random.Below(150);
  key.bursts = Chance(random, 40);
  if (Chance(random, 30)) key.refund_percent = 1 + random.Below(60);
  if (Chance(random, 40)) key.stampedes = 1 + static_cast<uint32_t>(random.Below(3));
  if (Chance(random, 20))
    key.sharing = Chance(random, 50) ? rule::Sharing::kExact : rule::Sharing::kStrict;
  if (Chance(random, 30)) key.on_store_failure = rule::OnStoreFailure::kLocal;
  if (Chance(random, 10)) key.on_store_failure = rule::OnStoreFailure::kAllow;
  return key;
}

// Asked for about once in a ttl, far below its limit: instances hold tiny leases.
void DrawRare(Random& random, KeyPlan& key) {
  if (!algorithm::KeepsLeases(key.spec.algorithm)) return;
  key.demand_percent = 1 + random.Below(3);
  if (key.spec.requests == 0 || IsCalendar(key.spec)) return;
  key.spec.period = 1h;
  key.spec.requests = 300 + random.Below(900);
  if (key.spec.burst) key.spec.burst = key.spec.requests;
}

// A change to any kind and period.
void DrawChangeOfKind(Random& random, Duration calm_from, KeyPlan& key) {
  key.changed = DrawLimit(random, kAlgorithms[random.Below(kAlgorithms.size())]);
  DrawLongPeriod(random, *key.changed);
  key.change_in_stampede = Chance(random, 60);
  key.changed_at = Between(random, 500ms, calm_from - 500ms);
}

// Limits without leases (a queue, a log, or 0 requests), each also as the old or the new limit of a
// change.
void DrawOtherKinds(Random& random, Duration calm_from, KeyPlan& key) {
  constexpr std::array kAll{Algorithm::kTokenBucket,          Algorithm::kLeakyBucket,
                            Algorithm::kLeakyBucketQueue,     Algorithm::kFixedWindow,
                            Algorithm::kSlidingWindowCounter, Algorithm::kSlidingWindowLog};
  const auto draw = [&](bool exact) {
    const Algorithm always_exact =
        Chance(random, 50) ? Algorithm::kLeakyBucketQueue : Algorithm::kSlidingWindowLog;
    algorithm::LimitSpec spec =
        DrawLimit(random, exact ? always_exact : kAll[random.Below(kAll.size())]);
    if (spec.algorithm == Algorithm::kLeakyBucketQueue && Chance(random, 10)) spec.burst = 0;
    DrawLongPeriod(random, spec);
    return spec;
  };
  const auto nothing = [](algorithm::LimitSpec spec) {
    spec.requests = 0;
    return spec;
  };
  const uint64_t which = random.Below(20);
  if (which >= 6) return;
  key.changed.reset();
  if (which < 3) key.spec = draw(/*exact=*/true);
  if (which == 1) key.changed = draw(/*exact=*/false);
  if (which == 2) {
    key.changed = DrawLimit(random, key.spec.algorithm);
    key.changed->period = key.spec.period;
  }
  if (which == 3) key.changed = draw(/*exact=*/true);
  if (which == 4) key.changed = nothing(Chance(random, 70) ? key.spec : draw(Chance(random, 30)));
  if (which == 5) {
    key.changed = key.spec;
    key.spec = nothing(Chance(random, 70) ? key.spec : draw(Chance(random, 30)));
  }
  if (!key.changed) return;
  key.change_in_stampede = Chance(random, 60);
  key.changed_at = Between(random, 500ms, calm_from - 500ms);
}

// Equal demand beyond the limit, and windows of whole seconds. Returns the time needed to measure
// ten seconds of whole windows.
Duration DrawEven(Plan& plan) {
  constexpr std::array kPeriods{1s, 2s, 3s, 5s};
  Random random(Random(plan.seed ^ 0x45564E).Next());
  Duration longest{0};
  plan.steady = Chance(random, 60);
  for (KeyPlan& key : plan.keys) {
    const bool is_window = key.spec.algorithm == Algorithm::kFixedWindow ||
                           key.spec.algorithm == Algorithm::kSlidingWindowCounter;
    if (is_window && !IsLong(key.spec) && !key.changed) {
      const auto period = kPeriods[random.Below(kPeriods.size())];
      key.spec.requests *= static_cast<uint64_t>(period.count());
      key.spec.period = period;
    }
    if (Chance(random, 70)) key.demand_percent_calm = 200 + random.Below(300);
    if (!IsLong(key.last())) longest = std::max(longest, PaceOf(key.last()));
  }
  return 10s + 2 * longest + 100ms;
}

bool IsEverQueue(const KeyPlan& key) {
  return key.spec.algorithm == Algorithm::kLeakyBucketQueue ||
         key.last().algorithm == Algorithm::kLeakyBucketQueue;
}

// If there are calendars, a year or a leap February ends during the run.
void DrawStart(Random& random, Plan& plan) {
  constexpr Instant kYearEnds = Instant::FromNanos(1'798'761'600'000'000'000);      // 2027-01-01
  constexpr Instant kFebruaryEnds = Instant::FromNanos(1'835'481'600'000'000'000);  // 2028-03-01
  plan.start =
      Instant::FromNanos(1'800'000'000'000'000'000) + Between(random, 0s, 10s) / 1000 * 1000;
  bool any = false;
  bool year = false;
  for (const KeyPlan& key : plan.keys) {
    for (const algorithm::LimitSpec& spec : {key.spec, key.last()}) {
      any = any || IsCalendar(spec);
      year = year || spec.align == Align::kCalendarYear;
    }
  }
  if (!any) return;
  plan.calendar_edge = year ? kYearEnds : kFebruaryEnds;
  plan.start = plan.calendar_edge - Between(random, 0s, plan.end) / 1000 * 1000;
}

}  // namespace

Plan Draw(uint64_t seed) {
  // Mixes the seed, so that two seeds never share parts of one random sequence.
  Random random(Random(seed).Next() ^ seed);
  Plan plan;
  plan.seed = seed;
  if (seed % 3 == 0) {
    plan.loops = 2 + static_cast<uint32_t>(random.Below(3));
    plan.instances = 1 + static_cast<uint32_t>(random.Below(3));
  } else {
    plan.instances = 1 + static_cast<uint32_t>(random.Below(Chance(random, 70) ? 4 : 8));
  }
  constexpr std::array kTtls{600ms, 600ms, 1000ms, 2000ms};
  plan.ttl = kTtls[random.Below(kTtls.size())];
  plan.tiny_ttl = 2 * plan.ttl;
  plan.timeout = Chance(random, 15) ? plan.ttl * 3 : Between(random, 8ms, 30ms);

  plan.delay_max = Between(random, 100us, 3ms);
  if (Chance(random, 50)) plan.lost_ppm = random.Below(100'000);
  if (Chance(random, 50)) plan.doubled_ppm = random.Below(200'000);
  if (Chance(random, 50)) {
    plan.slow_ppm = random.Below(200'000);
    plan.slow_max = Chance(random, 50) ? Between(random, 10ms, 100ms) : plan.ttl + plan.ttl / 2;
  }
  if (Chance(random, 70)) plan.drift_ppm_max = 20'000;  // two clocks, each off by 1 %
  if (Chance(random, 50)) plan.pauses = 1 + static_cast<uint32_t>(random.Below(4));
  if (Chance(random, 40)) plan.crashes = 1 + static_cast<uint32_t>(random.Below(4));
  if (Chance(random, 25)) plan.shutdowns = 1 + static_cast<uint32_t>(random.Below(3));
  if (Chance(random, 15)) plan.resets = 1 + static_cast<uint32_t>(random.Below(4));
  if (Chance(random, 30)) plan.cuts = 1 + static_cast<uint32_t>(random.Below(4));
  if (Chance(random, 35)) plan.failovers = 1 + static_cast<uint32_t>(random.Below(2));
  if (Chance(random, 15)) plan.partitions = 1 + static_cast<uint32_t>(random.Below(2));
  if (Chance(random, 15)) plan.flushes = 1 + static_cast<uint32_t>(random.Below(2));
  if (Chance(random, 12)) plan.restarts_from_file = 1 + static_cast<uint32_t>(random.Below(2));
  if (Chance(random, 12)) plan.restarts_empty = 1 + static_cast<uint32_t>(random.Below(2));
  if (Chance(random, 15)) plan.replicas_attached = 1 + static_cast<uint32_t>(random.Below(3));
  if (Chance(random, 15)) plan.slot_moves = 1 + static_cast<uint32_t>(random.Below(3));
  if (Chance(random, 8)) plan.sleeps = 1;
  if (Chance(random, 15)) plan.steps_forward = 1 + static_cast<uint32_t>(random.Below(3));
  if (Chance(random, 15)) plan.steps_back = 1 + static_cast<uint32_t>(random.Below(2));
  plan.replication_lag =
      Chance(random, 50) ? Between(random, 1ms, 50ms) : Between(random, 50ms, plan.ttl);
  plan.sharp = Chance(random, 50);

  plan.calm_from = 4 * plan.ttl + Between(random, 1s, 3s);
  Random rare(Random(seed ^ 0x7157).Next());
  const bool is_rare = Chance(rare, 15);
  if (is_rare) plan.calm_from += 10s;
  // Long enough for old leases to end, nodes to learn histories, limit changes to finish, and the
  // store's clock to catch up.
  constexpr std::array kOpenMax{500ms, 500ms, 1000ms, 2000ms};
  plan.breaker_open_max = kOpenMax[random.Below(kOpenMax.size())];
  plan.measured_from = plan.calm_from + 3 * plan.ttl + 500ms + (plan.steps_back > 0 ? 3s : 0s);
  // A breaker that opened at the last moment lets a probe through, and then closes.
  plan.measured_from += plan.breaker_open_max * 5 / 4;
  Duration measured = 4s;
  const size_t keys = 1 + random.Below(2);
  Random changes(~Random(seed).Next());
  Random others(Random(~seed).Next());
  for (size_t i = 0; i < keys; ++i) {
    KeyPlan& key = plan.keys.emplace_back(DrawKey(random, plan.calm_from));
    if (Chance(changes, 15)) DrawChangeOfKind(changes, plan.calm_from, key);
    DrawOtherKinds(others, plan.calm_from, key);
    if (is_rare) DrawRare(rare, key);
    if (!IsLong(key.last())) measured = std::max(measured, 3 * PaceOf(key.last()) + 200ms);
  }
  plan.even = Chance(random, 15);
  if (plan.even) measured = std::max(measured, DrawEven(plan));
  plan.measured_to = plan.measured_from + measured;
  // A key that was in use within a TTL gets one more lease, perhaps a tiny one, which is kept until
  // it ends.
  plan.end = plan.measured_to + plan.ttl * 5 / 4 + plan.tiny_ttl + 50ms;
  DrawStart(random, plan);
  if (plan.keys.size() > 1 && Chance(random, 50)) plan.group_percent = 1 + random.Below(60);
  // A queue cannot take back a request that it has admitted when the second queue denies.
  if (plan.keys.size() > 1 && IsEverQueue(plan.keys[0]) && IsEverQueue(plan.keys[1]))
    plan.group_percent = 0;
  plan.shuts_down_at_end = Chance(random, 30);
  return plan;
}

std::string ToString(const Plan& plan) {
  const auto ms = [](Duration d) { return static_cast<double>(d.count()) / 1e6; };
  std::string text = fmt::format(
      "seed {}: {} instances of {} loops, ttl {}ms, timeout {}ms, delay {}ms, drift {}ppm, lost "
      "{}ppm, doubled {}ppm, "
      "slow {}ppm of "
      "{}ms, {} pauses, {} crashes, {} shutdowns, {} resets, {} cuts, {} failovers (lag {}ms), {} "
      "partitions, {} "
      "restarts from a file, {} empty, "
      "{} replicas, {} slots moved, {} sleeps, {} "
      "flushes, {} steps forward, {} "
      "back{}, {} % in groups, breaker {}ms; calm "
      "from {}ms, "
      "measured from {}ms",
      plan.seed, plan.instances, plan.loops, ms(plan.ttl), ms(plan.timeout), ms(plan.delay_max),
      plan.drift_ppm_max, plan.lost_ppm, plan.doubled_ppm, plan.slow_ppm, ms(plan.slow_max),
      plan.pauses, plan.crashes, plan.shutdowns, plan.resets, plan.cuts, plan.failovers,
      ms(plan.replication_lag), plan.partitions, plan.restarts_from_file, plan.restarts_empty,
      plan.replicas_attached, plan.slot_moves, plan.sleeps, plan.flushes, plan.steps_forward,
      plan.steps_back, plan.sharp ? ", sharp" : "", plan.group_percent, ms(plan.breaker_open_max),
      ms(plan.calm_from), ms(plan.measured_from));
  for (size_t i = 0; i < plan.keys.size(); ++i) {
    const KeyPlan& key = plan.keys[i];
    const auto limit = [&](const algorithm::LimitSpec& spec) {
      constexpr std::array<std::string_view, 4> kAligns{"", " from the first hit", " and month",
                                                        " and year"};
      return fmt::format("{} {} per {}ms{} burst {}", Name(spec.algorithm), spec.requests,
                         ms(spec.period), kAligns[static_cast<size_t>(spec.align)],
                         spec.burst.value_or(spec.requests));
    };
    constexpr std::array<std::string_view, 3> kPolicies{"allow", "deny", "local"};
    text += fmt::format(
        "\n  key {}: {}{}, else {}, cost up to {}, demand {} %{}, {} stampedes{}, {} % refunded", i,
        limit(key.spec), key.sharing == rule::Sharing::kLeased ? "" : " exact",
        kPolicies[static_cast<size_t>(key.on_store_failure)], key.cost_max, key.demand_percent,
        key.bursts ? " in bursts" : "", key.stampedes,
        key.change_in_stampede ? " and one at the change" : "", key.refund_percent);
    if (key.changed)
      text += fmt::format(", from {}ms on {}", ms(key.changed_at), limit(*key.changed));
  }
  return text;
}

}  // namespace headgate::simulation
