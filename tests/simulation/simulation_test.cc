// Tests of the simulator: a seed repeats its run exactly, and planted bugs are found.
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headgate/store/redis/script.h"
#include "tests/redis/arithmetic_host.h"
#include "tests/simulation/contract.h"
#include "tests/simulation/terms.h"
#include "tests/simulation/world.h"
#include "tests/source_dir.h"

namespace headgate::simulation {
namespace simulation_test {

using namespace std::chrono_literals;

TEST(Simulation, ASeedRepeatsItsRunExactly) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    redis_host::LuaHost one;
    redis_host::LuaHost other;
    Coverage coverage;
    const Outcome first = World(Draw(seed), std::nullopt, one, coverage, false).Run();
    const Outcome second = World(Draw(seed), std::nullopt, other, coverage, false).Run();
    EXPECT_EQ(first.failure, "");
    EXPECT_EQ(first.digest, second.digest);
    EXPECT_EQ(first.calls, second.calls);
    EXPECT_NE(first.digest, World(Draw(seed + 1), std::nullopt, one, coverage, false).Run().digest);
  }
}

// The result does not depend on whether the scripts run in Lua or as their C++ twins.
TEST(Simulation, ASeedIsTheSameInLuaAndInCpp) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    redis_host::LuaHost lua;
    redis_host::ArithmeticHost cpp(lua);
    Coverage coverage;
    const Outcome first = World(Draw(seed), std::nullopt, lua, coverage, false).Run();
    const Outcome second = World(Draw(seed), std::nullopt, cpp, coverage, false).Run();
    EXPECT_EQ(first.digest, second.digest) << "seed " << seed;
    EXPECT_EQ(second.failure, "");
  }
}

// No faults, and equal demand for one key on all instances.
Outcome RunEven(uint32_t instances, uint32_t loops, const KeyPlan& key, base::Duration measured) {
  Plan plan;
  plan.seed = instances;
  plan.instances = instances;
  plan.loops = loops;
  plan.even = plan.steady = true;
  plan.ttl = 2s;
  plan.tiny_ttl = 4s;
  plan.timeout = 50ms;
  plan.delay_max = 200us;
  plan.keys.push_back(key);
  plan.start = base::Instant::FromNanos(1'800'000'000'000'000'000);
  plan.breaker_open_max = 500ms;
  plan.measured_from = 500ms;
  plan.measured_to = plan.measured_from + measured;
  // As in Draw: a key in use gets one more lease, which is kept until it ends.
  plan.end = plan.measured_to + plan.ttl * 5 / 4 + plan.tiny_ttl + 50ms;
  redis_host::LuaHost lua;
  Coverage coverage;
  return World(plan, std::nullopt, lua, coverage, false).Run();
}

// Many instances want leases of one bucket, at 5 % of its limit.
Outcome RunCrowd(uint32_t instances, uint32_t loops) {
  const KeyPlan key{.spec = {.algorithm = algorithm::Algorithm::kTokenBucket,
                             .requests = 1'000'000,
                             .period = 24h,
                             .burst = 1'000'000,
                             .align = algorithm::Align::kEpoch,
                             .count_denied = false},
                    .demand_percent_calm = 5};
  return RunEven(instances, loops, key, 2s);
}

TEST(Simulation, TheLoopsOfAnInstanceAreOneHolder) {
  const Outcome outcome = RunCrowd(/*instances=*/64, /*loops=*/8);
  EXPECT_EQ(outcome.failure, "");
  EXPECT_EQ(outcome.denied, 0u);
  EXPECT_EQ(outcome.holders_most, 64u);
  EXPECT_GT(outcome.leased, 0u);
}

// There are more instances than places for leases in the bucket. The store decides for instances
// without a lease.
TEST(Simulation, WithManyInstancesNoRequestIsDeniedWhileThereIsRoom) {
  const Outcome outcome = RunCrowd(/*instances=*/600, /*loops=*/1);
  EXPECT_EQ(outcome.failure, "");
  EXPECT_EQ(outcome.denied, 0u);
  EXPECT_GE(outcome.holders_most, 400u) << "too few instances hold leases at a time";
  EXPECT_GT(outcome.leased, 0u);
  EXPECT_LT(outcome.leased, outcome.admitted);
}

