// The store against a server whose answers the test chooses. tests/dynamodb has a real one.
#include "headgate/store/dynamodb/state_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <optional>

#include "headgate/client/http/test_http_server.h"

namespace headgate::store::dynamodb {
namespace state_store_test {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

client::http::RigReply Refusal(int status, const std::string& type,
                               const std::string& message = "why") {
  return {.status = status,
          .body = R"({"__type": "com.amazonaws.dynamodb.v20120810#)" + type + R"(", "message": ")" +
                  message + R"("})",
          .fields = {"Date: Tue, 15 Nov 1994 08:12:31 GMT"}};
}

Environment WithKeys() {
  return [](const char* name) {
    const std::string variable = name;
    return std::string(variable == "AWS_ACCESS_KEY_ID"       ? "AKID"
                       : variable == "AWS_SECRET_ACCESS_KEY" ? "secret"
                       : variable == "AWS_SESSION_TOKEN"     ? "token"
                                                             : "");
  };
}

class TestStore {
 public:
  explicit TestStore(const client::http::HttpRig& server, StateStoreOptions options = {},
                     Environment environment = WithKeys())
      : TestStore(server.origin(), std::move(options), std::move(environment)) {}
  TestStore(const client::http::Origin& origin, StateStoreOptions options, Environment environment)
      : credentials(loop, clock, {.environment = std::move(environment)}),
        http(loop, {.origin = origin}),
        client(http, clock, credentials,
               {.name = "limits", .region = "eu-west-1", .endpoint = origin}),
        store(client, loop, With(std::move(options)), counters) {}

  absl::StatusOr<std::optional<cas::Versioned>> Get(std::string_view name,
                                                    base::Duration time = 10s) {
    std::optional<absl::StatusOr<std::optional<cas::Versioned>>> answer;
    store.Get(name, loop.Now() + time, [&](auto given) { answer = std::move(given); });
    EXPECT_TRUE(Until([&] { return answer.has_value(); }));
    return *std::move(answer);
  }
  absl::StatusOr<cas::Version> Put(std::string_view name, std::optional<std::string_view> bytes,
                                   std::optional<cas::Version> expected,
                                   base::Duration time = 10s) {
    std::optional<absl::StatusOr<cas::Version>> answer;
    store.Put({.name = name, .bytes = bytes, .expected = expected, .deadline = loop.Now() + time},
              [&](auto given) { answer = std::move(given); });
    EXPECT_TRUE(Until([&] { return answer.has_value(); }));
    return *std::move(answer);
  }
  bool Until(const std::function<bool()>& done) { return loop.RunUntil(done, 20s); }

  std::vector<bool> opened;
  std::vector<absl::Status> usable;
  LoopStoreCounters counters;
  base::SystemClock clock;
  net::EventLoop loop{clock};
  CredentialSource credentials;
  client::http::Client http;
  TableClient client;
  StateStore store;

 private:
  StateStoreOptions With(StateStoreOptions options) {
    options.on_breaker = [this](bool open) { opened.push_back(open); };
    options.on_usable = [this](const absl::Status& state) { usable.push_back(state); };
    return options;
  }
};

TEST(StateStore, SendsSignedRequests) {
  client::http::HttpRig server(
      [](const client::http::RigRequest&) { return client::http::RigReply{.body = "{}"}; });
  TestStore store(server);
  EXPECT_EQ(*store.Get("k"), std::nullopt);
  ASSERT_TRUE(store.Put("k", "one", std::nullopt).ok());
  auto requests = server.requests();
  for (auto& request : requests) {
    if (request.method == "GET") continue;
    EXPECT_EQ(request.target, "/");
    EXPECT_EQ(request.fields["content-type"], "application/x-amz-json-1.0");
    EXPECT_EQ(request.fields["x-amz-security-token"], "token");
    EXPECT_EQ(request.fields["x-amz-date"].size(), 16u);
    EXPECT_THAT(
        request.fields["authorization"],
        StartsWith("AWS4-HMAC-SHA256 Credential=AKID/" + request.fields["x-amz-date"].substr(0, 8) +
                   "/eu-west-1/dynamodb/aws4_request, SignedHeaders=content-type;host;"
                   "x-amz-date;x-amz-security-token;x-amz-target, Signature="));
  }
  EXPECT_EQ(requests[requests.size() - 2].fields["x-amz-target"], "DynamoDB_20120810.GetItem");
  EXPECT_EQ(requests.back().fields["x-amz-target"], "DynamoDB_20120810.UpdateItem");
  EXPECT_THAT(requests.back().body, HasSubstr("attribute_not_exists"));
}

