#include "headgate/jwt/json_members.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace headgate::jwt {
namespace {

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
  EXPECT_EQ(members.Find("p"), nullptr);
  EXPECT_EQ(members.Find("q"), nullptr);
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

}  // namespace
}  // namespace headgate::jwt
