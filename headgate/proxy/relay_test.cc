// An exchange that goes well, and one that the client breaks off. Failures of the upstream are in
// relay_failures_test.cc.
#include "headgate/proxy/relay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headgate/proxy/relay_rig.h"

namespace headgate::proxy {
namespace relay_test {

using http::BodyLength;
using http::kWindowBytes;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr base::Duration kSecond = std::chrono::seconds(1);

http::Fields OneField(std::string_view name, std::string_view value) {
  http::Fields fields;
  fields.Add(name, value);
  return fields;
}

TEST(Relay, PassesBothDirectionsOn) {
  RelayRig rig;
  rig.BeginWithBody("POST");
  rig.relay->OnData("abc", rig.now);
  rig.relay->OnEnd(OneField("sum", "1"), rig.now);
  EXPECT_THAT(rig.upstream.TakeGot(), ElementsAre("POST /x unsized", "data abc", "end sum=1"));
  EXPECT_EQ(rig.client.credited, 3u);

  rig.Answer(rig.upstream)
      .OnHead({.status = 201, .fields = OneField("a", "b"), .body = {BodyLength::Kind::kUnsized}},
              rig.now);
  rig.Answer(rig.upstream).OnData("de", rig.now);
  rig.Answer(rig.upstream).OnEnd(OneField("t", "2"), rig.now);
  EXPECT_THAT(rig.client.TakeGot(), ElementsAre("head 201 unsized a=b", "data de", "end t=2"));
  EXPECT_EQ(rig.upstream.credited, 2u);
  EXPECT_THAT(rig.upstream.left, ElementsAre(Ended::kWell));
  EXPECT_EQ(rig.Count(RelayOutcome::kAnswered), 1u);
}

TEST(Relay, AddsItsFieldsToTheAnswer) {
  RelayRig rig;
  rig.response_fields = OneField("RateLimit", "r");
  rig.Begin("GET");
  rig.Answer(rig.upstream).OnHead({.fields = OneField("a", "b")}, rig.now);
  EXPECT_THAT(rig.client.TakeGot(), ElementsAre("head 200 a=b RateLimit=r"));
}

TEST(Relay, BodyWaitsForAPlaceAndIsNotCreditedMeanwhile) {
  RelayRig rig;
  rig.free.clear();
  rig.BeginWithBody("POST");
  rig.relay->OnData("ab", rig.now);
  rig.relay->OnData("cd", rig.now);
  EXPECT_EQ(rig.client.credited, 0u);
  rig.waiting->OnPlace(rig.upstream, rig.now);
  EXPECT_THAT(rig.upstream.TakeGot(), ElementsAre("POST /x unsized", "data abcd"));
  EXPECT_EQ(rig.client.credited, 4u);
}

// Neither side is read while the other does not take its bytes.
TEST(Relay, CreditsASideWhenTheOtherHasRoom) {
  RelayRig rig;
  rig.BeginWithBody("POST");
  rig.upstream.takes = false;
  const std::string window(kWindowBytes, 'x');
  rig.relay->OnData(window, rig.now);
  EXPECT_EQ(rig.client.credited, 0u);
  rig.upstream.unsent = kWindowBytes - 1;
  rig.Answer(rig.upstream).OnWritable(rig.now);
  EXPECT_EQ(rig.client.credited, kWindowBytes);

  rig.client.takes = false;
  rig.Answer(rig.upstream).OnHead({.body = {BodyLength::Kind::kUnsized}}, rig.now);
  rig.Answer(rig.upstream).OnData(window, rig.now);
  EXPECT_EQ(rig.upstream.credited, 0u);
  rig.client.unsent = 0;
  rig.relay->OnWritable(rig.now);
  EXPECT_EQ(rig.upstream.credited, kWindowBytes);
}

// The client's session counts what is not credited.
TEST(Relay, HoldsTheCreditedDataThatTheUpstreamHasNotTaken) {
  RelayRig rig;
  rig.free.clear();
  rig.BeginWithBody("PUT");
  const size_t head = rig.relay->HeldBytes();
  rig.relay->OnData(std::string(40'000, 'x'), rig.now);
  EXPECT_EQ(rig.relay->HeldBytes(), head) << "nothing is credited";
  rig.upstream.takes = false;
  rig.waiting->OnPlace(rig.upstream, rig.now);
  EXPECT_EQ(rig.client.credited, 40'000u);
  EXPECT_GE(rig.relay->HeldBytes(), 40'000u);
  EXPECT_LE(rig.relay->HeldBytes(), head + 80'000) << "one copy for another attempt";
  rig.relay->OnData(std::string(10'000, 'x'), rig.now);
  EXPECT_EQ(rig.relay->HeldBytes(), head + 50'000) << "there is no other attempt any more";
  rig.relay->OnData(std::string(20'000, 'x'), rig.now);
  EXPECT_EQ(rig.client.credited, 50'000u);
  EXPECT_EQ(rig.relay->HeldBytes(), head + 50'000);
  rig.upstream.unsent = 0;
  EXPECT_EQ(rig.relay->HeldBytes(), head);
}

// HPACK makes a large head of a few bytes.
TEST(Relay, HoldsTheHeadUntilItIsAnswered) {
  RelayRig rig;
  rig.Begin("GET", [](http::RequestHead& head) { head.fields.Add("x", std::string(60'000, 'a')); });
  EXPECT_GT(rig.relay->HeldBytes(), 60'000u);
  EXPECT_LT(rig.relay->HeldBytes(), 61'000u);
  rig.Answer(rig.upstream).OnHead({.body = {BodyLength::Kind::kUnsized}}, rig.now);
  EXPECT_EQ(rig.relay->HeldBytes(), 0u);
}

TEST(Relay, PassesInformationalAnswersOn) {
  RelayRig rig;
  rig.Begin("GET");
  rig.Answer(rig.upstream)
      .OnInformational({.status = 103, .fields = OneField("Link", "l")}, rig.now);
  rig.Answer(rig.upstream).OnInformational({.status = 100}, rig.now);
  rig.Answer(rig.upstream).OnHead({.status = 204}, rig.now);
  rig.Answer(rig.upstream).OnEnd({}, rig.now);
  // Nobody asked for 100.
  EXPECT_THAT(rig.client.TakeGot(), ElementsAre("informational 103 Link=l", "head 204", "end"));
}

void Expects(http::RequestHead& head) {
  head.body = {.kind = BodyLength::Kind::kSized, .bytes = 2};
  head.expects_continue = true;
}

TEST(Relay, BodyWaitsForContinue) {
  RelayRig rig;
  rig.Begin("PUT", Expects);
  rig.relay->OnData("ab", rig.now);
  rig.relay->OnEnd({}, rig.now);
  EXPECT_THAT(rig.upstream.TakeGot(), ElementsAre("PUT /x sized 2"));
  rig.Answer(rig.upstream).OnInformational({.status = 100}, rig.now);
  EXPECT_THAT(rig.client.TakeGot(), ElementsAre("informational 100"));
  EXPECT_THAT(rig.upstream.TakeGot(), ElementsAre("data ab", "end"));
  rig.Answer(rig.upstream).OnInformational({.status = 100}, rig.now);
  EXPECT_THAT(rig.client.TakeGot(), IsEmpty()) << "once is enough";
}

TEST(Relay, BodyWaitsForContinueASecondAtMost) {
  RelayRig rig;
  rig.Begin("PUT", Expects);
  rig.Wait(kSecond - TickWheel::kTick);
  EXPECT_THAT(rig.client.TakeGot(), IsEmpty());
  rig.Wait(2 * TickWheel::kTick);
  EXPECT_THAT(rig.client.TakeGot(), ElementsAre("informational 100"));
  rig.relay->OnData("ab", rig.now);
  rig.relay->OnEnd({}, rig.now);
  EXPECT_THAT(rig.upstream.TakeGot(), ElementsAre("PUT /x sized 2", "data ab", "end"));
}

TEST(Relay, FinalAnswerInsteadOfContinueEndsTheWait) {
  RelayRig rig;
  rig.Begin("PUT", Expects);
  rig.Answer(rig.upstream).OnHead({.status = 417}, rig.now);
  rig.Answer(rig.upstream).OnEnd({}, rig.now);
  EXPECT_THAT(rig.client.TakeGot(), ElementsAre("head 417", "end"));
  rig.relay->OnData("ab", rig.now);
  EXPECT_EQ(rig.client.credited, 2u) << "the rest is dropped";
  rig.relay->OnEnd({}, rig.now);
  EXPECT_THAT(rig.upstream.TakeGot(), ElementsAre("PUT /x sized 2"));
}

TEST(Relay, EarlyAnswerDropsTheRestOfTheRequest) {
  RelayRig rig;
  rig.BeginWithBody("POST");
  rig.upstream.takes = false;
  rig.relay->OnData(std::string(kWindowBytes, 'x'), rig.now);
  rig.Answer(rig.upstream).OnHead({.status = 413}, rig.now);
  rig.Answer(rig.upstream).OnEnd({}, rig.now);
  EXPECT_THAT(rig.client.TakeGot(), ElementsAre("head 413", "end"));
  EXPECT_EQ(rig.client.credited, kWindowBytes);
  rig.relay->OnData("more", rig.now);
  EXPECT_EQ(rig.client.credited, kWindowBytes + 4);
}

TEST(Relay, RequestMayContinueAfterTheAnswersHead) {
  RelayRig rig;
  rig.BeginWithBody("POST");
  rig.Answer(rig.upstream).OnHead({.body = {BodyLength::Kind::kUnsized}}, rig.now);
  rig.relay->OnData("a", rig.now);
  rig.Answer(rig.upstream).OnData("A", rig.now);
  rig.relay->OnData("b", rig.now);
  rig.relay->OnEnd({}, rig.now);
  EXPECT_THAT(rig.upstream.TakeGot(), ElementsAre("POST /x unsized", "data a", "data b", "end"));
  EXPECT_THAT(rig.client.TakeGot(), ElementsAre("head 200 unsized", "data A"));
}

// The head of the answer ends the work that counts for the capacity, and its status says how.
TEST(Relay, TellsThePoolOnceHowTheUpstreamAnswered) {
  struct Case {
    int status;
    BodyLength::Kind body;
    Left left;
  };
  for (const Case& c : {Case{200, BodyLength::Kind::kNone, Left::kAnswered},
                        Case{404, BodyLength::Kind::kNone, Left::kAnswered},
                        Case{500, BodyLength::Kind::kNone, Left::kAnswered},
                        Case{502, BodyLength::Kind::kNone, Left::kFailed},
                        Case{503, BodyLength::Kind::kNone, Left::kFailed},
                        Case{504, BodyLength::Kind::kNone, Left::kFailed},
                        Case{101, BodyLength::Kind::kTunnel, Left::kUnasked}}) {
    RelayRig rig;
    rig.free.clear();
    rig.Begin("GET");
    rig.now += kSecond;
    rig.waiting->OnPlace(rig.upstream, rig.now);
    const base::Instant sent_at = rig.now;
    rig.now += kSecond;
    rig.Answer(rig.upstream).OnHead({.status = c.status, .body = {c.body}}, rig.now);
    EXPECT_THAT(rig.admission.left, ElementsAre(c.left)) << c.status;
    EXPECT_EQ(rig.admission.sent_at, sent_at);
    rig.relay->OnAbort(rig.now);
    rig.relay.reset();
    EXPECT_EQ(rig.admission.left.size(), 1u);
  }
}

// ---- Tunnels

void WantsTunnel(http::RequestHead& head) { head.protocol = "websocket"; }

TEST(Relay, TunnelBeginsWithTheAnswer) {
  RelayRig rig;
  rig.Begin("GET", WantsTunnel);
  rig.relay->OnData("early", rig.now);
  EXPECT_THAT(rig.upstream.TakeGot(), ElementsAre("GET /x"));
  rig.Answer(rig.upstream).OnHead({.status = 101, .body = {BodyLength::Kind::kTunnel}}, rig.now);
  rig.Answer(rig.upstream).OnData("down", rig.now);
  rig.relay->OnData("up", rig.now);
  EXPECT_THAT(rig.client.TakeGot(), ElementsAre("head 101 tunnel", "data down"));
  EXPECT_THAT(rig.upstream.TakeGot(), ElementsAre("data early", "data up"));
  EXPECT_EQ(rig.client.credited, 7u);
}

TEST(Relay, EachDirectionOfATunnelEndsByItself) {
  for (const bool client_first : {true, false}) {
    RelayRig rig;
    rig.Begin("GET", WantsTunnel);
    rig.Answer(rig.upstream).OnHead({.status = 101, .body = {BodyLength::Kind::kTunnel}}, rig.now);
    if (client_first) {
      rig.relay->OnEnd({}, rig.now);
      EXPECT_THAT(rig.upstream.left, IsEmpty());
      rig.Answer(rig.upstream).OnData("late", rig.now);
      rig.Answer(rig.upstream).OnEnd({}, rig.now);
      EXPECT_THAT(rig.client.TakeGot(), ElementsAre("head 101 tunnel", "data late", "end"));
    } else {
      rig.Answer(rig.upstream).OnEnd({}, rig.now);
      EXPECT_THAT(rig.upstream.left, IsEmpty());
      rig.relay->OnData("late", rig.now);
      rig.relay->OnEnd({}, rig.now);
      EXPECT_THAT(rig.upstream.TakeGot(), ElementsAre("GET /x", "data late", "end"));
    }
    EXPECT_THAT(rig.upstream.left, ElementsAre(Ended::kWell));
    EXPECT_EQ(rig.Count(RelayOutcome::kAnswered), 1u);
    EXPECT_EQ(rig.counters.tunnels.value(), 1u);
  }
}

TEST(Relay, RefusedTunnelIsAnOrdinaryAnswer) {
  RelayRig rig;
  rig.Begin("GET", WantsTunnel);
  rig.relay->OnData("smuggled", rig.now);
  rig.Answer(rig.upstream).OnHead({.status = 403}, rig.now);
  rig.relay->OnData("more", rig.now);
  rig.Answer(rig.upstream).OnEnd({}, rig.now);
  EXPECT_THAT(rig.upstream.TakeGot(), ElementsAre("GET /x", "end"));
  EXPECT_THAT(rig.client.TakeGot(), ElementsAre("head 403", "end"));
  EXPECT_EQ(rig.client.credited, 12u);
}

TEST(Relay, TunnelThatIsSilentForAnHourEnds) {
  RelayRig rig;
  rig.Begin("GET", WantsTunnel);
  rig.Answer(rig.upstream).OnHead({.status = 101, .body = {BodyLength::Kind::kTunnel}}, rig.now);
  rig.Wait(rig.options.tunnel_idle_timeout - kSecond);
  rig.relay->OnData("ping", rig.now);
  rig.Wait(rig.options.tunnel_idle_timeout - kSecond);
  EXPECT_THAT(rig.client.TakeGot(), ElementsAre("head 101 tunnel"));
  rig.Wait(2 * kSecond);
  EXPECT_THAT(rig.client.TakeGot(), ElementsAre("abort"));
  EXPECT_THAT(rig.upstream.left, ElementsAre(Ended::kCancelled));
}

// ---- The client goes

TEST(Relay, ClientThatGoesCancelsTheExchange) {
  RelayRig rig;
  rig.BeginWithBody("POST");
  rig.relay->OnData("ab", rig.now);
  rig.relay->OnAbort(rig.now);
  rig.relay.reset();
  EXPECT_THAT(rig.upstream.TakeGot(), ElementsAre("POST /x unsized", "data ab", "cancel"));
  EXPECT_THAT(rig.upstream.left, ElementsAre(Ended::kCancelled));
  EXPECT_THAT(rig.client.TakeGot(), IsEmpty());
  EXPECT_EQ(rig.Count(RelayOutcome::kClientGone), 1u);
}

TEST(Relay, ClientThatGoesLeavesTheQueue) {
  RelayRig rig;
  rig.free.clear();
  rig.Begin("GET");
  ASSERT_NE(rig.waiting, nullptr);
  rig.relay->OnAbort(rig.now);
  EXPECT_EQ(rig.waiting, nullptr);
  EXPECT_EQ(rig.Count(RelayOutcome::kClientGone), 1u);
  EXPECT_THAT(rig.admission.left, ElementsAre(Left::kUnasked));
}

TEST(Relay, RelayThatIsDestroyedInTheMiddleIsCancelled) {
  RelayRig rig;
  rig.Begin("GET");
  rig.relay.reset();
  EXPECT_THAT(rig.upstream.TakeGot(), ElementsAre("GET /x", "cancel"));
  EXPECT_EQ(rig.Count(RelayOutcome::kClientGone), 1u);
}

// RFC 9110, 6.6.1. 1970-01-01 is a Thursday, and the time of decisions is 1000 s then.
TEST(Relay, AnAnswerWithoutADateGetsOne) {
  for (const bool has_date : {false, true}) {
    RelayRig rig;
    rig.options.adds_date = true;
    rig.Begin("GET");
    http::ResponseHead head;
    if (has_date) head.fields.Add("date", "Sun, 06 Nov 1994 08:49:37 GMT");
    rig.Answer(rig.upstream).OnHead(std::move(head), rig.now);
    EXPECT_THAT(rig.client.got,
                ElementsAre(has_date ? "head 200 date=Sun, 06 Nov 1994 08:49:37 GMT"
                                     : "head 200 Date=Thu, 01 Jan 1970 00:16:40 GMT"));
    rig.relay->OnAbort(rig.now);
  }
}

}  // namespace relay_test
}  // namespace headgate::proxy
