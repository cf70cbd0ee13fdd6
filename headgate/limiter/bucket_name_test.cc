#include "headgate/limiter/bucket_name.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "headgate/base/utf8.h"

namespace headgate::limiter {
namespace bucket_name_test {

rule::Match All(uint32_t steps) {
  rule::Match match;
  match.step_count = steps;
  return match;
}

std::string ShortKey(std::string_view value, size_t bytes_max) {
  const rule::Entry entry{"k", value};
  std::string key = "before ";
  AppendShortKey("edge", {&entry, 1}, All(1), bytes_max, key);
  EXPECT_EQ(key.substr(0, 7), "before ");
  return key.substr(7);
}

TEST(AppendShortKey, IsThePartOfTheNameThatIsOfTheKey) {
  const std::array<rule::Entry, 2> entries{
      {{.key = "api_key", .value = "a|b"}, {.key = "path", .value = "/x"}}};
  const std::string pattern = "path=/*";
  rule::Match match = All(2);
  match.steps[1].shared_pattern = &pattern;
  std::string name;
  AppendRuleBucket({}, "edge", entries, match, 3, name);
  std::string key;
  AppendShortKey("edge", entries, match, 128, key);
  EXPECT_EQ(key, "edge|api_key=a%7cb|path%3d/*");
  EXPECT_EQ(name, "hg:{r|" + key + "#3}");
}

TEST(AppendShortKey, CutsALongKeyButNotWithinACharacter) {
  EXPECT_EQ(ShortKey("12345", 12), "edge|k=12345");
  EXPECT_EQ(ShortKey("123456", 12), "edge|k=12…");
  EXPECT_EQ(ShortKey("1\n345", 12), "edge|k=1…") << "%0a does not fit";
  EXPECT_EQ(ShortKey("\n2345", 13), "edge|k=%0a…");
  const rule::Entry entry{"k", "v"};
  std::string key;
  AppendShortKey("a-domain", {&entry, 1}, All(1), 7, key);
  EXPECT_EQ(key, "a-do…");
}

TEST(AppendShortKey, NeedsOnlyTheRoomThatItStates) {
  const std::string hostile(100'000, '\xff');
  const rule::Entry entry{hostile, hostile};
  const std::array<rule::Entry, 3> entries{entry, entry, entry};
  for (const std::string_view domain : {std::string_view("d"), std::string_view(hostile)}) {
    std::string key;
    key.reserve(8 * 128);
    const char* const data = key.data();
    AppendShortKey(domain, entries, All(3), 128, key);
    EXPECT_EQ(key.data(), data) << "it has grown";
    EXPECT_LE(key.size(), 128u);
    EXPECT_TRUE(base::IsUtf8(key));
  }
}

}  // namespace bucket_name_test
}  // namespace headgate::limiter