TEST(StateStore, TellsWhatBecameOfAWrite) {
  client::http::RigReply reply;
  client::http::HttpRig server([&](const client::http::RigRequest& request) {
    return request.method == "GET" ? client::http::RigReply{} : reply;
  });
  TestStore store(server, {.breaker = {.failures_in_row = 1000}});
  const auto put = [&](client::http::RigReply next, base::Duration time = 10s) {
    reply = std::move(next);
    return store.Put("k", "x", cas::Version{7}, time).status().code();
  };
  EXPECT_EQ(put(Refusal(400, "ConditionalCheckFailedException")), absl::StatusCode::kAborted);
  // Not applied.
  EXPECT_EQ(put(Refusal(400, "ProvisionedThroughputExceededException")),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(put(Refusal(400, "ValidationException", "Item size has exceeded the maximum")),
            absl::StatusCode::kOutOfRange);
  EXPECT_EQ(put(Refusal(400, "AccessDeniedException")), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(put(Refusal(400, "ResourceNotFoundException")), absl::StatusCode::kNotFound);
  // May have been applied.
  EXPECT_EQ(put(Refusal(500, "InternalServerError")), absl::StatusCode::kUnknown);
  EXPECT_EQ(put({.status = 502, .body = "<html>"}), absl::StatusCode::kUnknown);
  EXPECT_EQ(put({.breaks = true}), absl::StatusCode::kUnknown);
  store.http.WarmUp();
  ASSERT_TRUE(store.Until([&] { return store.http.connections() == 1; }));
  EXPECT_EQ(put({.is_silent = true}, 50ms), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(store.counters.calls_throttled.value(), 1u);
  EXPECT_EQ(store.counters.calls_denied.value(), 1u);
  EXPECT_EQ(store.counters.calls_timed_out.value(), 1u);
  EXPECT_EQ(store.counters.calls_aborted.value(), 3u);
  EXPECT_EQ(store.counters.calls_answered.value(), 1u);
  EXPECT_EQ(store.counters.calls_failed.value(), 2u);
}

TEST(StateStore, NeverDrawsAVersionTwice) {
  client::http::HttpRig server(
      [](const client::http::RigRequest&) { return client::http::RigReply{.body = "{}"}; });
  TestStore one(server, {.seed = 1}), two(server, {.seed = 2});
  std::set<uint64_t> versions;
  for (int i = 0; i < 100; ++i) {
    versions.insert(one.Put("k", "x", std::nullopt)->number);
    versions.insert(two.Put("k", "x", std::nullopt)->number);
  }
  EXPECT_EQ(versions.size(), 200u);
  EXPECT_FALSE(versions.contains(0));
}

TEST(StateStore, OpensItsBreakerAndFindsOutByItselfThatDynamoDbIsBack) {
  std::atomic<bool> fails{true};
  client::http::HttpRig server([&](const client::http::RigRequest& request) {
    if (request.method == "GET" || !fails) return client::http::RigReply{.body = "{}"};
    return Refusal(500, "InternalServerError");
  });
  TestStore store(server,
                  {.breaker = {.failures_in_row = 3, .no_progress = 0ms, .open_min = 50ms}});
  for (int i = 0; store.opened.empty(); ++i) {
    EXPECT_TRUE(absl::IsUnknown(store.Get("k").status()));
    ASSERT_LT(i, 100);
  }
  EXPECT_TRUE(absl::IsUnavailable(store.Get("k").status()));
  EXPECT_EQ(store.counters.breakers_open.value(), 1u);
  fails = false;
  ASSERT_TRUE(store.Until([&] { return store.opened.size() == 2; }));
  EXPECT_THAT(store.opened, ElementsAre(true, false));
  EXPECT_EQ(store.counters.breakers_open.value(), 0u);
  EXPECT_TRUE(store.Get("k").ok());
}

TEST(StateStore, KeepsItsBreakerClosedWhileItIsThrottled) {
  client::http::HttpRig server([](const client::http::RigRequest& request) {
    return request.method == "GET" ? client::http::RigReply{} : Refusal(400, "ThrottlingException");
  });
  TestStore store(server, {.breaker = {.failures_in_row = 2, .no_progress = 0ms}});
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(absl::IsResourceExhausted(store.Get("k").status()));
  EXPECT_TRUE(store.opened.empty());
  EXPECT_EQ(store.counters.calls_throttled.value(), 20u);
}

TEST(StateStore, SaysHowToMakeTheTable) {
  std::atomic<bool> is_missing{true};
  client::http::HttpRig server([&](const client::http::RigRequest& request) {
    if (request.method == "GET" || !is_missing) return client::http::RigReply{.body = "{}"};
    return Refusal(400, "ResourceNotFoundException", "Requested resource not found");
  });
  TestStore store(server, {.check_pause = 10ms});
  store.store.Check();
  ASSERT_TRUE(
      store.Until([&] { return !store.usable.empty() && absl::IsNotFound(store.usable.back()); }));
  EXPECT_EQ(store.usable.back().message(),
            "there is no table limits in eu-west-1; `headgate store create-table "
            "'dynamodb://limits?region=eu-west-1&endpoint=" +
                server.url() + "'` makes it");
  is_missing = false;
  ASSERT_TRUE(store.Until([&] { return store.usable.back().ok(); }));
  // After the table was found, the store sends no further requests.
  const size_t asked = server.requests_seen();
  EXPECT_FALSE(store.loop.RunUntil([] { return false; }, 100ms));
  EXPECT_EQ(server.requests_seen(), asked);
}

TEST(StateStore, SaysThatTheClockIsWrong) {
  client::http::HttpRig server([](const client::http::RigRequest& request) {
    return request.method == "GET" ? client::http::RigReply{}
                                   : Refusal(400, "InvalidSignatureException",
                                             "Signature expired: 20261125T115500Z is now earlier");
  });
  TestStore store(server);
  const absl::Status status = store.Get("k").status();
  EXPECT_TRUE(absl::IsPermissionDenied(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("DynamoDB's clock says Tue, 15 Nov 1994 08:12:31 GMT; set the clock"));
}

TEST(StateStore, IsUnavailableWithoutCredentials) {
  client::http::HttpRig server(
      [](const client::http::RigRequest&) { return client::http::RigReply{.body = "{}"}; });
  TestStore store(server, {}, [](const char* name) {
    return std::string(std::string_view(name) == "AWS_EC2_METADATA_DISABLED" ? "true" : "");
  });
  const absl::Status status = store.Get("k").status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("no credentials"));
  EXPECT_EQ(server.requests_seen(), 0u);
}

TEST(StateStore, IsUnavailableWithoutAConnection) {
  std::optional<client::http::HttpRig> server(std::in_place, [](const client::http::RigRequest&) {
    return client::http::RigReply{.body = "{}"};
  });
  TestStore store(server->origin(), {}, WithKeys());
  server.reset();
  EXPECT_TRUE(absl::IsUnavailable(store.Get("k").status()));
  EXPECT_TRUE(absl::IsUnavailable(store.Put("k", "x", std::nullopt).status()));
  EXPECT_EQ(store.counters.calls_unavailable.value(), 2u);
}

}  // namespace state_store_test
}  // namespace headgate::store::dynamodb