// Each instance has a demand of 80 % of the limit at even gaps, so the same instance is first in
// each window.
TEST(Simulation, InstancesShareAWindowWhoeverComesFirst) {
  for (const algorithm::Algorithm algorithm :
       {algorithm::Algorithm::kFixedWindow, algorithm::Algorithm::kSlidingWindowCounter}) {
    for (const base::Duration period : {1s, 2s, 5s}) {
      for (uint32_t instances = 2; instances <= 5; ++instances) {
        const auto requests = static_cast<uint64_t>(100 * (period / 1s));
        const KeyPlan key{.spec = {.algorithm = algorithm, .requests = requests, .period = period},
                          .demand_percent_calm = 80 * uint64_t{instances}};
        EXPECT_EQ(RunEven(instances, 1, key, 10s + 2 * period + 100ms).failure, "")
            << instances << " instances, " << Name(algorithm) << " per " << period / 1s << " s";
      }
    }
  }
}

// The seeds of 10,000 in which an overloaded fleet once admitted less than 99 % of the requests
// that one bucket admits.
TEST(Contract, AnOverloadedSlidingCounterGives99PercentOfItsLimit) {
  redis_host::LuaHost lua;
  for (const uint64_t seed : {1676u, 1873u, 3620u, 5839u, 8292u}) {
    const Load load = DrawLoad(seed);
    EXPECT_EQ(load.spec.algorithm, algorithm::Algorithm::kSlidingWindowCounter);
    EXPECT_GT(load.percent, 100u);
    EXPECT_EQ(Broken(load, simulation::Run(load, lua)), "") << ToString(load);
  }
}

TEST(Terms, MatchTheDocumentation) {
  std::ifstream file(SourceDir() / "docs/internals/leases.md");
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_THAT(text, ::testing::HasSubstr(TermsTable()));
  EXPECT_EQ(AllTerms().size(), static_cast<size_t>(Fault::kLimitChange) + 1);
  for (size_t i = 0; i < AllTerms().size(); ++i)
    EXPECT_EQ(AllTerms()[i].fault, static_cast<Fault>(i));
}

// If a script changes, the text that a mutant replaces may be gone, and the mutant would change
// nothing.
TEST(Simulation, EveryBugInAScriptIsPlanted) {
  for (const MutantRow& row : AllMutants()) {
    if (!IsInScripts(row.mutant)) continue;
    bool planted = false;
    for (const auto& script : store::redis::AllScripts())
      planted |= Mutate(row.mutant, script.text) != script.text;
    EXPECT_TRUE(planted) << row.name << ": no script contains its text";
  }
}

// The mutants that are caught quickly. For all: headgate_sim --mutants --seeds 10000.
class Mutants : public ::testing::TestWithParam<std::string_view> {};

TEST_P(Mutants, IsCaught) {
  constexpr uint64_t kSeedsMax = 250;
  const auto mutant = MutantByName(GetParam());
  ASSERT_TRUE(mutant.has_value());
  redis_host::LuaHost lua;
  Coverage coverage;
  std::string failure;
  for (uint64_t seed = 1; seed <= kSeedsMax && failure.empty(); ++seed) {
    failure = World(Draw(seed), mutant, lua, coverage, false).Run().failure;
  }
  EXPECT_NE(failure, "");
}

INSTANTIATE_TEST_SUITE_P(
    Some, Mutants,
    ::testing::Values("lease-never-ends", "deadline-from-receipt", "no-margin",
                      "deadline-one-later", "returned-and-spent", "return-forgets-spent",
                      "denial-never-ends", "never-renewed", "never-returned", "granted-twice",
                      "refill-not-clamped", "expired-given-back", "late-report-forgets-spent",
                      "late-report-of-refilled", "taken-twice", "window-outlived", "change-mints",
                      "given-back-and-refunded", "key-dies-before-lease", "timeout-called-exact",
                      "late-answer-decides-again", "answer-for-another", "degraded-called-leased",
                      "share-is-whole"),
    [](const auto& row) {
      std::string name(row.param);
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

}  // namespace simulation_test
}  // namespace headgate::simulation
