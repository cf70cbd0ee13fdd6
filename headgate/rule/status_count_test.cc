#include "headgate/rule/status_count.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "headgate/rule/limit_text.h"
#include "headgate/rule/read/load.h"
#include "headgate/rule/rule_difference.h"

namespace headgate::rule {
namespace status_count_test {

using read::LoadResult;
using read::LoadRules;
using read::RuleFile;

StatusCount Of(std::vector<std::string_view> http, std::vector<std::string_view> grpc = {}) {
  StatusCount count;
  for (const std::string_view text : http) EXPECT_TRUE(count.AddHttp(text).ok()) << text;
  for (const std::string_view text : grpc) EXPECT_TRUE(count.AddGrpc(text).ok()) << text;
  return count;
}

TEST(StatusCount, HasStatusesClassesAndRanges) {
  const StatusCount count = Of({"401", "5xx", "300-302"});
  for (const int status : {401, 500, 503, 599, 300, 301, 302})
    EXPECT_EQ(count.Counts({.http = status}), true) << status;
  for (const int status : {0, 101, 200, 299, 303, 400, 402, 499, 600, 999})
    EXPECT_EQ(count.Counts({.http = status}), false) << status;
  EXPECT_EQ(count.HttpItems(), (std::vector<std::string>{"300-302", "401", "500-599"}));
}

TEST(StatusCount, RefusesWhatNoAnswerHas) {
  StatusCount count;
  for (const std::string_view text :
       {"",         "4",    "40",  "100",  "103",  "199",     "600",
        "1xx",      "6xx",  "4XX", "xx",   "401-", "-403",    "403-401",
        "401-403-", "0401", "4o1", "401 ", "+401", "401,403", "*"})
    EXPECT_FALSE(count.AddHttp(text).ok()) << text;
  EXPECT_TRUE(count.empty());
  EXPECT_TRUE(count.AddHttp("101").ok()) << "a tunnel begins";
}

TEST(StatusCount, HasStatusesOfGrpcByNameOrNumber) {
  const StatusCount count = Of({}, {"UNAUTHENTICATED", "7"});
  EXPECT_EQ(count.Counts({.http = 200, .grpc = 16}), true);
  EXPECT_EQ(count.Counts({.http = 200, .grpc = 7}), true);
  EXPECT_EQ(count.Counts({.http = 200, .grpc = 0}), false);
  EXPECT_EQ(count.Counts({.http = 200, .grpc = 99}), false);
  EXPECT_EQ(count.Counts({.http = 200}), false) << "an answer that is not of gRPC";
  EXPECT_EQ(count.GrpcItems(), (std::vector<std::string>{"PERMISSION_DENIED", "UNAUTHENTICATED"}));
  StatusCount other;
  for (const std::string_view text : {"", "17", "-1", "016", "unauthenticated", "UNAUTHORIZED"})
    EXPECT_FALSE(other.AddGrpc(text).ok()) << text;
}

TEST(StatusCount, OfACallIsKnownAtItsEnd) {
  const AnswerStatus begun{.http = 200, .grpc_follows = true};
  EXPECT_EQ(Of({}, {"16"}).Counts(begun), std::nullopt);
  EXPECT_EQ(Of({"401"}).Counts(begun), false) << "no list needs the end";
  EXPECT_EQ(Of({"2xx"}, {"16"}).Counts(begun), true);
}

LoadResult Load(std::string_view words) {
  const std::vector<RuleFile> files{
      {.name = "f.yaml",
       .text = std::string("domain: d\ndescriptors:\n- key: k\n  rate_limit: {unit: hour, "
                           "requests_per_unit: 5, ")
                   .append(words) +
               "}\n"}};
  return LoadRules(files);
}
std::string ProblemOf(std::string_view words) { return Describe(Load(words).problems); }

TEST(StatusCountInAFile, IsReadWithItsLimit) {
  const LoadResult loaded = Load("count: {status: [401, 4xx], grpc_status: UNAUTHENTICATED}");
  ASSERT_TRUE(loaded.ok()) << Describe(loaded.problems);
  const RuleLimit& limit = loaded.rules->rules()[0].limits[0];
  EXPECT_EQ(limit.limit.algorithm(), algorithm::Algorithm::kSlidingWindowCounter);
  EXPECT_EQ(Describe(limit),
            "5 per 1h, sliding_window_counter, counts answers with status 400-499 or grpc_status "
            "UNAUTHENTICATED");
}

TEST(StatusCountInAFile, TakesAFixedWindowToo) {
  for (const std::string_view words : {"algorithm: fixed_window", "align: first_hit"}) {
    const LoadResult loaded = Load(std::string(words) + ", count: {status: 401}");
    if (words.starts_with("align")) {
      EXPECT_FALSE(loaded.ok()) << "align does not choose an algorithm";
      continue;
    }
    ASSERT_TRUE(loaded.ok()) << Describe(loaded.problems);
    EXPECT_EQ(loaded.rules->rules()[0].limits[0].limit.algorithm(),
              algorithm::Algorithm::kFixedWindow);
  }
}

TEST(StatusCountInAFile, NeedsALimitThatGivesBackAll) {
  for (const std::string_view algorithm : {"token_bucket", "leaky_bucket", "sliding_window_log"}) {
    EXPECT_NE(ProblemOf(std::string("count: {status: [401]}, algorithm: ").append(algorithm))
                  .find("cannot count by status: it does not give back all that it has taken"),
              std::string::npos)
        << algorithm;
  }
  EXPECT_NE(ProblemOf("count: {status: [401]}, count_denied: true").find("count_denied cannot"),
            std::string::npos);
  EXPECT_NE(ProblemOf("count: {status: [401]}, cost: {of: request_bytes}")
                .find("a limit cannot have both cost and count"),
            std::string::npos);
}

TEST(StatusCountInAFile, HasItsProblemsReportedAtTheirPlace) {
  EXPECT_NE(ProblemOf("count: true").find("count is not a mapping"), std::string::npos);
  EXPECT_NE(ProblemOf("count: {}").find("count names no status"), std::string::npos);
  EXPECT_NE(ProblemOf("count: {status: []}").find("count names no status"), std::string::npos);
  EXPECT_NE(ProblemOf("count: {status: [401, 42]}").find("f.yaml:4:72: invalid status"),
            std::string::npos)
      << ProblemOf("count: {status: [401, 42]}");
  EXPECT_NE(ProblemOf("count: {status: {a: b}}").find("an item is not a text"), std::string::npos);
  EXPECT_NE(ProblemOf("count: {grpc_status: [NOPE]}").find("not a status of gRPC"),
            std::string::npos);
  EXPECT_NE(ProblemOf("status: [401]").find("'status' belongs under count"), std::string::npos);
  EXPECT_NE(ProblemOf("count: {of: request_bytes}").find("misplaced key 'of'"), std::string::npos);
}

TEST(StatusCountInAFile, IsADifferenceOfRules) {
  const LoadResult one = Load("count: {status: [401]}");
  const LoadResult other = Load("count: {status: [401, 403]}");
  EXPECT_EQ(DifferencesOf(*one.rules, *other.rules).size(), 1u);
  EXPECT_TRUE(DifferencesOf(*one.rules, *one.rules).empty());
}

}  // namespace status_count_test
}  // namespace headgate::rule
