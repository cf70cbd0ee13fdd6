#include "headgate/watch/load_paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace headgate::watch {
namespace load_paths_test {

using ::testing::HasSubstr;

class LoadPathsTest : public ::testing::Test {
 protected:
  LoadPathsTest() { std::filesystem::create_directory(directory_); }
  ~LoadPathsTest() override { std::filesystem::remove_all(directory_); }

  std::string Write(const std::string& name, std::string_view text) const {
    std::ofstream(directory_ / name) << text;
    return directory_ / name;
  }

  const std::filesystem::path directory_ =
      std::filesystem::temp_directory_path() /
      ("headgate_load_paths_test_" + std::to_string(::getpid()));
};

constexpr std::string_view kRules =
    "domain: a\n"
    "descriptors:\n"
    "  - {key: k, rate_limit: {unit: day, requests_per_unit: 1}}\n";

TEST_F(LoadPathsTest, TheRulesOfFilesAndOfTextAreOneSet) {
  const RulesOfPaths loaded = LoadPaths({Write("a.yaml", kRules)}, {"b: 2/day"}, false);
  ASSERT_NE(loaded.result.rules, nullptr);
  EXPECT_EQ(loaded.result.rules->rules().size(), 2u);
  EXPECT_EQ(loaded.file_count, 1u);
  EXPECT_FALSE(loaded.awaited);
}

TEST_F(LoadPathsTest, FilesShareADomainOnlyIfThatIsWanted) {
  const std::vector<std::string> paths = {
      Write("a.yaml", kRules),
      Write("b.yaml", "domain: a\ndescriptors:\n  - {key: l, rate_limit: {unlimited: true}}\n")};
  EXPECT_EQ(LoadPaths(paths, {}, false).result.rules, nullptr);
  EXPECT_NE(LoadPaths(paths, {}, true).result.rules, nullptr);
}

TEST_F(LoadPathsTest, ADirectoryWithoutRulesIsAwaited) {
  const RulesOfPaths loaded = LoadPaths({directory_}, {}, false);
  EXPECT_TRUE(loaded.awaited);
  EXPECT_EQ(loaded.file_count, 0u);
  EXPECT_EQ(loaded.result.problems.size(), 1u);
}

TEST_F(LoadPathsTest, AFileOfMappingsIsOneProblemThatSaysSo) {
  const RulesOfPaths loaded =
      LoadPaths({Write("a.yaml", "mappings:\n- {path: 1, exmpt: 2}\n")}, {}, false);
  ASSERT_EQ(loaded.result.problems.size(), 1u);
  EXPECT_THAT(loaded.result.problems[0].message, HasSubstr("a file of mappings, not of rules"));
}

}  // namespace load_paths_test
}  // namespace headgate::watch
