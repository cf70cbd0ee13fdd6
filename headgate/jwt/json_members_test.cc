#include "headgate/jwt/json_members.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace headgate::jwt {
namespace json_members_test {

using ::testing::ElementsAre;

TEST(JsonMembers, FindsMembersAtAnyDepth) {
  JsonMembers members;
  ASSERT_TRUE(
      members.Parse(R"({"sub":"a\u00e9","n":-1.5,"t":true,"o":{"p":{"q":"deep"}},"z":null})"));
  EXPECT_EQ(members.Find("sub")->text, "a\xc3\xa9");
  EXPECT_EQ(members.Find("n")->text, "-1.5");
  EXPECT_EQ(members.Find("t")->text, "true");
  EXPECT_EQ(members.Find("z")->kind, JsonMembers::Kind::kNull);
  EXPECT_EQ(members.Find(std::vector<std::string_view>{"o", "p", "q"})->text, "deep");
  EXPECT_EQ(members.Find("o")->kind, JsonMembers::Kind::kObject);
  EXPECT_FALSE(members.Find("p"));
  EXPECT_FALSE(members.Find("q"));
  EXPECT_FALSE(members.Find(std::vector<std::string_view>{"sub", "x"}));
  EXPECT_FALSE(members.Find(""));
  EXPECT_FALSE(members.Find(std::vector<std::string_view>{}));
}

TEST(JsonMembers, KeepsOnlyTheNamesThatAreWanted) {
  JsonMembers members;
  const std::vector<std::string_view> wanted = {"alg", "kid"};
  ASSERT_TRUE(members.ParseOnly(
      R"({"x":{"alg":"no"},"\u0061lg":"HS256","y":[1,{"kid":"no"}],"x":2,"kid":{"x":"in"}})",
      wanted));
  EXPECT_EQ(members.Find("alg")->text, "HS256");
  EXPECT_EQ(members.Find(std::vector<std::string_view>{"kid", "x"})->text, "in");
  EXPECT_FALSE(members.Find("x"));
  EXPECT_FALSE(members.Find("y"));
  EXPECT_FALSE(members.ParseOnly(R"({"alg":"none","alg":"HS256"})", wanted));
}

// A path for each member would take 4 MiB here, and 200 times this JSON in the second object.
TEST(JsonMembers, TakesMemoryInProportionToTheText) {
  const std::string name(2900, 'p');
  std::string items = "{\"sub\":\"x\",\"" + name + "\":[0";
  for (int i = 0; i < 1420; ++i) items += ",0";
  std::string names = "{\"" + name + "\":{\"0\":0";
  for (int i = 1; i < 400; ++i) names += ",\"" + std::to_string(i) + "\":0";
  JsonMembers members;
  for (const std::string& json : {items + "]}", names + "}}"}) {
    ASSERT_TRUE(members.Parse(json));
    EXPECT_LE(members.bytes(), 4 * json.size());
  }
  EXPECT_EQ(members.Find(std::vector<std::string_view>{name, "399"})->text, "0");
}

TEST(JsonMembers, RefusesMoreMembersThanItsBound) {
  const auto with_members = [](size_t count) {
    std::string json = "{\"0\":0";
    for (size_t i = 1; i < count; ++i) json += ",\"" + std::to_string(i) + "\":0";
    return json + "}";
  };
  JsonMembers members;
  EXPECT_TRUE(members.Parse(with_members(JsonMembers::kMembersMax)));
  EXPECT_FALSE(members.Parse(with_members(JsonMembers::kMembersMax + 1)));
}

TEST(JsonMembers, ListsTheStringsOfAnArray) {
  JsonMembers members;
  ASSERT_TRUE(members.Parse(R"({"aud":["a",1,["x"],{"y":"z"},"b"],"auda":["c"],"b":"d"})"));
  EXPECT_THAT(members.StringsIn("aud"), ElementsAre("a", "b"));
  EXPECT_EQ(members.Find("b")->text, "d");
}

TEST(JsonMembers, RefusesDuplicatesAtEveryDepth) {
  JsonMembers members;
  for (const std::string_view json :
       {R"({"a":1,"a":1})", R"({"o":{"a":1,"a":2}})", R"({"\u0061":1,"a":2})", R"({"o":{},"o":{}})",
        R"({"a\u0000b":1})", R"({"":1})"}) {
    EXPECT_FALSE(members.Parse(json)) << json;
  }
  EXPECT_TRUE(members.Parse(R"({"a":[{"x":1},{"x":2}],"b":[[1],[1]]})"));
}

TEST(JsonMembers, RefusesWhatIsNotOneObject) {
  JsonMembers members;
  for (const std::string_view json :
       {"", "1", "[]", "\"a\"", "{", "{} {}", "{}x", "{'a':1}", "nul"}) {
    EXPECT_FALSE(members.Parse(json)) << json;
  }
  std::string deep;
  for (size_t i = 0; i < JsonMembers::kDepthMax + 1; ++i) deep += "{\"a\":";
  EXPECT_FALSE(members.Parse(deep));
}

}  // namespace json_members_test
}  // namespace headgate::jwt
