#include "headgate/store/dynamodb/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

#include "headgate/store/cas/removal.h"

namespace headgate::store::dynamodb {
namespace messages_test {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::UnorderedElementsAre;

boost::json::value Json(const std::string& text) { return boost::json::parse(text); }

TEST(Messages, AskForACurrentItem) {
  EXPECT_EQ(Json(GetBody("limits", "hg:{a|\"b\"}")), Json(R"({
    "TableName": "limits", "Key": {"name": {"S": "hg:{a|\"b\"}"}}, "ConsistentRead": true})"));
}

TEST(Messages, ReplaceAnItemOfTheExpectedVersion) {
  EXPECT_EQ(
      Json(PutBody("limits", "k", "one", cas::Version{7}, {.number = 18'446'744'073'709'551'615u},
                   base::Instant{1'000'000'000'001})),
      Json(R"({
    "TableName": "limits", "Key": {"name": {"S": "k"}},
    "UpdateExpression": "SET #s = :s, #v = :v, #e = :e", "ConditionExpression": "#v = :o",
    "ExpressionAttributeNames": {"#s": "state", "#v": "version", "#e": "expires"},
    "ExpressionAttributeValues": {":s": {"B": "b25l"}, ":v": {"N": "18446744073709551615"},
                                  ":e": {"N": "1121"}, ":o": {"N": "7"}}})"));
  static_assert(cas::kRemovalGrace == std::chrono::seconds(120));
}

TEST(Messages, MakeAnItemIfThereIsNone) {
  const auto body = Json(PutBody("limits", "k", "", std::nullopt, {.number = 1}, {}));
  EXPECT_EQ(body.at("ConditionExpression"), "attribute_not_exists(#n)");
  EXPECT_EQ(body.at("ExpressionAttributeNames").at("#n"), "name");
  EXPECT_FALSE(body.at("ExpressionAttributeValues").as_object().contains(":o"));
}

TEST(Messages, ReplaceAnItemWithoutAVersion) {
  const auto body = Json(PutBody("limits", "k", "", cas::Version{0}, {.number = 1}, {}));
  EXPECT_EQ(body.at("ConditionExpression"), "attribute_exists(#n) AND attribute_not_exists(#v)");
}

TEST(Messages, RemoveAnItemOfTheExpectedVersion) {
  EXPECT_EQ(Json(DeleteBody("limits", "k", {.number = 7})), Json(R"({
    "TableName": "limits", "Key": {"name": {"S": "k"}}, "ConditionExpression": "#v = :o",
    "ExpressionAttributeNames": {"#v": "version"},
    "ExpressionAttributeValues": {":o": {"N": "7"}}})"));
}

TEST(Messages, EveryNameHasAKeyOfItsOwn) {
  EXPECT_EQ(KeyOf("hg:{a|☃}"), "hg:{a|☃}");
  EXPECT_EQ(KeyOf(std::string(200, 'a')), std::string(200, 'a'));
  for (const std::string& name : {std::string(), std::string(201, 'a'), std::string("a\xff"),
                                  std::string("a\xfe"), std::string("\xed\xa0\x80")})
    EXPECT_THAT(KeyOf(name), MatchesRegex("sha256:[0-9a-f]{32}")) << name;
  EXPECT_NE(KeyOf("a\xff"), KeyOf("a\xfe"));
}

TEST(Messages, ReadAnItem) {
  EXPECT_EQ(*ParseItem("{}"), std::nullopt);
  const auto item = ParseItem(
      R"({"Item": {"name": {"S": "k"}, "version": {"N": "18446744073709551615"},
                   "state": {"B": "b25l"}, "expires": {"N": "1"}}})");
  ASSERT_TRUE(item.ok()) << item.status();
  EXPECT_EQ((*item)->bytes, "one");
  EXPECT_EQ((*item)->version, cas::Version{18'446'744'073'709'551'615u});
}

TEST(Messages, TakeAForeignItemForADamagedOne) {
  for (const std::string text :
       {R"({"Item": {}})", R"({"Item": {"version": {"S": "x"}, "state": {"S": "y"}}})",
        R"({"Item": {"version": {"N": "1.5"}, "state": {"B": "?"}}})",
        R"({"Item": {"state": 1}})"}) {
    const auto item = ParseItem(text);
    ASSERT_TRUE(item.ok() && item->has_value()) << text;
    EXPECT_EQ((*item)->bytes, "");
    EXPECT_EQ((*item)->version, cas::Version{0});
  }
}

TEST(Messages, RefuseAnAnswerThatIsNone) {
  for (const std::string text : {"", "[]", "{", R"({"Item": 1})"})
    EXPECT_TRUE(absl::IsUnknown(ParseItem(text).status())) << text;
}

