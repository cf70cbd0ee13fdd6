// The loads that the contract of leases is checked with.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "headgate/base/random.h"
#include "tests/simulation/contract.h"

namespace headgate::simulation {

using namespace std::chrono_literals;
using algorithm::Algorithm;
using base::Duration;

std::string ToString(const Load& load) {
  constexpr std::array<std::string_view, 11> kKinds{
      "alone",  "mixed costs", "wanders", "paced",  "Poisson",   "obedient",
      "plenty", "large costs", "killed",  "paused", "standstill"};
  return fmt::format("{}: {} {} per {}ms burst {}{}, {} instances of {}, {}",
                     kKinds[static_cast<size_t>(load.kind)], Name(load.spec.algorithm),
                     load.spec.requests, load.spec.period / 1ms,
                     load.spec.burst.value_or(load.spec.requests),
                     load.spec.align == algorithm::Align::kFirstHit ? " from the first hit" : "",
                     load.instances, load.loops,
                     load.per_1000s != 0 ? fmt::format("{}/1000s", load.per_1000s)
                                         : fmt::format("{} %", load.percent));
}

Load DrawLoad(uint64_t seed) {
  base::Random random(base::Random(seed * 7919).Next());
  const auto one_of = [&](const auto& all) { return all[random.Below(all.size())]; };
  constexpr std::array kKinds{
      Load::Kind::kAlone,   Load::Kind::kPaced,   Load::Kind::kPaced,    Load::Kind::kPaced,
      Load::Kind::kPoisson, Load::Kind::kPoisson, Load::Kind::kObedient, Load::Kind::kLargeCost,
      Load::Kind::kPlenty,  Load::Kind::kKilled,  Load::Kind::kPaused,   Load::Kind::kStandstill,
      Load::Kind::kMixed,   Load::Kind::kWander};
  Load load{.kind = one_of(kKinds), .spec = {}, .seed = seed};
  constexpr std::array kAlgorithms{Algorithm::kTokenBucket, Algorithm::kFixedWindow,
                                   Algorithm::kSlidingWindowCounter, Algorithm::kFixedWindow};
  load.spec.algorithm = one_of(kAlgorithms);
  constexpr std::array<Duration, 5> kPeriods{1s, 1s, 2s, 10s, 60s};
  load.spec.period = one_of(kPeriods);
  constexpr std::array<uint64_t, 6> kRequests{3, 10, 30, 100, 1000, 5000};
  load.spec.requests = one_of(kRequests);
  if (load.spec.algorithm == Algorithm::kFixedWindow && random.Below(2) == 0)
    load.spec.align = algorithm::Align::kFirstHit;
  load.instances = 2 + static_cast<uint32_t>(random.Below(2));
  load.loops = random.Below(4) == 0 ? 2 : 1;
  constexpr std::array<uint64_t, 8> kPercents{30, 50, 80, 90, 125, 200, 500, 1000};
  constexpr std::array<uint64_t, 4> kPoissons{30, 60, 80, 80};
  load.percent = load.kind == Load::Kind::kPoisson ? one_of(kPoissons) : one_of(kPercents);
  if (load.kind == Load::Kind::kLargeCost) {
    load.percent = 10 + random.Below(50);
    load.spec.algorithm = Algorithm::kTokenBucket;
    load.spec.align = algorithm::Align::kEpoch;
    load.spec.burst = load.spec.requests * (1 + random.Below(3));
  }
  load.lasts = std::clamp<Duration>(6 * load.spec.period, 6s, 130s);
  if (load.kind == Load::Kind::kPlenty) {
    load.spec.requests = 1'000'000;
    load.spec.period = 1h;
    load.instances = 3;
    load.loops = 1;
    constexpr std::array<uint64_t, 5> kRates{5'000, 5'000, 30'000, 300'000, 1'500'000};
    load.per_1000s = one_of(kRates);
    load.lasts =
        std::clamp<Duration>(1s * (30'000'000 / static_cast<int64_t>(load.per_1000s)), 20s, 300s);
    return load;
  }
  if (load.kind >= Load::Kind::kKilled) {
    // Nothing comes back in a day while the load lasts.
    load.spec.requests = 1000;
    load.spec.period = 24h;
    load.spec.align = algorithm::Align::kEpoch;
    constexpr std::array<uint64_t, 4> kRates{20'000, 60'000, 100'000, 300'000};
    load.per_1000s = one_of(kRates);
    load.lasts = Duration(1'000'000'000'000 * 800 / static_cast<int64_t>(load.per_1000s)) /
                 1'000'000 * 1'000'000;
    load.lasts = std::clamp<Duration>(load.lasts, 4s, 40s);
    return load;
  }
  // Overload of a fleet is promised for 16 requests and more for each instance.
  if (load.percent > 100 && load.spec.requests < 16 * load.instances) load.spec.requests = 100;
  // Not more requests than a test can decide.
  while (load.spec.requests * load.percent / 100 * static_cast<uint64_t>(load.lasts / 1ms) /
             static_cast<uint64_t>(load.spec.period / 1ms) >
         60'000)
    load.lasts /= 2;
  return load;
}

}  // namespace headgate::simulation
