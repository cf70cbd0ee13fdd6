#include "tests/strict_simulation/plan.h"

#include <fmt/format.h>

#include <array>

#include "headgate/base/random.h"

namespace headgate::strict_simulation {

using algorithm::Algorithm;
using algorithm::Align;
using base::Duration;
using base::Random;
using namespace std::chrono_literals;

namespace {

bool Chance(Random& random, uint64_t percent) { return random.Below(100) < percent; }

Duration Between(Random& random, Duration from, Duration to) {
  return from + Duration(static_cast<int64_t>(
                    random.Below(static_cast<uint64_t>((to - from).count()) + 1)));
}

KeyPlan DrawLeased(Random& random) {
  KeyPlan key{
      .spec = {.algorithm = Chance(random, 70) ? Algorithm::kTokenBucket : Algorithm::kLeakyBucket,
               .requests = 50 + random.Below(200),
               .period = 1s},
      .leased = true};
  key.spec.burst = key.spec.requests * (2 + random.Below(20)) / 10;
  key.pause = Duration(1s) / static_cast<int64_t>(key.spec.requests);
  return key;
}

KeyPlan DrawKey(Random& random) {
  constexpr std::array kAlgorithms{Algorithm::kTokenBucket,          Algorithm::kTokenBucket,
                                   Algorithm::kLeakyBucket,          Algorithm::kLeakyBucketQueue,
                                   Algorithm::kFixedWindow,          Algorithm::kFixedWindow,
                                   Algorithm::kSlidingWindowCounter, Algorithm::kSlidingWindowLog};
  constexpr std::array<Duration, 4> kPeriods{1s, 3s, 40s, 24h};
  if (Chance(random, 25)) return DrawLeased(random);
  KeyPlan key{.spec = {.algorithm = kAlgorithms[random.Below(kAlgorithms.size())],
                       .requests = 3 + random.Below(40),
                       .period = kPeriods[random.Below(kPeriods.size())]}};
  const bool window = key.spec.algorithm == Algorithm::kFixedWindow;
  if (window && Chance(random, 40)) key.spec.align = Align::kFirstHit;
  if (window && Chance(random, 20)) key.spec.count_denied = true;
  if (IsBucket(key.spec.algorithm) && Chance(random, 50))
    key.spec.burst = 1 + random.Below(2 * key.spec.requests);
  key.pause = Between(random, 2ms, 60ms);
  // Seldom used, and full again soon: its value is often created again.
  if (IsTokenBucket(key.spec.algorithm) && Chance(random, 30)) {
    key.spec.period = 1s;
    key.pause = Between(random, 200ms, 800ms);
  }
  if (Chance(random, 50)) key.cost_max = 1 + random.Below(3);
  if (Chance(random, 60)) key.peek_percent = 20;
  if (key.spec.algorithm != Algorithm::kLeakyBucketQueue && Chance(random, 30))
    key.refund_percent = 15;
  if (Chance(random, 15)) key.reset_percent = 2;
  return key;
}

}  // namespace

Plan Draw(uint64_t seed) {
  Random random(Random(seed).Next() ^ seed);
  Plan plan;
  plan.seed = seed;
  plan.instances = 1 + static_cast<uint32_t>(random.Below(Chance(random, 80) ? 4 : 20));
  const size_t keys = 1 + random.Below(2);
  for (size_t i = 0; i < keys; ++i) plan.keys.push_back(DrawKey(random));
  // A crowd would only lose against itself.
  if (plan.instances > 4) {
    for (KeyPlan& key : plan.keys) key.pause *= plan.instances / 2;
  }
  plan.random_versions = Chance(random, 40);
  plan.timeout = Between(random, 30ms, 200ms);
  plan.delay_max = Between(random, 100us, 3ms);
  plan.slow_max = Chance(random, 50) ? plan.timeout / 2 : plan.timeout * 4;
  const auto ppm = [&](uint64_t percent_most) {
    return Chance(random, 50) ? 0 : static_cast<uint32_t>(random.Below(percent_most * 10'000));
  };
  plan.faults = {.lost = ppm(10),
                 .lost_answer = ppm(15),
                 .broken = ppm(25),
                 .doubled = ppm(20),
                 .slow = ppm(20),
                 .throttled = ppm(20),
                 .unavailable = ppm(10),
                 .lost_race = ppm(20)};
  if (Chance(random, 60)) plan.skew = Between(random, 1ms, 60ms);
  const auto count = [&](uint64_t percent) {
    return Chance(random, percent) ? 1 + static_cast<uint32_t>(random.Below(6)) : 0;
  };
  plan.crashes = count(50);
  plan.pauses = count(40);
  plan.cuts = count(40);
  plan.steps = count(25);
  plan.calm_from = Between(random, 3s, 6s);
  if (Chance(random, 30)) {
    plan.rest_from = Between(random, 500ms, plan.calm_from - 1s);
    plan.rest_until = plan.rest_from + Between(random, 100s, 400s);
    plan.calm_from += plan.rest_until - plan.rest_from;
    plan.steps = 0;
  }
  plan.well_from = plan.calm_from + plan.slow_max + plan.timeout;
  plan.end = plan.well_from + 1s;
  return plan;
}

std::string ToString(const Plan& plan) {
  const auto ms = [](Duration d) { return static_cast<double>(d.count()) / 1e6; };
  const CallFaults& f = plan.faults;
  std::string text = fmt::format(
      "seed {}: {} instances, {} versions, timeout {}ms, delay {}ms, slow {}ms, skew {}ms, {} "
      "crashes, {} pauses, {} cuts, {} steps{}; ppm: lost {}, lost answer {}, broken {}, doubled "
      "{}, slow {}, throttled {}, unavailable {}, lost race {}; calm from {}ms, well from {}ms",
      plan.seed, plan.instances, plan.random_versions ? "random" : "counted", ms(plan.timeout),
      ms(plan.delay_max), ms(plan.slow_max), ms(plan.skew), plan.crashes, plan.pauses, plan.cuts,
      plan.steps, plan.rest_until > plan.rest_from ? ", rests" : "", f.lost, f.lost_answer,
      f.broken, f.doubled, f.slow, f.throttled, f.unavailable, f.lost_race, ms(plan.calm_from),
      ms(plan.well_from));
  for (const KeyPlan& key : plan.keys) {
    text += fmt::format(
        "\n  {} {} per {}ms burst {}{}{}{}, every {}ms, cost up to {}, {} % peeks, "
        "{} % refunds, {} % resets",
        Name(key.spec.algorithm), key.spec.requests, ms(key.spec.period),
        key.spec.burst.value_or(key.spec.requests), key.leased ? " leased" : "",
        key.spec.align == Align::kFirstHit ? " from the first hit" : "",
        key.spec.count_denied ? " counting denials" : "", ms(key.pause), key.cost_max,
        key.peek_percent, key.refund_percent, key.reset_percent);
  }
  return text;
}

}  // namespace headgate::strict_simulation
