// Failures of the upstream, further attempts, timeouts, and their forms for gRPC.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headgate/proxy/relay_rig.h"

namespace headgate::proxy {
namespace relay_failures_test {

using http::BodyLength;
using http::Failure;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr base::Duration kSecond = std::chrono::seconds(1);

struct RelayFailures : ::testing::Test, RelayRig {
  // The status of the only answer that the client got.
  std::string Status() {
    if (client.got.empty()) return "none";
    EXPECT_EQ(client.got.back(), "end");
    return client.got.front().substr(5, 3);
  }
};

TEST_F(RelayFailures, RequestThatWasNotProcessedIsSentAgainWithItsBody) {
  BeginWithBody("POST");
  relay->OnData("ab", now);
  relay->OnEnd({}, now);
  Fail(upstream, Failure::kNotSent);
  EXPECT_THAT(other.TakeGot(), ElementsAre("POST /x unsized", "data ab", "end"));
  EXPECT_THAT(upstream.left, ElementsAre(Ended::kNotBegun));
  EXPECT_EQ(counters.retries.value(), 1u);
  Answer(other).OnHead({}, now);
  Answer(other).OnEnd({}, now);
  EXPECT_EQ(Status(), "200");
}

TEST_F(RelayFailures, BodyThatIsNotKeptIsNotSentAgain) {
  BeginWithBody("POST");
  relay->OnData(std::string(Relay::kReplayBytesMax, 'x'), now);
  relay->OnData("y", now);
  Fail(upstream, Failure::kNotSent);
  EXPECT_THAT(other.TakeGot(), IsEmpty());
  EXPECT_EQ(Status(), "502");
  EXPECT_EQ(Count(RelayOutcome::kBroken), 1u);
}

TEST_F(RelayFailures, AttemptsAreBounded) {
  options.attempts_max = 2;
  Begin("GET");
  Fail(upstream, Failure::kNotSent);
  Fail(other, Failure::kNotSent);
  EXPECT_EQ(Status(), "502");
  EXPECT_EQ(counters.retries.value(), 1u);
}

// The pool gives back what a request has taken that has not reached the upstream.
TEST_F(RelayFailures, ThePoolIsToldWhetherTheRequestWasSent) {
  const auto was_sent = [](auto end) {
    RelayRig rig;
    end(rig);
    EXPECT_EQ(rig.admission.left.size(), 1u);
    return rig.admission.was_sent;
  };
  const auto no_place = [](RelayRig& rig, NoPlace why) {
    rig.free.clear();
    rig.Begin("GET");
    std::exchange(rig.waiting, nullptr)->OnNoPlace(why, "", rig.now);
  };
  EXPECT_FALSE(was_sent([&](RelayRig& rig) { no_place(rig, NoPlace::kRefused); }));
  EXPECT_FALSE(was_sent([&](RelayRig& rig) { no_place(rig, NoPlace::kQueueFull); }));
  EXPECT_FALSE(was_sent([](RelayRig& rig) {
    rig.free.clear();
    rig.Begin("GET");
    rig.relay->OnAbort(rig.now);
  })) << "the client has left the queue";
  EXPECT_FALSE(was_sent([](RelayRig& rig) {
    rig.options.attempts_max = 1;
    rig.Begin("GET");
    rig.Fail(rig.upstream, Failure::kNotSent);
  })) << "the upstream has refused it without processing it";
  EXPECT_TRUE(was_sent([](RelayRig& rig) {
    rig.Begin("GET");
    rig.Fail(rig.upstream, Failure::kNoAnswer);
  }));
  EXPECT_TRUE(was_sent([](RelayRig& rig) {
    rig.Begin("GET");
    rig.relay->OnAbort(rig.now);
  }));
  EXPECT_TRUE(was_sent([](RelayRig& rig) {
    rig.Begin("GET");
    rig.Answer(rig.upstream).OnHead({}, rig.now);
  }));
}

// RFC 9110, 9.2.2: the idempotent methods. Only a kept connection may have been closed before the
// request came.
TEST_F(RelayFailures, NoAnswerOnAKeptConnection) {
  struct Case {
    std::string_view method;
    bool reused;
    BodyLength body;
    bool again;
  };
  constexpr BodyLength kNone{};
  constexpr BodyLength kOfZero{.kind = BodyLength::Kind::kSized, .bytes = 0};
  constexpr BodyLength kOfOne{.kind = BodyLength::Kind::kSized, .bytes = 1};
  constexpr BodyLength kUnknown{.kind = BodyLength::Kind::kUnsized};
  for (const Case& c : {Case{"GET", true, kNone, true}, Case{"HEAD", true, kNone, true},
                        Case{"OPTIONS", true, kNone, true}, Case{"TRACE", true, kNone, true},
                        Case{"PUT", true, kNone, true}, Case{"DELETE", true, kNone, true},
                        Case{"POST", true, kNone, false}, Case{"PATCH", true, kNone, false},
                        Case{"get", true, kNone, false}, Case{"GET", false, kNone, false},
                        Case{"PUT", true, kOfZero, true}, Case{"GET", true, kOfZero, true},
                        Case{"POST", true, kOfZero, false}, Case{"PUT", true, kOfOne, false},
                        Case{"PUT", true, kUnknown, false}}) {
    RelayRig rig;
    rig.upstream.is_reused = c.reused;
    rig.Begin(c.method, [&](http::RequestHead& head) { head.body = c.body; });
    rig.Fail(rig.upstream, Failure::kNoAnswer);
    EXPECT_EQ(!rig.other.got.empty(), c.again) << c.method << c.reused;
    EXPECT_EQ(rig.upstream.left, std::vector{c.reused ? Ended::kNotBegun : Ended::kFailed});
    if (c.again) continue;
    EXPECT_THAT(rig.client.got, ElementsAre(StartsWith("head 502"), StartsWith("data "), "end"));
  }
}

TEST_F(RelayFailures, UpstreamWithoutTunnelsIsUnsuitable) {
  options.attempts_max = 2;
  Begin("GET", [](http::RequestHead& head) { head.protocol = "websocket"; });
  Fail(upstream, Failure::kNoTunnels);
  EXPECT_THAT(client.got, IsEmpty()) << "another upstream may take it";
  Fail(other, Failure::kNoTunnels);
  EXPECT_EQ(Status(), "501");
  EXPECT_THAT(client.got.front(), HasSubstr("Proxy-Status=headgate; error=proxy_configuration"));
  EXPECT_THAT(client.got[1], HasSubstr("takes no tunnels over HTTP/2"));
  EXPECT_EQ(Count(RelayOutcome::kUnsuitable), 1u);
  EXPECT_THAT(upstream.left, ElementsAre(Ended::kNotBegun));
  EXPECT_THAT(other.left, ElementsAre(Ended::kNotBegun));
  EXPECT_THAT(admission.left, ElementsAre(Left::kUnasked));
}

TEST_F(RelayFailures, MalformedBodyIsNotAClientThatHasGone) {
  BeginWithBody("POST");
  relay->OnData("abc", now);
  client.malformed = true;
  relay->OnAbort(now);
  EXPECT_THAT(upstream.TakeGot(), ElementsAre("POST /x unsized", "data abc", "cancel"));
  EXPECT_EQ(Count(RelayOutcome::kMalformed), 1u);
  EXPECT_EQ(Count(RelayOutcome::kClientGone), 0u);
  EXPECT_THAT(upstream.left, ElementsAre(Ended::kCancelled));
}

TEST_F(RelayFailures, NoAnswerIsForgivenOnce) {
  upstream.is_reused = other.is_reused = true;
  Begin("GET");
  Fail(upstream, Failure::kNoAnswer);
  Fail(other, Failure::kNoAnswer);
  EXPECT_EQ(counters.retries.value(), 1u);
  EXPECT_EQ(Count(RelayOutcome::kBroken), 1u);
}

// It was two hours behind and has been set. Decisions do not follow at once.
TEST_F(RelayFailures, DateIsATimeOfDay) {
  base::ManualClock clock{base::WallTime::FromNanos(kStart.ns)};
  clock.StepWall(std::chrono::hours(2));
  options.clock = &clock;
  Begin("GET");
  Fail(upstream, Failure::kInvalid);
  EXPECT_THAT(client.got.front(), HasSubstr(" Date=Thu, 01 Jan 1970 02:16:40 GMT"));
}

TEST_F(RelayFailures, InvalidAnswerIs502AndTheUpstreamIsBlamed) {
  Begin("GET");
  Fail(upstream, Failure::kInvalid);
  EXPECT_EQ(Status(), "502");
  EXPECT_THAT(client.got.front(), HasSubstr("Proxy-Status=headgate; error=http_protocol_error"));
  EXPECT_THAT(client.got.front(), HasSubstr(" Date=Thu, 01 Jan 1970 00:16:40 GMT"));
  EXPECT_THAT(upstream.left, ElementsAre(Ended::kFailed));
  EXPECT_THAT(admission.left, ElementsAre(Left::kFailed));
}

TEST_F(RelayFailures, ReasonCanBeSwitchedOff) {
  options.says_reason = false;
  Begin("GET");
  Fail(upstream, Failure::kInvalid);
  EXPECT_THAT(client.got.front(), ::testing::Not(HasSubstr("Proxy-Status")));
}

TEST_F(RelayFailures, OwnAnswerToHeadHasNoBody) {
  Begin("HEAD");
  Fail(upstream, Failure::kInvalid);
  EXPECT_THAT(client.got, ElementsAre(StartsWith("head 502 sized "), "end"));
}

TEST_F(RelayFailures, AnswerThatBreaksOffAborts) {
  Begin("GET");
  Answer(upstream).OnHead({.body = {BodyLength::Kind::kUnsized}}, now);
  Answer(upstream).OnData("half", now);
  Fail(upstream, Failure::kTruncated);
  EXPECT_THAT(client.TakeGot(), ElementsAre("head 200 unsized", "data half", "abort"));
  EXPECT_EQ(Count(RelayOutcome::kCutShort), 1u);
  EXPECT_THAT(upstream.left, ElementsAre(Ended::kFailed));
}

TEST_F(RelayFailures, NoConnection) {
  struct Case {
    NoPlace why;
    std::string_view status;
    std::string_view error;
  };
  for (const Case& c : {Case{NoPlace::kRefused, "502", "connection_refused"},
                        Case{NoPlace::kTimeout, "504", "connection_timeout"},
                        Case{NoPlace::kUntrusted, "502", "tls_certificate_error"},
                        Case{NoPlace::kTlsFailed, "502", "tls_protocol_error"},
                        Case{NoPlace::kQueueFull, "503", "connection_limit_reached"},
                        Case{NoPlace::kClosed, "503", "destination_unavailable"}}) {
    RelayRig rig;
    rig.free.clear();
    rig.Begin("POST");
    rig.waiting->OnNoPlace(c.why, "detail", rig.now);
    EXPECT_EQ(rig.client.got.front().substr(5, 3), c.status);
    EXPECT_THAT(rig.client.got.front(), HasSubstr(c.error));
    EXPECT_EQ(rig.client.got.front().find("Retry-After=1") != std::string::npos, c.status == "503");
  }
}

// ---- Timeouts

TEST_F(RelayFailures, QueueHasATimeout) {
  free.clear();
  Begin("GET");
  Wait(options.queue_timeout + TickWheel::kTick);
  EXPECT_EQ(waiting, nullptr);
  EXPECT_EQ(Status(), "503");
  EXPECT_EQ(Count(RelayOutcome::kNoPlace), 1u);
}

TEST_F(RelayFailures, AnswerHasATimeoutFromTheEndOfTheRequest) {
  BeginWithBody("POST");
  Wait(options.answer_timeout);
  relay->OnData("a", now);
  relay->OnEnd({}, now);
  Wait(options.answer_timeout - kSecond);
  EXPECT_EQ(Status(), "none");
  Wait(2 * kSecond);
  EXPECT_EQ(Status(), "504");
  EXPECT_THAT(upstream.got.back(), "cancel");
  EXPECT_THAT(upstream.left, ElementsAre(Ended::kTooSlow));
}

TEST_F(RelayFailures, ClientThatStopsSendingIsToldSo) {
  BeginWithBody("POST");
  relay->OnData("a", now);
  Wait(options.idle_timeout + TickWheel::kTick);
  EXPECT_EQ(Status(), "408");
  EXPECT_THAT(upstream.left, ElementsAre(Ended::kCancelled));
}

TEST_F(RelayFailures, UpstreamThatStopsReadingIsTooSlow) {
  BeginWithBody("POST");
  upstream.takes = false;
  relay->OnData(std::string(http::kWindowBytes, 'x'), now);
  Wait(options.idle_timeout + TickWheel::kTick);
  EXPECT_EQ(Status(), "504");
  EXPECT_THAT(upstream.left, ElementsAre(Ended::kTooSlow));
}

TEST_F(RelayFailures, AnswerThatStopsIsCut) {
  Begin("GET");
  Answer(upstream).OnHead({.body = {BodyLength::Kind::kUnsized}}, now);
  Wait(options.idle_timeout - kSecond);
  Answer(upstream).OnData("a", now);
  Wait(options.idle_timeout - kSecond);
  EXPECT_THAT(client.TakeGot(), ElementsAre("head 200 unsized", "data a"));
  Wait(2 * kSecond);
  EXPECT_THAT(client.TakeGot(), ElementsAre("abort"));
  EXPECT_THAT(upstream.left, ElementsAre(Ended::kTooSlow));
}

TEST_F(RelayFailures, ClientThatStopsReadingIsNotTheUpstreamsFault) {
  client.takes = false;
  Begin("GET");
  Answer(upstream).OnHead({.body = {BodyLength::Kind::kUnsized}}, now);
  Answer(upstream).OnData(std::string(http::kWindowBytes, 'x'), now);
  Wait(options.idle_timeout + TickWheel::kTick);
  EXPECT_THAT(upstream.left, ElementsAre(Ended::kCancelled));
  EXPECT_EQ(Count(RelayOutcome::kSlowReader), 1u);
}

// ---- gRPC

void Grpc(http::RequestHead& head) {
  head.version = http::Version::kHttp2;
  head.body = {.kind = BodyLength::Kind::kUnsized};
  head.fields.Add("content-type", "application/grpc+proto");
}
void GrpcWithDeadline(http::RequestHead& head) {
  Grpc(head);
  head.fields.Add("grpc-timeout", "2S");
}

TEST_F(RelayFailures, GrpcGetsItsOwnForm) {
  upstream.http2 = true;
  Begin("POST", Grpc);
  relay->OnEnd({}, now);
  Fail(upstream, Failure::kInvalid);
  EXPECT_THAT(client.got, ElementsAre(AllOf(StartsWith("head 200 "), HasSubstr("grpc-status=14"),
                                            HasSubstr("content-type=application/grpc")),
                                      "end"));
}

TEST_F(RelayFailures, GrpcNeedsHttp2) {
  Begin("POST", Grpc);
  EXPECT_THAT(upstream.got, IsEmpty());
  EXPECT_THAT(client.got.front(), HasSubstr("grpc-status=12"));
  EXPECT_EQ(Count(RelayOutcome::kUnsuitable), 1u);
}

TEST_F(RelayFailures, GrpcAnswerThatBreaksOffHasAStatus) {
  upstream.http2 = true;
  Begin("POST", Grpc);
  Answer(upstream).OnHead({.body = {BodyLength::Kind::kUnsized}}, now);
  Fail(upstream, Failure::kTruncated);
  EXPECT_THAT(client.TakeGot(), ElementsAre("head 200 unsized", "end grpc-status=14"));
}

TEST_F(RelayFailures, GrpcDeadlineCountsTheQueue) {
  upstream.http2 = true;
  free.clear();
  Begin("POST", GrpcWithDeadline);
  now += std::chrono::milliseconds(500);
  waiting->OnPlace(upstream, now);
  // 1.5 s in the finest unit with at most eight digits.
  EXPECT_THAT(upstream.got.front(), HasSubstr("grpc-timeout=1500000u"));
  Wait(kSecond + std::chrono::milliseconds(400));
  EXPECT_THAT(client.got, IsEmpty());
  Wait(2 * TickWheel::kTick);
  EXPECT_THAT(client.got.front(), HasSubstr("grpc-status=4"));
  EXPECT_EQ(upstream.got.back(), "cancel");
  EXPECT_THAT(upstream.left, ElementsAre(Ended::kCancelled));
}

TEST_F(RelayFailures, GrpcDeadlineHoldsInTheQueueAndAfterTheHead) {
  free.clear();
  Begin("POST", GrpcWithDeadline);
  Wait(2 * kSecond + TickWheel::kTick);
  EXPECT_EQ(waiting, nullptr);
  EXPECT_THAT(client.got.front(), HasSubstr("grpc-status=4"));

  RelayRig rig;
  rig.upstream.http2 = true;
  rig.Begin("POST", GrpcWithDeadline);
  rig.Answer(rig.upstream).OnHead({.body = {BodyLength::Kind::kUnsized}}, rig.now);
  rig.Wait(2 * kSecond + TickWheel::kTick);
  EXPECT_THAT(rig.client.got, ElementsAre("head 200 unsized", "end grpc-status=4"));
}

}  // namespace relay_failures_test
}  // namespace headgate::proxy
