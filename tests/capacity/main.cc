// headgate_capacity_table [SEEDS]: prints the tables of docs/internals/capacity.md.
#include <algorithm>
#include <cstdlib>
#include <memory>

#include "tests/capacity/noise.h"
#include "tests/capacity/rig.h"
#include "tests/capacity/rivals.h"

namespace headgate::capacity {
namespace {

// The worst of all seeds.
struct Worst {
  double found = 0;    // s, until within 15 % for good
  double error = 0;    // in the minute after 30 s
  double halved = 0;   // s
  double doubled = 0;  // s
  double goodput = 1;  // of the best, in this minute
  double p50_ms = 0;
};

Worst Measure(Service kind, Pool pool, uint64_t seeds) {
  Worst worst;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    Rig rig({.seed = seed, .upstream = {.kind = kind}, .pool = pool});
    worst.found = std::max(worst.found, rig.TimeToFollow(seconds(30), kBest));
    rig.overload.TakeCounts();
    worst.error = std::max(worst.error, rig.RunAndCompare(minutes(1), kBest));
    Counts counts = rig.overload.TakeCounts();
    worst.goodput = std::min(worst.goodput, counts.Goodput() / kBest);
    worst.p50_ms = std::max(
        worst.p50_ms, std::chrono::duration<double, std::milli>(counts.Percentile(50)).count());
    rig.overload.upstream().SetWorkers(5, rig.overload.now());
    worst.halved = std::max(worst.halved, rig.TimeToFollow(seconds(40), kBest / 2));
    rig.overload.upstream().SetWorkers(10, rig.overload.now());
    worst.doubled = std::max(worst.doubled, rig.TimeToFollow(seconds(40), kBest));
  }
  return worst;
}

void PrintOurs(uint64_t seeds) {
  fmt::print(
      "| service | pool | found | then off by | halved | doubled | goodput | p50 |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (const Service kind : kServices) {
    for (const Pool pool : kPools) {
      const Worst worst = Measure(kind, pool, seeds);
      fmt::print("| {} | {} | {:.0f} s | {:.0f} % | {:.0f} s | {:.0f} s | {:.0f} % | {:.0f} ms |\n",
                 ToString(kind), ToString(pool), worst.found, worst.error * 100, worst.halved,
                 worst.doubled, worst.goodput * 100, worst.p50_ms);
    }
  }
}

void PrintNoises(uint64_t seeds) {
  fmt::print(
      "\n| upstream | found | goodput | followed | then off by | goodput | quiet refused: in "
      "flight | "
      "all |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (const Noise& noise : Noises()) {
    const NoiseResult worst = Measure(noise, seeds);
    fmt::print(
        "| {} | {:.0f} s | {:.0f} % | {:.0f} s | {:.0f} % | {:.0f} % | {:.1f} % | {:.1f} % |\n",
        noise.name, worst.found_s, worst.goodput_percent, worst.followed_s, worst.off_percent,
        worst.goodput_then_percent, worst.quiet_in_flight_percent, worst.quiet_refused_percent);
  }
}

// 10, 5 and 20 workers for half a minute each under 2000 requests per second, then half load.
void PrintComparison(std::string_view name, Guard& guard) {
  Overload overload({.seed = 1}, guard);
  fmt::print("| {} |", name);
  for (const uint32_t workers : {10u, 5u, 20u}) {
    overload.upstream().SetWorkers(workers, overload.now());
    overload.SetPerSecond(200.0 * workers);
    overload.Run(seconds(20));
    overload.TakeCounts();
    overload.Run(seconds(10));
    Counts counts = overload.TakeCounts();
    fmt::print(" {}; {:.0f} ms; {:.0f} % |", guard.limit(),
               std::chrono::duration<double, std::milli>(counts.Percentile(50)).count(),
               counts.Goodput() / workers);
  }
  const auto per_second = guard.PerSecond();
  overload.upstream().SetWorkers(10, overload.now());
  overload.SetPerSecond(kBest / 2);
  overload.Run(minutes(2));
  fmt::print(" {} | {} |\n", guard.limit(),
             per_second ? fmt::format("{:.0f}/s", *per_second) : "unknown");
}

}  // namespace
}  // namespace headgate::capacity

int main(int argc, char** argv) {
  using namespace headgate::capacity;
  const uint64_t seeds = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 60;
  PrintOurs(seeds);
  PrintNoises(seeds);
  fmt::print(
      "\n| controller | 10 workers: limit; p50; goodput | 5 workers | 20 workers | limit after two "
      "minutes at half load | capacity of 20 workers |\n| --- | --- | --- | --- | --- | --- |\n");
  for (const std::string_view name : kRivals) PrintComparison(name, *MakeRival(name));
  Ours ours({});
  PrintComparison("ours", ours);
}
