#include "headgate/wire/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace headgate::wire {
namespace json_test {

Json Parsed(std::string_view text) {
  const auto value = Json::Parse(text);
  EXPECT_TRUE(value.has_value()) << text;
  return value.value_or(Json());
}

TEST(Json, AnObjectKeepsTheOrderOfItsMembers) {
  Json object = Json::Object({{"z", 1}, {"a", "text"}, {"m", nullptr}});
  object["b"] = true;
  object["z"] = 2;
  EXPECT_EQ(object.Text(), R"({"z":2,"a":"text","m":null,"b":true})");
}

TEST(Json, NumbersAreWrittenAsTheyAre) {
  Json list;
  list.Append(0);
  list.Append(-1);
  list.Append(std::numeric_limits<int64_t>::min());
  list.Append(std::numeric_limits<uint64_t>::max());
  list.Append(0.5);
  list.Append(std::numeric_limits<double>::infinity());
  EXPECT_EQ(list.Text(), "[0,-1,-9223372036854775808,18446744073709551615,0.5,null]");
}

TEST(Json, IndentedTextHasALineForEachValue) {
  const Json value =
      Json::Object({{"list", Json::Array({1, Json::Array(), Json::Object()})}, {"last", false}});
  EXPECT_EQ(value.IndentedText(2),
            "{\n  \"list\": [\n    1,\n    [],\n    {}\n  ],\n  \"last\": false\n}");
}

TEST(Json, TextIsEscapedAndInvalidUtf8IsReplaced) {
  EXPECT_EQ(Json("a\"\n\xFFz").Text(), "\"a\\\"\\n\xEF\xBF\xBDz\"");
}

TEST(Json, ParsedTextIsWrittenAsItWas) {
  const std::string text =
      R"({"a":[1,-2,0.5,"é",null,true,false],"b":{"c":{}},"d":18446744073709551615})";
  EXPECT_EQ(Parsed(text).Text(), text);
  EXPECT_EQ(Parsed(Parsed(text).IndentedText(3)), Parsed(text));
}

TEST(Json, TextThatIsNotOneValueIsRefused) {
  for (const char* const text : {"", "{", "[1,]", "{} {}", "{a:1}", "'a'", "01", "\"\xFF\"", "nan"})
    EXPECT_EQ(Json::Parse(text), std::nullopt) << text;
}

TEST(Json, DepthIsBounded) {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_TRUE(Json::Parse(nested(Json::kDepthMax)).has_value());
  EXPECT_EQ(Json::Parse(nested(Json::kDepthMax + 1)), std::nullopt);
}

TEST(Json, TheNumberOfValuesIsBounded) {
  EXPECT_TRUE(Json::Parse("[1,{\"a\":2}]", 4).has_value());
  EXPECT_EQ(Json::Parse("[1,{\"a\":2}]", 3), std::nullopt);
}

TEST(Json, SpaceAroundTheValueIsAllowed) { EXPECT_EQ(Parsed(" \n[1 ] \r\n\t"), Json::Array({1})); }

TEST(Json, TheLastOfTwoEqualNamesCounts) { EXPECT_EQ(Parsed(R"({"a":1,"a":2})")["a"].whole(), 2); }

TEST(Json, AbsentPartsReadAsNull) {
  const Json value = Parsed(R"({"list":[{"name":"x"}],"text":"t"})");
  EXPECT_EQ(value["list"][size_t{0}]["name"].text(), "x");
  EXPECT_TRUE(value["list"][size_t{1}]["name"].is_null());
  EXPECT_TRUE(value["text"]["name"].is_null());
  EXPECT_EQ(value.Find("none"), nullptr);
  EXPECT_TRUE(value["text"].items().empty());
  EXPECT_TRUE(value["text"].members().empty());
}

TEST(Json, AValueOfAnotherTypeReadsAsTheOtherValue) {
  const Json value = Parsed(R"({"text":"1","number":2,"truth":true})");
  EXPECT_EQ(value["text"].whole(7), 7);
  EXPECT_EQ(value["text"].number(7), 7);
  EXPECT_EQ(value["number"].text("other"), "other");
  EXPECT_EQ(value["number"].truth(true), true);
  EXPECT_EQ(value["truth"].count(3), 3u);
}

TEST(Json, NumbersOutOfRangeReadAsTheNearestInRange) {
  EXPECT_EQ(Json(-5).count(), 0u);
  EXPECT_EQ(Json(1e30).count(), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(Json(1e30).whole(), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(Json(-1e30).whole(), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(Json(std::numeric_limits<uint64_t>::max()).whole(),
            std::numeric_limits<int64_t>::max());
  EXPECT_EQ(Json(-2).number(), -2.0);
  EXPECT_FALSE(Json(2.0).is_whole());
  EXPECT_TRUE(Json(2).is_whole());
}

}  // namespace json_test
}  // namespace headgate::wire
