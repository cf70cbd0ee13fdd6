// headgate_strict_sim: runs seeds of a simulated fleet with strict buckets. A failure prints its
// seed, and this seed repeats the run exactly.
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "tests/strict_simulation/world.h"

namespace headgate::strict_simulation {
namespace {

constexpr std::string_view kUsage =
    R"(headgate_strict_sim [--seed N] [--seeds N] [--mutant NAME] [--mutants] [--covered] [--stop] [--plan]
  --seed N       the first seed (1)
  --seeds N      this many, one after the other (1)
  --mutant NAME  with a planted bug
  --mutants      with each planted bug in turn, until it is found, or for this many seeds
  --covered      fails if a rare branch was not seen
  --stop         ends at the first seed that fails
  --plan         prints the plans
)";

struct Arguments {
  uint64_t seed = 1;
  uint64_t seeds = 1;
  std::optional<Mutant> mutant{};
  bool all_mutants = false;
  bool covered = false;
  bool stop = false;
  bool plan = false;
};

std::optional<Arguments> Parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const bool has_value = i + 1 < argc;
    if (word == "--covered") {
      arguments.covered = true;
    } else if (word == "--mutants") {
      arguments.all_mutants = true;
    } else if (word == "--stop") {
      arguments.stop = true;
    } else if (word == "--plan") {
      arguments.plan = true;
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

int RunMutants(const Arguments& arguments) {
  int missed = 0;
  for (const MutantRow& row : kMutants) {
    simulation::Coverage coverage;
    std::string failure;
    uint64_t seed = arguments.seed;
    for (; seed < arguments.seed + arguments.seeds && failure.empty(); ++seed)
      failure = World(Draw(seed), row.mutant, coverage).Run().failure;
    // A seed that fails without a bug proves nothing.
    if (!World(Draw(seed - 1), std::nullopt, coverage).Run().failure.empty()) failure.clear();
    missed += failure.empty();
    fmt::print("{:<24} {}\n", row.name,
               failure.empty() ? fmt::format("NOT FOUND within {} seeds", arguments.seeds)
                               : fmt::format("seed {:>4}  {}", seed - 1, failure));
    std::fflush(stdout);
  }
  return missed == 0 ? 0 : 1;
}

int Run(const Arguments& arguments) {
  if (arguments.all_mutants) return RunMutants(arguments);
  simulation::Coverage coverage;
  Outcome sum;
  uint64_t wrong = 0;
  for (uint64_t seed = arguments.seed; seed < arguments.seed + arguments.seeds; ++seed) {
    const Plan plan = Draw(seed);
    if (arguments.plan) fmt::print("{}\n", ToString(plan));
    const Outcome outcome = World(plan, arguments.mutant, coverage).Run();
    sum.digest = (sum.digest ^ outcome.digest) * 0x100000001b3u;
    sum.operations += outcome.operations;
    sum.admitted += outcome.admitted;
    sum.failed += outcome.failed;
    if (outcome.failure.empty()) continue;
    ++wrong;
    fmt::print("seed {} failed {}\n", seed, outcome.failure);
    std::fflush(stdout);
    if (arguments.stop) return 1;
  }
  fmt::print(
      "{} seeds, {} failed; {} calls of the store, {} of them failed; {} admitted; digest "
      "{:016x}\n",
      arguments.seeds, wrong, sum.operations, sum.failed, sum.admitted, sum.digest);
  bool all_seen = true;
  for (const std::string_view mark : kMarks) {
    if (arguments.seeds > 1) fmt::print("{:>9}  {}\n", coverage.Seen(mark), mark);
    all_seen = all_seen && coverage.Seen(mark) > 0;
  }
  return wrong == 0 && (all_seen || !arguments.covered) ? 0 : 1;
}

}  // namespace
}  // namespace headgate::strict_simulation

int main(int argc, char** argv) {
  const auto arguments = headgate::strict_simulation::Parse(argc, argv);
  if (!arguments) {
    fmt::print(stderr, "{}", headgate::strict_simulation::kUsage);
    return 2;
  }
  return headgate::strict_simulation::Run(*arguments);
}
