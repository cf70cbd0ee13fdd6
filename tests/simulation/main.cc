// headgate_sim: runs seeds of the simulated fleet. A failure prints its seed, and this seed repeats
// the run exactly.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tests/redis/arithmetic_host.h"
#include "tests/simulation/contract.h"
#include "tests/simulation/world.h"

namespace headgate::simulation {
namespace {

constexpr std::string_view kUsage =
    R"(headgate_sim [--seed N] [--seeds N] [--mutant NAME] [--mutants] [--without-ledger] [--covered] [--trace]
  --seed N       the first seed (1)
  --seeds N      so many, one after the other (1)
  --mutant NAME  with a planted bug
  --mutants      with each planted bug in turn, until it is caught, or for so many seeds
  --without-ledger  bugs have to show in what the fleet lets through, or does not
  --covered      fails where a rare branch was not seen
  --contract     only the contract of leases: a fleet without faults against one single bucket
  --stop         ends at the first seed that fails
  --arithmetic lua|cpp  what decides at the store: its scripts (lua), or C++ that has to do the same
  --trace        prints what happens
)";

struct Arguments {
  uint64_t seed = 1;
  uint64_t seeds = 1;
  std::optional<Mutant> mutant{};
  bool all_mutants = false;
  bool ledger = true;
  bool covered = false;
  bool trace = false;
  bool stop = false;
  bool cpp = false;
  bool contract = false;
};

std::optional<Arguments> Parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const bool has_value = i + 1 < argc;
    if (word == "--trace") {
      arguments.trace = true;
    } else if (word == "--contract") {
      arguments.contract = true;
    } else if (word == "--stop") {
      arguments.stop = true;
    } else if (word == "--without-ledger") {
      arguments.ledger = false;
    } else if (word == "--covered") {
      arguments.covered = true;
    } else if (word == "--mutants") {
      arguments.all_mutants = true;
    } else if (word == "--arithmetic" && has_value) {
      const std::string_view name = argv[++i];
      if (name != "lua" && name != "cpp") return std::nullopt;
      arguments.cpp = name == "cpp";
    } else if (word == "--seed" && has_value) {
      arguments.seed = std::strtoull(argv[++i], nullptr, 10);
    } else if (word == "--seeds" && has_value) {
      arguments.seeds = std::strtoull(argv[++i], nullptr, 10);
    } else if (word == "--mutant" && has_value) {
      arguments.mutant = MutantByName(argv[++i]);
      if (!arguments.mutant) return std::nullopt;
    } else {
      return std::nullopt;
    }
  }
  return arguments;
}

Plan PlanOf(const Arguments& arguments, uint64_t seed) {
  Plan plan = Draw(seed);
  plan.ledger = arguments.ledger;
  return plan;
}

// Runs seeds with each mutant until it is caught.
int RunMutants(const Arguments& arguments, redis_host::ScriptHost& scripts) {
  int missed = 0;
  for (const MutantRow& row : AllMutants()) {
    Coverage coverage;
    uint64_t seed = arguments.seed;
    std::string failure;
    for (; seed < arguments.seed + arguments.seeds && failure.empty(); ++seed) {
      failure = World(PlanOf(arguments, seed), row.mutant, scripts, coverage, false).Run().failure;
    }
    if (failure.empty()) ++missed;
    fmt::print("{:<24} {}\n", row.name,
               failure.empty() ? fmt::format("NOT CAUGHT within {} seeds", arguments.seeds)
                               : fmt::format("seed {:>5}  {}", seed - 1, failure));
    std::fflush(stdout);
  }
  return missed == 0 ? 0 : 1;
}

// Prints what was measured as the rows of a table.
void PrintRows(const std::vector<std::pair<Load, Measured>>& runs) {
  for (const Row& row : RowsOf(runs))
    fmt::print("| {} | {} | {} | {} |\n", row.load, row.promise, row.runs, row.measured);
}

int RunContract(const Arguments& arguments, redis_host::ScriptHost& scripts) {
  uint64_t failed = 0;
  std::vector<std::pair<Load, Measured>> runs;
  for (uint64_t seed = arguments.seed; seed < arguments.seed + arguments.seeds; ++seed) {
    const Load load = DrawLoad(seed);
    const Measured m = Run(load, scripts, arguments.trace);
    const std::string broken = Broken(load, m);
    runs.emplace_back(load, m);
    if (broken.empty() && !arguments.trace) continue;
    if (!broken.empty()) ++failed;
    fmt::print(
        "seed {} {}\n  {}; {} asked, {} admitted (one bucket {}), {} refused (one bucket {}), {} "
        "at "
        "once, {} calls\n",
        seed, ToString(load), broken.empty() ? "kept" : broken, m.asked, m.admitted,
        m.single_admitted, m.refused, m.single_refused, m.at_once, m.calls_most);
  }
  PrintRows(runs);
  fmt::print("{} seeds, {} failed\n", arguments.seeds, failed);
  return failed == 0 ? 0 : 1;
}

int RunSeeds(const Arguments& arguments) {
  redis_host::LuaHost lua;
  redis_host::ArithmeticHost cpp(lua);
  redis_host::ScriptHost& scripts = arguments.cpp ? static_cast<redis_host::ScriptHost&>(cpp) : lua;
  if (arguments.all_mutants) return RunMutants(arguments, scripts);
  if (arguments.contract) return RunContract(arguments, scripts);
  Coverage coverage;
  Outcome sum;
  uint64_t failed = 0;
  for (uint64_t seed = arguments.seed; seed < arguments.seed + arguments.seeds; ++seed) {
    const Plan plan = PlanOf(arguments, seed);
    if (arguments.trace) fmt::print("{}\n", ToString(plan));
    const Outcome outcome = World(plan, arguments.mutant, scripts, coverage, arguments.trace).Run();
    sum.digest = (sum.digest ^ outcome.digest) * 0x100000001b3u;
    sum.calls += outcome.calls;
    sum.admitted += outcome.admitted;
    sum.leased += outcome.leased;
    // And the contract of leases, with a load that the seed chooses.
    if (!arguments.mutant) {
      const Load load = DrawLoad(seed);
      if (const std::string broken = Broken(load, Run(load, scripts)); !broken.empty()) {
        ++failed;
        fmt::print(
            "seed {} broke the contract: {}\n  {}\n  headgate_sim --seed {} --contract --trace\n",
            seed, broken, ToString(load), seed);
      }
    }
    if (outcome.failure.empty()) continue;
    ++failed;
    fmt::print("seed {} failed {}\n  headgate_sim --seed {} --trace\n", seed, outcome.failure,
               seed);
    std::fflush(stdout);
    if (arguments.stop) return 1;
  }
  fmt::print(
      "{} seeds, {} failed; {} admitted, {} of them from leases, {} calls of the store; digest "
      "{:016x}\n",
      arguments.seeds, failed, sum.admitted, sum.leased, sum.calls, sum.digest);
  if (arguments.seeds > 1) {
    for (const std::string_view mark : kMarks) fmt::print("{:>9}  {}\n", coverage.Seen(mark), mark);
  }
  const bool all_seen =
      std::all_of(kMarks.begin(), kMarks.end(), [&](auto mark) { return coverage.Seen(mark) > 0; });
  return failed == 0 && (all_seen || !arguments.covered) ? 0 : 1;
}

}  // namespace
}  // namespace headgate::simulation

int main(int argc, char** argv) {
  const auto arguments = headgate::simulation::Parse(argc, argv);
  if (!arguments) {
    fmt::print(stderr, "{}", headgate::simulation::kUsage);
    return 2;
  }
  return headgate::simulation::RunSeeds(*arguments);
}
