#include "headgate/proxy/waiting_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headgate/proxy/rule_rig.h"

namespace headgate::proxy {
namespace {

using namespace std::chrono_literals;
using front::auth::Outcome;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

const RuleRig::FieldList kAnn = {{"x-client-id", "ann"}};
// One leaves every second, and two wait.
const std::vector<std::string> kQueue = {"client: 1/second burst 2 queue"};

http::RequestHead GrpcHead(std::string_view timeout) {
  http::RequestHead head = RuleRig::HeadOf(
      "/x",
      {{"x-client-id", "ann"}, {"content-type", "application/grpc"}, {"grpc-timeout", timeout}});
  head.version = http::Version::kHttp2;
  return head;
}

// ---- The queue of a rule

TEST(WaitingRequest, IsSentWhenItsTurnComes) {
  RuleRig rig(kQueue);
  const auto first = rig.Ask(kAnn);
  EXPECT_THAT(rig.upstream.TakeGot(), ElementsAre("POST /x x-client-id=ann"));
  const auto second = rig.Ask(kAnn);
  EXPECT_EQ(rig.HeldNow(), 1u);
  rig.Pass(1s - 1ns);
  EXPECT_THAT(rig.other.got, IsEmpty());
  EXPECT_THAT(rig.admission.asked, ElementsAre("ann")) << "the pool is asked when it is sent";
  rig.Pass(1ns);
  EXPECT_THAT(rig.other.got, ElementsAre("POST /x x-client-id=ann"));
  EXPECT_EQ(rig.HeldNow(), 0u);
  EXPECT_THAT(rig.admission.asked, ElementsAre("ann", "ann"));
}

TEST(WaitingRequest, OthersThanThoseThatMayWaitAreDenied) {
  RuleRig rig(kQueue);
  const auto first = rig.Ask(kAnn);
  const auto second = rig.Ask(kAnn);
  const auto third = rig.Ask(kAnn);
  const auto denied = rig.Ask(kAnn);
  EXPECT_THAT(denied->client.got.front(),
              AllOf(StartsWith("head 429 "), HasSubstr("Retry-After=1 ")));
  rig.Pass(1s);
  EXPECT_EQ(rig.HeldNow(), 1u) << "in order";
  rig.Pass(1s);
  EXPECT_EQ(rig.HeldNow(), 0u);
}

TEST(WaitingRequest, BodyStaysUncreditedAndFollowsInOrder) {
  RuleRig rig(kQueue);
  const auto first = rig.Ask(kAnn);
  http::RequestHead head = RuleRig::HeadOf("/x", kAnn);
  head.body = {.kind = http::BodyLength::Kind::kUnsized};
  const auto second = rig.Ask(std::move(head));
  second->receiver->OnData("abc", rig.now);
  second->receiver->OnData("de", rig.now);
  http::Fields trailers;
  trailers.Add("x-sum", "7");
  EXPECT_EQ(second->client.credited, 0u);
  rig.Pass(1s);
  EXPECT_THAT(rig.other.TakeGot(), ElementsAre("POST /x unsized x-client-id=ann", "data abcde"));
  EXPECT_EQ(second->client.credited, 5u);
  second->receiver->OnData("f", rig.now);
  second->receiver->OnEnd(trailers, rig.now);
  EXPECT_THAT(rig.other.got, ElementsAre("data f", "end x-sum=7"));
}

TEST(WaitingRequest, EndThatArrivesBeforeTheTurnFollows) {
  RuleRig rig(kQueue);
  const auto first = rig.Ask(kAnn);
  const auto second = rig.Ask(kAnn);
  second->receiver->OnEnd({}, rig.now);
  second->receiver->OnWritable(rig.now);
  rig.Pass(1s);
  EXPECT_THAT(rig.other.got, ElementsAre("POST /x x-client-id=ann", "end"));
  rig.Answer(rig.other).OnHead({.body = {.kind = http::BodyLength::Kind::kNone}}, rig.now);
  // All of the limit is there again when nobody waits and the next one need not: 1 s after the
  // turn.
  EXPECT_THAT(second->client.got, ElementsAre(AllOf(StartsWith("head 200 "),
                                                    HasSubstr("RateLimit=\"client\";r=1;t=1"))));
}

TEST(WaitingRequest, ClientThatLeavesKeepsItsTurnButReachesNoUpstream) {
  RuleRig rig(kQueue);
  const auto first = rig.Ask(kAnn);
  const auto second = rig.Ask(kAnn);
  second->receiver->OnData("abc", rig.now);
  second->receiver->OnAbort(rig.now);
  EXPECT_EQ(rig.HeldNow(), 0u);
  EXPECT_EQ(rig.rule_counters.held_left.value(), 1u);
  // A queue takes no refunds (algorithms.md).
  const auto third = rig.Ask(kAnn);
  rig.Pass(2s - 1ns);
  EXPECT_THAT(rig.other.got, IsEmpty());
  rig.Pass(1ns);
  EXPECT_THAT(rig.other.got, ElementsAre("POST /x x-client-id=ann"));
}

TEST(WaitingRequest, ItsConnectionMayEndWithoutAWord) {
  RuleRig rig(kQueue);
  rig.admission.sees_room = false;  // so that the pool has been asked
  const auto first = rig.Ask(kAnn);
  { const auto second = rig.Ask(kAnn); }
  EXPECT_EQ(rig.HeldNow(), 0u);
  EXPECT_THAT(rig.admission.left, ElementsAre(Left::kUnasked));
  rig.Pass(5s);
  EXPECT_THAT(rig.other.got, IsEmpty());
}

TEST(WaitingRequest, ThereAreOnlySoMany) {
  RuleRig rig({"client: 1/second burst 100 queue"});
  const auto first = rig.Ask(kAnn);
  std::vector<std::unique_ptr<RuleRig::Exchange>> held;
  for (int i = 0; i < 4; ++i) held.push_back(rig.Ask(kAnn));
  EXPECT_EQ(rig.HeldNow(), 4u);
  EXPECT_THAT(rig.FirstOf(RuleRig::HeadOf("/x", kAnn)),
              AllOf(StartsWith("head 503 "), HasSubstr(" Retry-After=1")));
  EXPECT_EQ(rig.rule_counters.held_refused.value(), 1u);
}

TEST(WaitingRequest, PoolMayRefuseItAtItsTurn) {
  RuleRig rig(kQueue);
  const auto first = rig.Ask(kAnn);
  const auto second = rig.Ask(kAnn);
  second->receiver->OnData("abc", rig.now);
  rig.admission.verdict = {.admitted = false, .retry_after = 3s, .reason = "used up"};
  rig.Pass(1s);
  EXPECT_THAT(second->client.got.front(), AllOf(StartsWith("head 429 "), HasSubstr("After=3")));
  EXPECT_EQ(second->client.credited, 3u);
}

TEST(WaitingRequest, GrpcDeadlineCountsTheWait) {
  RuleRig rig(kQueue);
  const auto first = rig.Ask(kAnn);
  rig.other.http2 = true;
  const auto second = rig.Ask(GrpcHead("3S"));
  rig.Pass(1s);
  EXPECT_THAT(rig.other.got, ElementsAre(HasSubstr("grpc-timeout=2000000u")));
  // The next turn comes after 1 s.
  EXPECT_THAT(rig.FirstOf(GrpcHead("1S")), HasSubstr("grpc-status=4"));
}

TEST(WaitingRequest, RulesMayBeReplacedMeanwhile) {
  RuleRig rig(kQueue);
  const auto first = rig.Ask(kAnn);
  const auto second = rig.Ask(kAnn);
  rig.SetRules({"other: 1/second"});
  const auto third = rig.Ask({{"x-client-id", "bob"}});  // the old rules are gone
  rig.free.push_back(&rig.other);
  rig.other.receiver = nullptr;
  rig.other.got.clear();
  rig.Pass(1s);
  rig.Answer(rig.other).OnHead({}, rig.now);
  EXPECT_THAT(second->client.got, ElementsAre(HasSubstr("RateLimit=\"client\"")));
}

// ---- The shared store

TEST(WaitingRequest, PassesWhenTheStoreHasAnswered) {
  RuleRig rig({"client: 2/minute"}, Store::kShared);
  const auto exchange = rig.Ask(kAnn);
  exchange->receiver->OnData("abc", rig.now);
  EXPECT_EQ(rig.shared->waiting(), 1u);
  EXPECT_THAT(rig.upstream.got, IsEmpty());
  rig.shared->AnswerAll();
  EXPECT_THAT(rig.upstream.got, IsEmpty()) << "not in the middle of the store's work";
  rig.Pass(0s);
  EXPECT_THAT(rig.upstream.got, ElementsAre("POST /x x-client-id=ann", "data abc"));
  rig.Answer(rig.upstream).OnHead({}, rig.now);
  EXPECT_THAT(exchange->client.got, ElementsAre(HasSubstr("RateLimit=\"client\";r=1;t=30")));
}

TEST(WaitingRequest, IsDeniedWhenTheStoreHasAnswered) {
  RuleRig rig({"client: 1/minute"}, Store::kShared);
  const auto first = rig.Ask(kAnn);
  const auto second = rig.Ask(kAnn);
  second->receiver->OnData("abc", rig.now);
  rig.shared->AnswerAll();
  rig.Pass(0s);
  EXPECT_THAT(rig.upstream.got, ElementsAre("POST /x x-client-id=ann"));
  EXPECT_THAT(second->client.got.front(),
              AllOf(StartsWith("head 429 "), HasSubstr("Retry-After=60")));
  EXPECT_EQ(second->client.credited, 3u);
}

TEST(WaitingRequest, IsHeldWhenTheStoreHasAnswered) {
  RuleRig rig(kQueue, Store::kShared);
  const auto first = rig.Ask(kAnn);
  const auto second = rig.Ask(kAnn);
  rig.shared->AnswerAll();
  rig.Pass(0s);
  EXPECT_EQ(rig.HeldNow(), 1u);
  EXPECT_THAT(rig.other.got, IsEmpty());
  rig.Pass(1s);
  EXPECT_THAT(rig.other.got, ElementsAre("POST /x x-client-id=ann"));
}

TEST(WaitingRequest, AnswerOfTheStoreMayComeAfterTheClientHasLeft) {
  RuleRig rig({"client: 2/minute"}, Store::kShared);
  const auto first = rig.Ask(kAnn);
  { const auto second = rig.Ask(kAnn); }
  first->receiver->OnAbort(rig.now);
  rig.shared->AnswerAll();
  rig.Pass(1s);
  EXPECT_THAT(rig.upstream.got, IsEmpty());
  EXPECT_EQ(rig.rule_counters.held_left.value(), 2u);
}

TEST(WaitingRequest, RequestThatNoRuleConcernsDoesNotWaitForTheStore) {
  RuleRig rig({"other: 2/minute"}, Store::kShared);
  const auto exchange = rig.Ask(kAnn);
  EXPECT_THAT(rig.upstream.got, ElementsAre("POST /x x-client-id=ann"));
  EXPECT_EQ(rig.rule_counters.held_left.value(), 0u);
}

}  // namespace
}  // namespace headgate::proxy