TEST(Messages, WriteAHeartbeatAndReadThoseOfOthers) {
  EXPECT_EQ(Json(HeartbeatBody("limits", "k", "a1", 5, 9, {"b2", "c3"})), Json(R"({
    "TableName": "limits", "Key": {"name": {"S": "k"}},
    "UpdateExpression": "SET #i = :t, #e = :e REMOVE #r0, #r1",
    "ExpressionAttributeNames": {"#i": "i:a1", "#e": "expires", "#r0": "i:b2", "#r1": "i:c3"},
    "ExpressionAttributeValues": {":t": {"N": "5"}, ":e": {"N": "9"}},
    "ReturnValues": "ALL_NEW"})"));
  EXPECT_EQ(Json(HeartbeatBody("limits", "k", "a1", 5, 9, {})).at("UpdateExpression"),
            "SET #i = :t, #e = :e");
  EXPECT_EQ(Json(LeaveBody("limits", "k", "a1")), Json(R"({
    "TableName": "limits", "Key": {"name": {"S": "k"}}, "UpdateExpression": "REMOVE #i",
    "ExpressionAttributeNames": {"#i": "i:a1"}})"));
  EXPECT_THAT(*ParseHeartbeats(R"({"Attributes": {"name": {"S": "k"}, "i:a1": {"N": "5"},
                                                  "expires": {"N": "9"}, "i:b2": {"N": "4"}}})"),
              UnorderedElementsAre(Heartbeat{.instance = "a1", .time_ms = 5},
                                   Heartbeat{.instance = "b2", .time_ms = 4}));
  for (const std::string text : {"", "{}", R"({"Attributes": 1})"})
    EXPECT_FALSE(ParseHeartbeats(text).ok()) << text;
}

absl::StatusCode CodeOf(int http_status, const std::string& type, const std::string& message = "") {
  return ParseRefusal(http_status, R"({"__type": "com.amazonaws.dynamodb.v20120810#)" + type +
                                       R"(", "message": ")" + message + R"("})")
      .status.code();
}

TEST(Messages, SayWhatARefusalMeans) {
  using enum absl::StatusCode;
  EXPECT_EQ(CodeOf(400, "ConditionalCheckFailedException"), kAborted);
  EXPECT_EQ(CodeOf(400, "ProvisionedThroughputExceededException"), kResourceExhausted);
  EXPECT_EQ(CodeOf(400, "ThrottlingException"), kResourceExhausted);
  EXPECT_EQ(CodeOf(400, "RequestLimitExceeded"), kResourceExhausted);
  EXPECT_EQ(CodeOf(400, "ResourceNotFoundException"), kNotFound);
  EXPECT_EQ(CodeOf(400, "ResourceInUseException"), kAlreadyExists);
  EXPECT_EQ(CodeOf(400, "AccessDeniedException"), kPermissionDenied);
  EXPECT_EQ(CodeOf(400, "UnrecognizedClientException"), kPermissionDenied);
  EXPECT_EQ(CodeOf(400, "ItemCollectionSizeLimitExceededException"), kOutOfRange);
  EXPECT_EQ(CodeOf(400, "ValidationException", "Item size has exceeded the maximum allowed size"),
            kOutOfRange);
  EXPECT_EQ(CodeOf(400, "ValidationException",
                   "Item size to update has exceeded the maximum allowed size"),
            kOutOfRange);
  EXPECT_EQ(CodeOf(400, "ValidationException", "The provided key element does not match"),
            kInvalidArgument);
  EXPECT_EQ(CodeOf(400, "UnknownOperationException"), kUnimplemented);
  EXPECT_EQ(CodeOf(500, "InternalServerError"), kUnknown);
  EXPECT_EQ(CodeOf(503, "ServiceUnavailable"), kUnknown);
  EXPECT_EQ(ParseRefusal(413, "").status.code(), kOutOfRange);
  EXPECT_EQ(ParseRefusal(502, "<html>").status.code(), kUnknown);
  EXPECT_EQ(ParseRefusal(403, "").status.code(), kPermissionDenied);
}

TEST(Messages, QuoteTheService) {
  EXPECT_EQ(ParseRefusal(400, R"({"__type": "a#AccessDeniedException", "Message": "no"})")
                .status.message(),
            "DynamoDB answered 400 AccessDeniedException: no");
  EXPECT_LT(ParseRefusal(400, R"({"message": ")" + std::string(10'000, 'x') + R"("})")
                .status.message()
                .size(),
            400u);
}

TEST(Messages, TellWhetherOtherCredentialsOrAnotherClockWouldHelp) {
  const Refusal expired = ParseRefusal(400, R"({"__type": "a#ExpiredTokenException"})");
  EXPECT_TRUE(expired.is_about_credentials);
  EXPECT_FALSE(expired.is_about_time);
  const Refusal late = ParseRefusal(400, R"({"__type": "a#InvalidSignatureException",
               "message": "Signature expired: 20261125T115500Z is now earlier than …"})");
  EXPECT_TRUE(late.is_about_time);
  EXPECT_FALSE(late.is_about_credentials);
  const Refusal denied = ParseRefusal(400, R"({"__type": "a#AccessDeniedException"})");
  EXPECT_FALSE(denied.is_about_credentials);
  EXPECT_FALSE(denied.is_about_time);
}

}  // namespace messages_test
}  // namespace headgate::store::dynamodb
