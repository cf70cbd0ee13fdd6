#include "headgate/observe/catalog.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>

#include "tests/source_dir.h"

namespace headgate::observe {
namespace catalog_test {

bool IsLowerSnake(std::string_view text) {
  return !text.empty() &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789") == text.npos;
}

TEST(Catalog, NamesFollowPrometheusAndTheHouse) {
  std::set<std::string_view> names;
  for (const MetricSpec& spec : Catalog()) {
    SCOPED_TRACE(spec.name);
    EXPECT_TRUE(names.insert(spec.name).second) << "declared twice";
    EXPECT_TRUE(spec.name.starts_with("headgate_"));
    EXPECT_TRUE(IsLowerSnake(spec.name));
    EXPECT_EQ(spec.name.ends_with("_total"), spec.type == MetricType::kCounter);
    EXPECT_EQ(spec.name.ends_with("_seconds") || spec.name.ends_with("_seconds_total"),
              spec.unit == "seconds");
    EXPECT_EQ(spec.name.ends_with("_bytes") || spec.name.ends_with("_bytes_total"),
              spec.unit == "bytes");
    EXPECT_TRUE(IsLowerSnake(spec.unit));
  }
}

TEST(Catalog, HelpIsASentence) {
  for (const MetricSpec& spec : Catalog()) {
    SCOPED_TRACE(spec.name);
    ASSERT_FALSE(spec.help.empty());
    EXPECT_EQ(spec.help.back(), '.');
    EXPECT_THAT(spec.help, ::testing::Not(::testing::AnyOf(::testing::HasSubstr("\n"),
                                                           ::testing::HasSubstr("|"))));
  }
}

TEST(Catalog, LabelsAreBoundedSetsNeverKeys) {
  const std::set<std::string_view> bounded = {"domain", "rule", "outcome", "front", "result",
                                              "reason", "protocol", "version", "mode", "event",
                                              "current", "rollout",
                                              // A sidecar shows 100 clients of its pool at most.
                                              "client",
                                              // The clients that its settings name.
                                              "upstream",
                                              // At most 256 addresses of the upstream.
                                              "address"};
  for (const MetricSpec& spec : Catalog()) {
    for (const std::string_view label : spec.labels())
      EXPECT_TRUE(bounded.contains(label)) << spec.name << " " << label;
  }
}

TEST(Catalog, LatencyBoundsGoFrom100NsTo100MsThreeADecade) {
  EXPECT_EQ(kLatencyBounds.front(), 100u);
  EXPECT_EQ(kLatencyBounds.back(), 100'000'000u);
  for (size_t i = 0; i + 3 < kLatencyBounds.size(); ++i)
    EXPECT_EQ(kLatencyBounds[i + 3], 10 * kLatencyBounds[i]);
}

// Compares the table of docs/reference/metrics.md. On a difference, the test prints the expected
// lines.
TEST(Catalog, IsWhatTheReferenceSays) {
  std::string expected;
  for (const MetricSpec& spec : Catalog()) {
    std::string labels;
    for (const std::string_view label : spec.labels())
      labels += fmt::format("{}`{}`", labels.empty() ? "" : ", ", label);
    expected += fmt::format("| `{}` | {} | {} | {} | {} |\n", spec.name, Name(spec.type), spec.unit,
                            labels, spec.help);
  }
  std::ifstream file(SourceDir() / "docs/reference/metrics.md");
  ASSERT_TRUE(file) << "docs/reference/metrics.md is missing";
  std::string found;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("| `headgate_")) found += line + "\n";
  }
  EXPECT_EQ(found, expected) << "make the rows of the table in docs/reference/metrics.md these:\n"
                             << expected;
}

}  // namespace catalog_test
}  // namespace headgate::observe
