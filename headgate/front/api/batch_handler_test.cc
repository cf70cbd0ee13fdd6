#include "headgate/front/api/batch_handler.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "headgate/front/api/check_rig.h"
#include "headgate/front/api/shared_check_rig.h"

namespace headgate::front::api {
namespace batch_handler_test {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr base::Instant kStart = base::Instant::FromNanos(1'790'000'000'000'000'000);
constexpr algorithm::LimitSpec kTenPer20s{.requests = 10, .period = 20s};

std::string Check(std::string_view value, uint64_t cost = 1) {
  return fmt::format(
      R"({{"domain":"edge","descriptors":[{{"entries":[{{"key":"api_key","value":"{}"}}],"cost":{}}}]}})",
      value, cost);
}

std::string Batch(const std::vector<std::string>& checks) {
  return fmt::format(R"({{"checks":[{}]}})", fmt::join(checks, ","));
}

http::Response Post(http::routing::Router& router, std::string_view path, std::string_view body,
                    http::Suspension* suspension = nullptr) {
  http::Request request;
  request.method = "POST";
  request.target = path;
  request.fields = {{"Content-Type", "application/json"}};
  request.body = body;
  request.suspension = suspension;
  http::Response response;
  router.Handle(request, response, kStart);
  return response;
}

nlohmann::json ResultsOf(const http::Response& response) {
  return nlohmann::json::parse(response.body).at("results");
}

TEST(Checks, AreDecidedInTheirOrder) {
  CheckRig rig(kTenPer20s, kStart);
  const http::Response response =
      Post(rig.router, "/v1/checks", Batch({Check("k", 6), Check("k", 6), Check("k", 4), "{}"}));
  EXPECT_EQ(response.status, 400) << "one of them is none";
  EXPECT_THAT(response.body, HasSubstr("checks[3]: "));
  const auto results = ResultsOf(
      Post(rig.router, "/v1/checks", Batch({Check("k", 6), Check("k", 6), Check("k", 4)})));
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results[0]["status"], 200);
  EXPECT_EQ(results[1]["status"], 429);
  EXPECT_EQ(results[1]["decisions"][0]["remaining"], 4);
  EXPECT_EQ(results[2]["status"], 200);
  EXPECT_EQ(results[2]["decisions"][0]["remaining"], 0);
}

TEST(Checks, AnswerAsTheSameChecksOneByOne) {
  std::mt19937_64 random(3);
  CheckRig one_by_one(kTenPer20s, kStart);
  CheckRig together(kTenPer20s, kStart);
  for (int round = 0; round < 50; ++round) {
    std::vector<std::string> checks;
    for (uint64_t n = 1 + random() % 20; n > 0; --n)
      checks.push_back(Check("k\\u00e9\\\\" + std::to_string(random() % 9), random() % 4));
    const auto results = ResultsOf(Post(together.router, "/v1/checks", Batch(checks)));
    ASSERT_EQ(results.size(), checks.size());
    for (size_t i = 0; i < checks.size(); ++i) {
      const http::Response response = Post(one_by_one.router, "/v1/check", checks[i]);
      nlohmann::json expected = nlohmann::json::parse(response.body);
      expected["status"] = response.status;
      EXPECT_EQ(results[i], expected);
    }
  }
}

TEST(Checks, HaveClearErrorsAndThenTakeNothing) {
  CheckRig rig(kTenPer20s, kStart);
  const std::string check = Check("k");
  const std::pair<std::string, std::string> rows[] = {
      {"", "the body is empty"},
      {"[]", "expected an object at byte 0"},
      {R"({"check":[]})", "expected the only field 'checks' at byte 1"},
      {R"({"checks":{}})", "expected an array of checks at byte 10"},
      {R"({"checks":[]})", "checks must not be empty"},
      {R"({"checks": [ ] })", "checks must not be empty"},
      {R"({"checks":[1]})", "expected a check that is an object at byte 11"},
      {R"({"checks":[)" + check + "]", "expected the end of the body"},
      {R"({"checks":[)" + check, "expected a comma or the end of the array"},
      {R"({"checks":[)" + check.substr(0, 20), "expected a check that is an object"},
      {R"({"checks":[)" + check + ",]}", "expected a check that is an object"},
      {R"({"checks":[)" + check + R"(],"x":1})", "expected the end of the body"},
      {Batch({check}) + "x", "expected the end of the body"},
      {Batch({check, R"({"domian":"edge"})"}), "checks[1]: the body has no field \\\"domian\\\""},
      {Batch({check, R"({"a":[}})"}), "checks[1]: "},
  };
  for (const auto& [body, detail] : rows) {
    const http::Response response = Post(rig.router, "/v1/checks", body);
    EXPECT_EQ(response.status, 400) << body;
    EXPECT_THAT(response.body, HasSubstr(detail)) << body;
  }
  EXPECT_EQ(rig.store.stats().buckets, 0u);
}

TEST(Checks, AreAtMostAThousand) {
  CheckRig rig(kTenPer20s, kStart);
  std::vector<std::string> checks;
  for (size_t i = 0; i < kChecksMax; ++i) checks.push_back(Check(std::to_string(i)));
  EXPECT_EQ(ResultsOf(Post(rig.router, "/v1/checks", Batch(checks))).size(), kChecksMax);
  checks.push_back(Check("one more"));
  const http::Response response = Post(rig.router, "/v1/checks", Batch(checks));
  EXPECT_EQ(response.status, 400);
  EXPECT_THAT(response.body, HasSubstr("more than 1000 checks"));
}

TEST(Checks, HaveABoundOfDescriptorsTogether) {
  CheckRig rig(kTenPer20s, kStart);
  const auto with = [](size_t descriptors) {
    const std::vector<std::string> all(descriptors,
                                       R"({"entries":[{"key":"api_key","value":"k"}]})");
    return fmt::format(R"({{"domain":"edge","descriptors":[{}]}})", fmt::join(all, ","));
  };
  std::vector<std::string> checks(kBatchDescriptorsMax / 64, with(64));
  EXPECT_EQ(Post(rig.router, "/v1/checks", Batch(checks)).status, 200);
  checks.push_back(with(1));
  const http::Response response = Post(rig.router, "/v1/checks", Batch(checks));
  EXPECT_EQ(response.status, 400);
  EXPECT_THAT(response.body, HasSubstr("more than 4096 descriptors in all checks together"));
}

TEST(Checks, ThatWaitForTheStoreWaitTogetherAndCountOnce) {
  SharedCheckRig rig(CheckRig::OneRule(kTenPer20s), kStart);
  int woken = 0;
  rig.suspension.wake = [&] { ++woken; };
  const std::string body = Batch({Check("a", 3), Check("b"), Check("a", 3), Check("a", 5)});
  http::Response response = Post(rig.router, "/v1/checks", body, &rig.suspension);
  EXPECT_TRUE(response.later);
  // Asked again too early, as after another event of the connection.
  EXPECT_TRUE(Post(rig.router, "/v1/checks", body, &rig.suspension).later);
  rig.shared.AnswerAll();
  EXPECT_GE(woken, 1);
  const std::string moved = body;  // the body may be at another address
  response = Post(rig.router, "/v1/checks", moved, &rig.suspension);
  ASSERT_FALSE(response.later);
  const auto results = ResultsOf(response);
  ASSERT_EQ(results.size(), 4u);
  EXPECT_EQ(results[0]["decisions"][0]["remaining"], 7);
  EXPECT_EQ(results[1]["decisions"][0]["remaining"], 9);
  EXPECT_EQ(results[2]["decisions"][0]["remaining"], 4);
  EXPECT_EQ(results[3]["status"], 429);
  EXPECT_EQ(results[3]["decisions"][0]["mode"], "exact");
  // The next batch of the connection starts with nothing left over from this one.
  EXPECT_TRUE(Post(rig.router, "/v1/checks", Batch({Check("a", 4)}), &rig.suspension).later);
  rig.shared.AnswerAll();
  EXPECT_EQ(ResultsOf(Post(rig.router, "/v1/checks", Batch({Check("a", 4)}),
                           &rig.suspension))[0]["status"],
            200);
}

}  // namespace batch_handler_test
}  // namespace headgate::front::api
