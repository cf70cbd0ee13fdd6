#include "headgate/testing/scenario_command.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include <fmt/format.h>

#include "headgate/store/memory.h"
#include "headgate/testing/direct_driver.h"
#include "headgate/testing/scenario.h"
#include "headgate/testing/scenario_runner.h"

namespace headgate::testing {
namespace {

constexpr int kAsExpected = 0;
constexpr int kDiffers = 1;
constexpr int kUnusable = 2;

// A scenario has at most a million bytes, so fewer than a quarter of a million keys: none is
// evicted.
constexpr uint64_t kBucketsMax = 1 << 18;

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text(kScenarioBytesMax + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  if (!file.is_open() || file.bad() || (text.empty() && errno != 0)) {
    return absl::NotFoundError(
        fmt::format("cannot read the scenario {}: {}", path, std::strerror(errno)));
  }
  return text;
}

int RunFile(const std::string& path, std::ostream& out, const ScenarioErrors& on_error) {
  const auto text = ReadFile(path);
  if (!text.ok()) {
    on_error(std::string(text.status().message()),
             "name a file that can be read: headgate scenario FILE…");
    return kUnusable;
  }
  const ParsedScenario parsed = ParseScenario(path, *text);
  for (const ScenarioProblem& problem : parsed.problems)
    on_error(PlaceAndMessage(path, problem), problem.hint);
  if (!parsed.ok()) return kUnusable;

  // A fixed secret is safe here: it protects only against clients that aim at collisions, and a
  // scenario has no foreign clients.
  store::MemoryStore store({.max_buckets = kBucketsMax, .secret = {}});
  DirectDriver driver(store);
  const auto differences = RunScenario(parsed.scenario, driver);
  for (const ScenarioDifference& difference : differences)
    out << Describe(path, difference) << '\n';
  if (!differences.empty()) return kDiffers;
  out << path << ": all as expected (" << parsed.scenario.steps.size() << " steps)\n";
  return kAsExpected;
}

}  // namespace

int RunScenarioFiles(std::span<const std::string> paths, std::ostream& out,
                     const ScenarioErrors& on_error) {
  int code = kAsExpected;
  for (const std::string& path : paths) code = std::max(code, RunFile(path, out, on_error));
  return code;
}

}  // namespace headgate::testing
