#include "headgate/rule/wildcard_index.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headgate::rule {
namespace wildcard_index_test {

// The definition of a match: `*` stands for any text, every other character for itself.
bool Matches(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] != '*')
    return !text.empty() && text[0] == pattern[0] && Matches(pattern.substr(1), text.substr(1));
  for (size_t i = 0; i <= text.size(); ++i) {
    if (Matches(pattern.substr(1), text.substr(i))) return true;
  }
  return false;
}

WildcardIndex IndexOf(const std::vector<std::string>& patterns) {
  std::vector<WildcardIndex::Source> sources;
  for (uint32_t i = 0; i < patterns.size(); ++i)
    sources.push_back({.text = patterns[i], .target = i});
  return WildcardIndex(sources);
}

std::string FirstMatch(const std::vector<std::string>& patterns, const JoinedText& entry) {
  const WildcardIndex index = IndexOf(patterns);
  const Pattern* found = index.FirstMatch(entry);
  return found == nullptr ? "(none)" : found->text;
}

TEST(WildcardIndex, LetsAStarBeAnyTextOrNone) {
  EXPECT_EQ(FirstMatch({"k_foo*"}, {"k", "foobar"}), "k_foo*");
  EXPECT_EQ(FirstMatch({"k_foo*"}, {"k", "foo"}), "k_foo*");
  EXPECT_EQ(FirstMatch({"k_foo*"}, {"k", "fo"}), "(none)");
  EXPECT_EQ(FirstMatch({"k_*bar"}, {"k", "foobar"}), "k_*bar");
  EXPECT_EQ(FirstMatch({"k_*bar"}, {"k", "foobars"}), "(none)");
  EXPECT_EQ(FirstMatch({"k_a*b*c"}, {"k", "a--b--c"}), "k_a*b*c");
  EXPECT_EQ(FirstMatch({"k_a*b*c"}, {"k", "ac"}), "(none)");
}

TEST(WildcardIndex, NeverCountsALetterTwice) {
  EXPECT_EQ(FirstMatch({"k_ab*ba"}, {"k", "aba"}), "(none)");
  EXPECT_EQ(FirstMatch({"k_ab*ba"}, {"k", "abba"}), "k_ab*ba");
  EXPECT_EQ(FirstMatch({"k_a*a*a"}, {"k", "aa"}), "(none)");
}

TEST(WildcardIndex, MatchesKeyAndValueAsOneText) {
  EXPECT_EQ(FirstMatch({"a*"}, {"abc", "x"}), "a*");
  EXPECT_EQ(FirstMatch({"*"}, {"", ""}), "*");
  EXPECT_EQ(FirstMatch({"*_b*c"}, {"a", "b_c"}), "*_b*c");
}

TEST(WildcardIndex, TakesTheFirstInFileOrderNotTheLongest) {
  EXPECT_EQ(FirstMatch({"k_a*", "k_ab*"}, {"k", "abc"}), "k_a*");
  EXPECT_EQ(FirstMatch({"k_ab*", "k_a*"}, {"k", "abc"}), "k_ab*");
  EXPECT_EQ(FirstMatch({"k_ab*", "k_a*"}, {"k", "axc"}), "k_a*");
}

TEST(WildcardIndex, AgreesWithTheDefinitionOverRandomPatterns) {
  std::mt19937_64 random(20'261'121);
  const auto text = [&](std::string_view letters, size_t size_max) {
    std::string out;
    for (size_t size = random() % (size_max + 1); out.size() < size;)
      out += letters[random() % letters.size()];
    return out;
  };
  int matched = 0;
  for (int round = 0; round < 4'000; ++round) {
    std::vector<std::string> patterns;
    for (size_t count = 1 + random() % 12; patterns.size() < count;) {
      std::string pattern = text("ab_*", 6);
      if (IsPattern(pattern)) patterns.push_back(pattern);
    }
    const WildcardIndex index = IndexOf(patterns);
    for (int i = 0; i < 30; ++i) {
      const std::string key = text("ab_", 4);
      const std::string value = text("ab_", 5);
      const std::string joined = key + "_" + value;
      const auto expected =
          std::find_if(patterns.begin(), patterns.end(),
                       [&](const std::string& pattern) { return Matches(pattern, joined); });
      const Pattern* found = index.FirstMatch({key, value});
      ASSERT_EQ(found == nullptr, expected == patterns.end()) << joined;
      if (found == nullptr) continue;
      ++matched;
      ASSERT_EQ(found->target, expected - patterns.begin()) << joined << " " << found->text;
    }
  }
  EXPECT_GT(matched, 10'000);
}

}  // namespace wildcard_index_test
}  // namespace headgate::rule
