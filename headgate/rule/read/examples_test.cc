// The examples in examples/ and docs/reference/rules.md load.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "headgate/rule/explain.h"
#include "headgate/rule/read/fields.h"
#include "headgate/rule/read/load.h"
#include "headgate/rule/read/refusal_reader.h"
#include "tests/source_dir.h"

namespace headgate::rule::read {
namespace examples_test {

const std::filesystem::path kSource = SourceDir();

std::string TextOf(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

// The text between `begin` and the next `end`.
std::string Between(const std::string& text, std::string_view begin, std::string_view end) {
  const size_t from = text.find(begin);
  EXPECT_NE(from, std::string::npos) << begin;
  if (from == std::string::npos) return {};
  return text.substr(from + begin.size(),
                     text.find(end, from + begin.size()) - from - begin.size());
}

std::vector<RuleFile> ExampleFiles() {
  std::vector<RuleFile> files;
  for (const auto& entry : std::filesystem::directory_iterator(kSource / "examples" / "rules")) {
    files.push_back({.name = entry.path().filename(), .text = TextOf(entry.path())});
  }
  return files;
}

TEST(Examples, LoadTogetherWithoutAWarning) {
  const LoadResult result = LoadRules(ExampleFiles());
  EXPECT_EQ(Describe(result.problems), "");
  EXPECT_EQ(Describe(result.warnings), "");
}

TEST(Examples, DoWhatTheirCommentsSay) {
  const LoadResult result = LoadRules(ExampleFiles());
  ASSERT_TRUE(result.ok());
  const auto rule = [&](std::vector<Entry> entries) {
    return Explain(*result.rules, "edge", entries).rule;
  };
  EXPECT_EQ(rule({{"api_key", "any"}})->label(), "per-key");
  EXPECT_EQ(rule({{"api_key", "any"}, {"path", "/search?q=1"}})->limits.size(), 2u);
  EXPECT_EQ(rule({{"api_key", "gold-17"}})->label(), "gold");
  EXPECT_EQ(rule({{"api_key", "gold-17"}, {"path", "/search"}}), nullptr);
  EXPECT_TRUE(rule({{"api_key", "monitoring"}})->unlimited);
  EXPECT_TRUE(rule({{"api_key", "leaked-4711"}})->limits[0].limit.denies_all());
  EXPECT_TRUE(rule({{"remote_address", "10.0.0.1"}})->shadow_mode);
  Match match;
  EXPECT_TRUE(result.rules->Find("login", {}, match));
  EXPECT_TRUE(match.all_or_nothing);
}

TEST(RulesReference, ShowsAFileThatLoads) {
  const std::string page = TextOf(kSource / "docs" / "reference" / "rules.md");
  const LoadResult result = LoadRules(
      std::vector<RuleFile>{{.name = "rules.md", .text = Between(page, "```yaml\n", "```")}});
  EXPECT_EQ(Describe(result.problems), "");
  EXPECT_EQ(Describe(result.warnings), "");
}

TEST(RulesReference, ShowsOneLinersThatLoad) {
  const std::string page = TextOf(kSource / "docs" / "reference" / "rules.md");
  const std::string lines = Between(page, "[first_hit] [queue]\n\n", "\n\n");
  LoadOptions options;
  for (size_t at = 0; at < lines.size();) {
    const size_t end = std::min(lines.find('\n', at), lines.size());
    options.one_liners.push_back(lines.substr(at, end - at));
    at = end + 1;
  }
  EXPECT_EQ(options.one_liners.size(), 4u);
  const LoadResult result = LoadRules({}, options);
  EXPECT_EQ(Describe(result.problems), "");
  EXPECT_EQ(Describe(result.warnings), "");
}

TEST(HttpReference, ShowsRefusalsThatLoad) {
  const std::string page = TextOf(kSource / "docs" / "reference" / "http.md");
  for (const std::string_view type : {"application/problem+json", "text/plain; charset=utf-8"}) {
    const std::string begin = "```yaml\ncontent_type: " + std::string(type) + "\n";
    const LoadedRefusal loaded =
        LoadRefusal("http.md", begin.substr(8) + Between(page, begin, "```"));
    ASSERT_NE(loaded.refusal, nullptr) << Describe(loaded.problems);
    std::string body;
    loaded.refusal->AppendBody({.rule = "r", .limit = 5, .seconds = 7}, body);
    if (type == "application/problem+json") {
      EXPECT_EQ(nlohmann::json::parse(body)["retry_after"], 7);
    } else {
      EXPECT_EQ(body, "Too many requests: 5 are allowed. Try again in 7 s.\n");
    }
  }
}

TEST(RulesReference, NamesEveryWord) {
  const std::string page = TextOf(kSource / "docs" / "reference" / "rules.md");
  for (size_t i = 0; i < kWordCount; ++i) {
    const std::string_view word = read::TextOf(static_cast<Word>(i));
    EXPECT_THAT(page, ::testing::HasSubstr("\n| `" + std::string(word) + "` |"));
  }
}

}  // namespace examples_test
}  // namespace headgate::rule::read
