#include "headgate/store/dynamodb/table_maker.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "headgate/client/http/test_http_server.h"

namespace headgate::store::dynamodb {
namespace table_maker_test {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A server that has at most one table.
class FakeTables {
 public:
  client::http::RigReply operator()(const client::http::RigRequest& request) {
    if (request.method == "GET") return {};
    const std::string target = request.fields.at("x-amz-target");
    const std::string action = target.substr(target.find('.') + 1);
    actions.push_back(action);
    if (action == "CreateTable") {
      created = request.body;
      if (!key.empty()) return {.status = 400, .body = R"({"__type":"a#ResourceInUseException"})"};
      key = "name";
      return {.body = "{}"};
    }
    if (action == "DescribeTable") {
      if (key.empty())
        return {.status = 400, .body = R"({"__type":"a#ResourceNotFoundException"})"};
      const bool is_active = described_until_active == 0;
      if (!is_active) --described_until_active;
      return {.body = fmt::format(
                  R"({{"Table":{{"TableStatus":"{}","KeySchema":[{{"AttributeName":"{}",)"
                  R"("KeyType":"HASH"}}],"AttributeDefinitions":[{{"AttributeName":"{}",)"
                  R"("AttributeType":"{}"}}]}}}})",
                  is_active ? "ACTIVE" : "CREATING", key, key, type)};
    }
    if (action == "DescribeTimeToLive") {
      return {.body = fmt::format(
                  R"({{"TimeToLiveDescription":{{"TimeToLiveStatus":"{}","AttributeName":"{}"}}}})",
                  expiry.empty() ? "DISABLED" : "ENABLED", expiry)};
    }
    if (!knows_expiry)
      return {.status = 400, .body = R"({"__type":"a#UnknownOperationException"})"};
    expiry = "expires";
    return {.body = "{}"};
  }

  std::string key, type = "S", expiry, created;
  int described_until_active = 0;
  bool knows_expiry = true;
  std::vector<std::string> actions;
};

absl::StatusOr<TableMade> Make(FakeTables& tables, base::Duration timeout = 20s) {
  client::http::HttpRig server(
      [&](const client::http::RigRequest& request) { return tables(request); });
  base::SystemClock clock;
  net::EventLoop loop(clock);
  CredentialSource credentials(
      loop, clock, {.environment = [](const char* name) {
        return std::string(std::string_view(name).starts_with("AWS_ACCESS") ||
                                   std::string_view(name).starts_with("AWS_SECRET")
                               ? "x"
                               : "");
      }});
  client::http::Client http(loop, {.origin = server.origin()});
  TableClient client(http, clock, credentials,
                     {.name = "limits", .region = "local", .endpoint = server.origin()});
  std::optional<absl::StatusOr<TableMade>> made;
  TableMaker maker(client, loop, timeout, [&](auto result) { made = std::move(result); });
  maker.Begin();
  EXPECT_TRUE(loop.RunUntil([&] { return made.has_value(); }, 20s));
  return *std::move(made);
}

TEST(TableMaker, MakesATableAndTurnsOnItsTimeToLive) {
  FakeTables tables;
  tables.described_until_active = 2;
  const auto made = Make(tables);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_FALSE(made->was_there);
  EXPECT_EQ(made->without_expiry, "");
  EXPECT_EQ(tables.expiry, "expires");
  EXPECT_EQ(tables.created,
            R"({"TableName":"limits","BillingMode":"PAY_PER_REQUEST",)"
            R"("AttributeDefinitions":[{"AttributeName":"name","AttributeType":"S"}],)"
            R"("KeySchema":[{"AttributeName":"name","KeyType":"HASH"}]})");
  EXPECT_THAT(tables.actions,
              ElementsAre("DescribeTable", "CreateTable", "DescribeTable", "DescribeTable",
                          "DescribeTable", "DescribeTimeToLive", "UpdateTimeToLive"));
}

TEST(TableMaker, LeavesATableThatIsThere) {
  FakeTables tables;
  tables.key = "name";
  tables.expiry = "expires";
  const auto made = Make(tables);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_TRUE(made->was_there);
  EXPECT_THAT(tables.actions, ElementsAre("DescribeTable", "DescribeTimeToLive"));
}

TEST(TableMaker, SaysThatATableHasAnotherKey) {
  FakeTables tables;
  tables.key = "user";
  const auto made = Make(tables);
  EXPECT_TRUE(absl::IsFailedPrecondition(made.status()));
  EXPECT_THAT(std::string(made.status().message()),
              HasSubstr("a table limits with another key (user HASH; types user S)"));
  FakeTables numbers;
  numbers.key = "name";
  numbers.type = "N";
  EXPECT_TRUE(absl::IsFailedPrecondition(Make(numbers).status()));
}

TEST(TableMaker, SaysThatTheTimeToLiveIsNotOn) {
  FakeTables tables;
  tables.knows_expiry = false;
  EXPECT_THAT(Make(tables)->without_expiry, HasSubstr("UnknownOperationException"));
  tables.expiry = "other";
  EXPECT_THAT(Make(tables)->without_expiry, HasSubstr("on for the attribute 'other'"));
}

TEST(TableMaker, GivesUpATableThatDoesNotBecomeActive) {
  FakeTables tables;
  tables.described_until_active = 1'000;
  EXPECT_TRUE(absl::IsDeadlineExceeded(Make(tables, 500ms).status()));
}

}  // namespace table_maker_test
}  // namespace headgate::store::dynamodb
