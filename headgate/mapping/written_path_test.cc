#include "headgate/mapping/written_path.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headgate/wire/request_path.h"

namespace headgate::mapping {
namespace written_path_test {

TEST(WrittenPath, StandsForTheNormalizedPathOfTheRequest) {
  for (const auto& [text, path] :
       std::vector<std::pair<std::string_view, std::string>>{{"/", "/"},
                                                             {"/a/b/", "/a/b/"},
                                                             {"/50%", "/50%"},
                                                             {"/50%25", "/50%"},
                                                             {"/%2541", "/%41"},
                                                             {"/%252541", "/%2541"},
                                                             {"/%%25", "/%%"},
                                                             {"/%4", "/%4"},
                                                             {"/C#", "/C#"},
                                                             {"/caf\u00e9", "/caf\u00e9"}}) {
    EXPECT_EQ(ReadPath(text), path) << text;
  }
}

TEST(WrittenPath, IsNotAnotherSpelling) {
  for (const std::string_view text :
       {"", "a", "/%41", "/%61", "/%25%41", "/a%20b", "/C%23", "/%2f", "//", "/a//b", "/a/./b",
        "/a/../b", "/..", "/a\\b", "/a\tb"}) {
    EXPECT_EQ(ReadPath(text), std::nullopt) << text;
  }
}

TEST(WrittenPath, IsFoundForOtherSpellings) {
  for (const auto& [text, spelling] :
       std::vector<std::pair<std::string_view, std::string>>{{"/a", "/a"},
                                                             {"/%61", "/a"},
                                                             {"/a//b/../c", "/a/c"},
                                                             {"/a/../50%25", "/50%"},
                                                             {"/./%2541", "/%2541"},
                                                             {"/%25%341", "/%2541"},
                                                             {"/%2525", "/%2525"}}) {
    EXPECT_EQ(SpellingOfPath(text), spelling) << text;
  }
  for (const std::string_view text : {"", "a", "/%2f", "/..", "/a\\b", "//a"})
    EXPECT_EQ(SpellingOfPath(text), std::nullopt) << text;
}

// All paths of up to five of these characters, as requests have them.
TEST(WrittenPath, ExistsForEveryPath) {
  constexpr std::string_view kCharacters = "%24a/";
  constexpr size_t kLengthMax = 5;
  size_t count = 1;
  for (size_t length = 0; length <= kLengthMax; ++length, count *= kCharacters.size()) {
    for (size_t number = 0; number < count; ++number) {
      std::string target = "/";
      for (size_t rest = number, i = 0; i < length; ++i, rest /= kCharacters.size())
        target += kCharacters[rest % kCharacters.size()];
      std::string path;
      if (!wire::NormalizePath(target, path)) continue;
      const auto spelling = SpellingOfPath(target);
      ASSERT_TRUE(spelling) << target;
      EXPECT_EQ(ReadPath(*spelling), path) << target << " is written " << *spelling;
    }
  }
}

}  // namespace written_path_test
}  // namespace headgate::mapping
