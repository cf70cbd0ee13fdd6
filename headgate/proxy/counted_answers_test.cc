// Limits that count requests by the status of their answers, in front of an upstream.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/proxy/settler.h"
#include "headgate/proxy/size_rig.h"

namespace headgate::proxy {
namespace counted_answers_test {

using namespace std::chrono_literals;
using ::testing::StartsWith;

constexpr std::string_view kFailures =
    "unit: hour, requests_per_unit: 5, count: {status: [401, 403]}";

struct CountRig : SizeRig {
  using SizeRig::SizeRig;
  // Whether the request passes, and is answered so.
  bool Login(int status) {
    const auto exchange = Begin(Sized(0));
    if (!exchange->client.got.empty()) return false;
    exchange->receiver->OnEnd({}, now);
    SendHead(Sized(0), status);
    End();
    return true;
  }
};

class CountedAnswers : public ::testing::TestWithParam<Store> {};
INSTANTIATE_TEST_SUITE_P(Stores, CountedAnswers,
                         ::testing::Values(Store::kMemory, Store::kShared, Store::kLeased));

TEST_P(CountedAnswers, ThousandCorrectLoginsAreNeverRefused) {
  CountRig rig(kFailures, GetParam());
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(rig.Login(i % 2 == 0 ? 200 : 302)) << i;
    ASSERT_EQ(rig.Taken(), 0u) << i;
  }
  EXPECT_EQ(rig.settled.returned.value(), 1000u);
}

// This holds for each kind of limit and of count. Other requests have filled the pool while these
// waited for the store.
TEST_P(CountedAnswers, WhatThePoolRefusesAfterTheStoreHasAllowedItTakesNothing) {
  for (const std::string_view words :
       {"algorithm: token_bucket, burst: 5", "algorithm: fixed_window",
        "algorithm: sliding_window_log", "count: {status: [401]}"}) {
    CountRig rig(fmt::format("unit: hour, requests_per_unit: 5, {}", words), GetParam());
    std::vector<std::unique_ptr<RuleRig::Exchange>> exchanges;
    for (int i = 0; rig.shared && i < 5; ++i)
      exchanges.push_back(rig.Ask(RuleRig::HeadOf("/x", {{"x-client-id", "ann"}})));
    rig.admission.verdict = {.admitted = false, .retry_after = 3s, .reason = "used up"};
    rig.Settle();
    for (const auto& exchange : exchanges)
      ASSERT_THAT(exchange->client.got.front(), StartsWith("head 429 ")) << words;
    EXPECT_EQ(rig.application_counters.refused.value(), exchanges.size()) << "by the pool";
    EXPECT_EQ(rig.Taken(), 0u) << words;
    rig.admission.verdict.admitted = true;
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(rig.Login(401)) << words;
    EXPECT_FALSE(rig.Login(401)) << words;
  }
}

TEST_P(CountedAnswers, FailedLoginsAreRefusedBeyondTheLimit) {
  CountRig rig(kFailures, GetParam());
  for (const int status : {401, 403, 401, 200, 403, 401}) ASSERT_TRUE(rig.Login(status));
  EXPECT_EQ(rig.Taken(), 5u);
  EXPECT_FALSE(rig.Login(200)) << "a right guess passes no longer";
  EXPECT_EQ(rig.Taken(), 5u);
}

TEST_P(CountedAnswers, OtherStatusesAreNotCounted) {
  CountRig rig(kFailures, GetParam());
  for (const int status : {200, 204, 302, 400, 404, 429, 500, 503}) {
    ASSERT_TRUE(rig.Login(status)) << status;
    EXPECT_EQ(rig.Taken(), 0u) << status;
  }
}

// The crowd comes before the first answer.
TEST_P(CountedAnswers, CrowdOfGuessesPassesNoMoreThanTheLimit) {
  CountRig rig(kFailures, GetParam());
  std::vector<PlayedUpstream> upstreams(20);
  rig.free.clear();
  for (PlayedUpstream& upstream : upstreams) rig.free.push_back(&upstream);
  std::vector<std::unique_ptr<RuleRig::Exchange>> crowd;
  int passed = 0;
  for (int i = 0; i < 20; ++i) {
    crowd.push_back(rig.Begin(Sized(0)));
    if (crowd.back()->client.got.empty()) {
      ++passed;
    } else {
      EXPECT_THAT(crowd.back()->client.got.front(), StartsWith("head 429 "));
    }
  }
  EXPECT_EQ(passed, 5);
  // Two are right, and others may try.
  for (int i = 0; i < 5; ++i) {
    rig.Answer(upstreams[static_cast<size_t>(i)])
        .OnHead({.status = i < 2 ? 200 : 401, .body = Sized(0)}, rig.now);
  }
  rig.Settle();
  EXPECT_EQ(rig.Taken(), 3u);
}

TEST_P(CountedAnswers, StatusCountsFromTheHeadOfTheAnswer) {
  CountRig rig(kFailures, GetParam());
  const auto exchange = rig.Begin(Sized(0));
  exchange->receiver->OnEnd({}, rig.now);
  EXPECT_EQ(rig.Taken(), 1u) << "it is in progress";
  rig.SendHead(kUnsized);
  EXPECT_EQ(rig.Taken(), 0u) << "before the client can ask again";
  rig.SendBody(10);
  rig.Leave(*exchange);
  EXPECT_EQ(rig.Taken(), 0u);
}

TEST_P(CountedAnswers, InformationalAnswerIsNotTheAnswer) {
  CountRig rig(kFailures, GetParam());
  const auto exchange = rig.Begin(Sized(0));
  rig.Answer(rig.upstream).OnInformational({.status = 103}, rig.now);
  rig.Settle();
  EXPECT_EQ(rig.Taken(), 1u);
  rig.SendHead(Sized(0), 401);
  rig.End();
  EXPECT_EQ(rig.Taken(), 1u);
}

// Otherwise a guesser would leave before the answer.
TEST_P(CountedAnswers, GuessWhoseClientLeavesIsCounted) {
  CountRig rig(kFailures, GetParam());
  const auto exchange = rig.Begin(Sized(0));
  exchange->receiver->OnEnd({}, rig.now);
  rig.Leave(*exchange);
  EXPECT_EQ(rig.Taken(), 1u);
}

TEST_P(CountedAnswers, AnswerThatNeverComesIsCounted) {
  CountRig rig(kFailures, GetParam());
  const auto exchange = rig.Begin(Sized(0));
  exchange->receiver->OnEnd({}, rig.now);
  rig.Fail(rig.upstream, http::Failure::kInvalid);
  rig.Settle();
  EXPECT_THAT(exchange->client.got.front(), StartsWith("head 502 "));
  EXPECT_EQ(rig.Taken(), 1u);
}

TEST_P(CountedAnswers, RequestThatReachesNoServiceIsNotCounted) {
  CountRig rig(kFailures, GetParam());
  rig.free.clear();
  const auto unreachable = rig.Begin(Sized(0));
  std::exchange(rig.waiting, nullptr)->OnNoPlace(NoPlace::kRefused, "", rig.now);
  rig.Settle();
  EXPECT_EQ(rig.Taken(), 0u);
  rig.admission.verdict = {.admitted = false, .reason = "used up"};
  const auto refused = rig.Begin(Sized(0));
  EXPECT_THAT(refused->client.got.front(), StartsWith("head 429 "));
  rig.Settle();
  EXPECT_EQ(rig.Taken(), 0u);
}

// It is given back in the window of its take: nobody gets more than the limit in any window.
TEST_P(CountedAnswers, AnswerAfterTheWindowGivesNothingBackInTheNext) {
  CountRig rig("period: 10s, requests_per_unit: 5, algorithm: fixed_window, count: {status: [401]}",
               GetParam());
  const auto slow = rig.Begin(Sized(0));
  slow->receiver->OnEnd({}, rig.now);
  rig.Pass(10s);
  PlayedUpstream& answering = rig.upstream;
  rig.free = {&rig.other};
  for (int i = 0; i < 5; ++i) {
    const auto guess = rig.Begin(Sized(0));
    ASSERT_TRUE(guess->client.got.empty());
    rig.Answer(rig.other).OnHead({.status = 401, .body = Sized(0)}, rig.now);
    std::exchange(rig.other.receiver, nullptr)->OnEnd({}, rig.now);
    rig.free = {&rig.other};
    rig.Settle();
  }
  rig.Answer(answering).OnHead({.status = 200, .body = Sized(0)}, rig.now);
  rig.Settle();
  EXPECT_EQ(rig.Taken(), 5u);
}

// Many users behind one address log in at the same time, for longer than the limit would last.
TEST_P(CountedAnswers, CorrectLoginsAtTheSameTimeUseNothingUp) {
  CountRig rig("period: 10s, requests_per_unit: 5, count: {status: [401]}", GetParam());
  std::vector<PlayedUpstream> upstreams(4);
  std::vector<std::unique_ptr<RuleRig::Exchange>> open(upstreams.size());
  for (size_t i = 0; i < 200; ++i) {
    PlayedUpstream& upstream = upstreams[i % upstreams.size()];
    auto& exchange = open[i % upstreams.size()];
    if (exchange != nullptr) {
      rig.Answer(upstream).OnHead({.status = 200, .body = Sized(0)}, rig.now);
      std::exchange(upstream.receiver, nullptr)->OnEnd({}, rig.now);
      rig.Settle();
    }
    rig.free = {&upstream};
    exchange = rig.Begin(Sized(0));
    ASSERT_TRUE(exchange->client.got.empty()) << i << " is refused";
    exchange->receiver->OnEnd({}, rig.now);
    rig.Pass(150ms);
  }
}

TEST_P(CountedAnswers, LimitThatChangesMeanwhileKeepsTheRequest) {
  CountRig rig(kFailures, GetParam());
  const auto exchange = rig.Begin(Sized(0));
  exchange->receiver->OnEnd({}, rig.now);
  rig.SetLimit("unit: hour, requests_per_unit: 6, count: {status: [401]}");
  rig.SendHead(Sized(0), 200);
  rig.End();
  EXPECT_EQ(rig.Taken(), 1u) << "how much a changed limit holds is not known";
  EXPECT_EQ(rig.settled.lapsed.value(), 1u);
}

// ---- gRPC, whose status is in the trailers

struct GrpcRig : CountRig {
  explicit GrpcRig(std::string_view count)
      : CountRig(fmt::format("unit: hour, requests_per_unit: 5, count: {}", count)) {}
  void AnswerHead(const http::BodyLength& body, std::string_view status = "") {
    http::ResponseHead head{.status = 200, .body = body};
    head.fields.Add("content-type", "application/grpc");
    if (!status.empty()) head.fields.Add("grpc-status", status);
    Answer(upstream).OnHead(std::move(head), now);
  }
  void AnswerEnd(std::string_view status) {
    http::Fields trailers;
    if (!status.empty()) trailers.Add("grpc-status", status);
    std::exchange(upstream.receiver, nullptr)->OnEnd(trailers, now);
    free.push_front(&upstream);
  }
  // Taken after a call with this status in its trailers.
  uint64_t TakenBy(std::string_view status) {
    const auto exchange = Begin(Sized(0));
    exchange->receiver->OnEnd({}, now);
    AnswerHead(kUnsized);
    AnswerEnd(status);
    return Taken();
  }
};

TEST(CountedCalls, CountByTheStatusInTheirTrailers) {
  GrpcRig rig("{grpc_status: [UNAUTHENTICATED, PERMISSION_DENIED]}");
  EXPECT_EQ(rig.TakenBy("0"), 0u);
  EXPECT_EQ(rig.TakenBy("16"), 1u);
  EXPECT_EQ(rig.TakenBy("5"), 1u);
  EXPECT_EQ(rig.TakenBy("7"), 2u);
}

TEST(CountedCalls, MayHaveTheStatusInTheirHead) {
  GrpcRig rig("{grpc_status: [16]}");
  for (const auto& [status, taken] :
       std::vector<std::pair<std::string_view, uint64_t>>{{"0", 0}, {"16", 1}, {"5", 1}}) {
    const auto exchange = rig.Begin(Sized(0));
    exchange->receiver->OnEnd({}, rig.now);
    rig.AnswerHead({}, status);
    EXPECT_EQ(rig.Taken(), taken) << status;
    rig.AnswerEnd("");
    EXPECT_EQ(rig.Taken(), taken) << status;
  }
}

TEST(CountedCalls, CountByTheTrailersIfTheHeadHasAnotherStatus) {
  GrpcRig rig("{grpc_status: [16]}");
  for (const auto& [head, trailers, taken] :
       std::vector<std::tuple<std::string_view, std::string_view, uint64_t>>{
           {"0", "16", 1}, {"16", "0", 1}, {"0", "", 1}, {"16", "", 2}}) {
    const auto exchange = rig.Begin(Sized(0));
    exchange->receiver->OnEnd({}, rig.now);
    rig.AnswerHead(kUnsized, head);
    rig.AnswerEnd(trailers);
    EXPECT_EQ(rig.Taken(), taken) << head << " " << trailers;
  }
}

TEST(CountedCalls, WithoutAStatusAreCounted) {
  GrpcRig rig("{grpc_status: [16]}");
  EXPECT_EQ(rig.TakenBy(""), 1u);
  EXPECT_EQ(rig.TakenBy("x"), 2u);
  const auto left = rig.Begin(Sized(0));
  left->receiver->OnEnd({}, rig.now);
  rig.AnswerHead(kUnsized);
  rig.Leave(*left);
  EXPECT_EQ(rig.Taken(), 3u) << "a guesser who leaves before the trailers";
}

// A client cancels most streams of a server.
TEST(CountedCalls, AreGivenBackAtTheHeadIfOnlyItsStatusCounts) {
  GrpcRig rig("{status: [401]}");
  const auto stream = rig.Begin(Sized(0));
  stream->receiver->OnEnd({}, rig.now);
  rig.AnswerHead(kUnsized);
  EXPECT_EQ(rig.Taken(), 0u);
  rig.Leave(*stream);
  EXPECT_EQ(rig.Taken(), 0u);
}

TEST(CountedCalls, AnswerOfAnotherFormHasOnlyItsOwnStatus) {
  GrpcRig rig("{status: [401], grpc_status: [16]}");
  EXPECT_TRUE(rig.Login(200));
  EXPECT_EQ(rig.Taken(), 0u);
  EXPECT_TRUE(rig.Login(401));
  EXPECT_EQ(rig.Taken(), 1u);
}

// ---- Costs and ids of requests

TEST(CountedCosts, AreGivenBackWhole) {
  CountRig rig(kFailures);
  rig.Map(
      "mappings:\n- descriptors:\n"
      "  - {cost: 3, entries: [{key: client, header: X-Client-Id}]}\n");
  EXPECT_TRUE(rig.Login(200));
  EXPECT_EQ(rig.Taken(), 0u);
  EXPECT_TRUE(rig.Login(401));
  EXPECT_EQ(rig.Taken(), 3u);
  EXPECT_FALSE(rig.Login(200));
}

// Otherwise many guesses would have the id of one request.
TEST(CountedCosts, ClientsDoNotChooseIdempotencyIds) {
  for (const bool is_trusted : {false, true}) {
    CountRig rig(kFailures);
    rig.Map(
        fmt::format("trusted_proxies: [{}]\nidempotency_header: X-Id\nmappings:\n"
                    "- descriptors: [{{entries: [{{key: client, value: ann}}]}}]\n",
                    is_trusted ? "192.0.2.0/24" : "10.0.0.0/8"));
    for (int i = 0; i < 3; ++i) {
      const auto exchange = rig.Ask(RuleRig::HeadOf("/x", {{"x-id", "one"}}));
      ASSERT_TRUE(exchange->client.got.empty());
      exchange->receiver->OnEnd({}, rig.now);
      rig.SendHead(Sized(0), 401);
      rig.End();
    }
    EXPECT_EQ(rig.Taken(), is_trusted ? 1u : 3u);
  }
}

// A guesser and a user behind one address: the user's requests are not counted, and a limit of the
// two together is not reached by them.
TEST(CountedCosts, UserIsNotRefusedForAGuesserWithTheSameAddress) {
  CountRig rig("unit: hour, requests_per_unit: 1");
  rig.SetRuleFile(
      "domain: default\ndescriptors:\n"
      "- key: address\n"
      "  rate_limit: {unit: hour, requests_per_unit: 100, count: {status: [401]}}\n"
      "  descriptors:\n  - key: user\n"
      "    rate_limit: {unit: hour, requests_per_unit: 5, count: {status: [401]}}\n");
  rig.Map(
      "mappings:\n- descriptors:\n"
      "  - entries: [{key: address, client_address: true}]\n"
      "  - entries: [{key: address, client_address: true}, {key: user, header: X-User}]\n");
  const auto login = [&](std::string_view user, int status) {
    const auto exchange = rig.Ask(RuleRig::HeadOf("/login", {{"x-user", user}}));
    if (!exchange->client.got.empty()) return false;
    exchange->receiver->OnEnd({}, rig.now);
    rig.SendHead(Sized(0), status);
    rig.End();
    return true;
  };
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(login("bob", 401));
  for (int i = 0; i < 1000; ++i) {
    ASSERT_FALSE(login("bob", 401)) << i;
    ASSERT_TRUE(login("ann", 200)) << i;
  }
}

}  // namespace counted_answers_test
}  // namespace headgate::proxy
