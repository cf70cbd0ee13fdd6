#include "headgate/proxy/waiting_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "headgate/proxy/rule_rig.h"

namespace headgate::proxy {
namespace waiting_request_test {

using namespace std::chrono_literals;
using gate::RequestOutcome;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

const RuleRig::FieldList kAnn = {{"x-client-id", "ann"}};
const RuleRig::FieldList kBob = {{"x-client-id", "bob"}};
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
  // The limit is full again when no request waits and the next one would not have to wait: 1 s
  // after the turn.
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

// Others hold all places, so the client is refused more often than its queue is long.
TEST(WaitingRequest, RequestThatIsNotHeldTakesNoTurn) {
  std::deque<PlayedUpstream> more(2);
  RuleRig rig({"client=ann: 1/second burst 5 queue", "client=bob: 1/second burst 2 queue"});
  for (PlayedUpstream& one : more) rig.free.push_back(&one);
  std::vector<std::unique_ptr<RuleRig::Exchange>> ann;
  for (int i = 0; i < 5; ++i) ann.push_back(rig.Ask(kAnn));
  EXPECT_EQ(rig.HeldNow(), 4u);
  const auto bob = rig.Ask(kBob);
  EXPECT_THAT(rig.other.got, ElementsAre("POST /x x-client-id=bob"));
  for (int i = 0; i < 5; ++i)
    EXPECT_THAT(rig.FirstOf(RuleRig::HeadOf("/x", kBob)), StartsWith("head 503 ")) << i;
  EXPECT_EQ(rig.rule_counters.held_refused.value(), 5u);
  ann.back()->receiver->OnAbort(rig.now);
  const auto held = rig.Ask(kBob);
  EXPECT_THAT(held->client.got, IsEmpty());
  EXPECT_EQ(rig.HeldNow(), 4u);
  rig.Pass(1s);
  EXPECT_THAT(rig.admission.asked, ElementsAre("ann", "bob", "ann", "bob")) << "the next turn";
}

TEST(WaitingRequest, RequestThatIsOverTheLimitIsDeniedAlsoIfNoPlaceIsLeft) {
  RuleRig rig({"client=ann: 1/second burst 4 queue", "client=bob: 1/minute"});
  std::vector<std::unique_ptr<RuleRig::Exchange>> ann;
  for (int i = 0; i < 5; ++i) ann.push_back(rig.Ask(kAnn));
  const auto bob = rig.Ask(kBob);
  EXPECT_THAT(rig.other.got, ElementsAre("POST /x x-client-id=bob"));
  EXPECT_THAT(rig.FirstOf(RuleRig::HeadOf("/x", kBob)), StartsWith("head 429 "));
  EXPECT_THAT(rig.FirstOf(RuleRig::HeadOf("/x", kAnn)), StartsWith("head 429 "));
  EXPECT_EQ(rig.rule_counters.held_refused.value(), 0u);
}

TEST(WaitingRequest, RequestThatIsNotHeldHasNoPermitAndCostsNoOtherLimit) {
  RuleRig rig(kQueue);
  rig.SetRuleFile(R"(
domain: default
descriptors:
- key: client
  rate_limits:
  - {algorithm: leaky_bucket, queue: true, period: 1s, requests_per_unit: 1, burst: 5}
  - {unit: hour, requests_per_unit: 3, algorithm: fixed_window}
  - {algorithm: concurrency, requests: 2, ttl: 30s}
)");
  rig.held.EndAt(rig.now + 1s - 1ns);
  const auto first = rig.Ask(kAnn);
  for (int i = 0; i < 5; ++i)
    EXPECT_THAT(rig.FirstOf(RuleRig::HeadOf("/x", kAnn)), StartsWith("head 503 ")) << i;
  rig.held.EndAt(base::kInstantMax);
  const auto second = rig.Ask(kAnn);
  rig.Pass(1s);
  EXPECT_THAT(rig.other.got, ElementsAre("POST /x x-client-id=ann"));
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

TEST(WaitingRequest, GrpcCallWhoseTurnIsTooLateTakesNone) {
  RuleRig rig(kQueue);
  const auto first = rig.Ask(kAnn);
  for (int i = 0; i < 5; ++i)
    EXPECT_THAT(rig.FirstOf(GrpcHead("1S")), HasSubstr("grpc-status=4")) << i;
  rig.other.http2 = true;
  const auto second = rig.Ask(GrpcHead("1001m"));
  rig.Pass(1s);
  EXPECT_THAT(rig.other.got, ElementsAre(HasSubstr("grpc-timeout=1000000n")));
}

TEST(WaitingRequest, RulesMayBeReplacedMeanwhile) {
  PlayedUpstream last;
  RuleRig rig(kQueue);
  const auto first = rig.Ask(kAnn);
  const auto second = rig.Ask(kAnn);
  rig.SetRules({"other: 1/second"});
  const auto third = rig.Ask({{"x-client-id", "bob"}});  // the old rules are gone
  rig.free.push_back(&last);
  rig.Pass(1s);
  rig.Answer(last).OnHead({}, rig.now);
  EXPECT_THAT(second->client.got, ElementsAre(HasSubstr("RateLimit=\"client\"")));
}

// ---- Changes while it waits

TEST(WaitingRequest, GoesOnAtOnceWhenThePoolRefusesNobodyAnyMore) {
  RuleRig rig(kQueue);
  const auto first = rig.Ask(kAnn);
  const auto second = rig.Ask(kAnn);
  rig.admission.refusing = false;
  rig.held.LetGo();
  rig.Pass(0s);
  EXPECT_THAT(rig.other.got, ElementsAre("POST /x x-client-id=ann"));
  EXPECT_EQ(rig.HeldNow(), 0u);
}

TEST(WaitingRequest, IsRefusedIfTheProcessEndsBeforeItsTurn) {
  RuleRig rig(kQueue);
  rig.admission.sees_room = false;  // so that the pool has been asked
  const auto first = rig.Ask(kAnn);
  const auto second = rig.Ask(kAnn);
  const auto third = rig.Ask(kAnn);
  third->receiver->OnData("abc", rig.now);
  rig.held.EndAt(rig.now + 1s);
  rig.Pass(0s);
  EXPECT_EQ(rig.HeldNow(), 1u) << "the turn of the second one comes before the end";
  EXPECT_THAT(third->client.got.front(), AllOf(StartsWith("head 503 "), HasSubstr("After=1")));
  EXPECT_EQ(third->client.got.back(), "end");
  EXPECT_EQ(third->client.credited, 3u);
  EXPECT_THAT(rig.admission.left, ElementsAre(Left::kUnasked)) << "the pool has it back";
  rig.Pass(1s);
  EXPECT_THAT(rig.other.got, ElementsAre("POST /x x-client-id=ann"));
}

TEST(WaitingRequest, IsNotHeldBeyondTheEndOfTheProcess) {
  RuleRig rig(kQueue);
  rig.held.EndAt(rig.now + 1s - 1ns);
  const auto first = rig.Ask(kAnn);
  EXPECT_THAT(rig.upstream.got, ElementsAre("POST /x x-client-id=ann"));
  EXPECT_THAT(rig.FirstOf(RuleRig::HeadOf("/x", kAnn)),
              AllOf(StartsWith("head 503 "), HasSubstr("After=1")));
  EXPECT_EQ(rig.HeldNow(), 0u);
}

TEST(WaitingRequest, IsRefusedIfTheStoreHasNotAnsweredWhenTheProcessEnds) {
  RuleRig rig({"client: 2/minute"}, Store::kShared);
  const auto exchange = rig.Ask(kAnn);
  rig.held.EndAt(rig.now + 1s);
  rig.Pass(1s - 1ns);
  EXPECT_THAT(exchange->client.got, IsEmpty());
  rig.Pass(1ns);
  EXPECT_THAT(exchange->client.got.front(), AllOf(StartsWith("head 503 "), HasSubstr("After=1")));
  rig.shared->AnswerAll();
  rig.Pass(0s);
  EXPECT_THAT(rig.upstream.got, IsEmpty()) << "the answer comes too late";
  EXPECT_EQ(exchange->client.got.back(), "end");
}

// ---- The shared store

TEST(WaitingRequest, PassesWhenTheStoreHasAnswered) {
  RuleRig rig({"client: 2/minute"}, Store::kShared);
  http::RequestHead head = RuleRig::HeadOf("/x", kAnn);
  head.body = {.kind = http::BodyLength::Kind::kSized, .bytes = 3};
  const auto exchange = rig.Ask(std::move(head));
  exchange->receiver->OnData("abc", rig.now);
  EXPECT_EQ(rig.shared->waiting(), 1u);
  EXPECT_THAT(rig.upstream.got, IsEmpty());
  rig.shared->AnswerAll();
  EXPECT_THAT(rig.upstream.got, IsEmpty()) << "not in the middle of the store's work";
  rig.Pass(0s);
  EXPECT_THAT(rig.upstream.got, ElementsAre("POST /x sized 3 x-client-id=ann", "data abc"));
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

TEST(WaitingRequest, RequestThatIsNotHeldTakesNoTurnInTheStore) {
  std::deque<PlayedUpstream> more(2);
  RuleRig rig({"client=ann: 1/second burst 5 queue", "client=bob: 1/second burst 2 queue"},
              Store::kShared);
  for (PlayedUpstream& one : more) rig.free.push_back(&one);
  const auto settle = [&] {
    while (rig.shared->waiting() > 0) {
      rig.shared->AnswerAll();
      rig.Pass(0s);
    }
  };
  std::vector<std::unique_ptr<RuleRig::Exchange>> ann;
  for (int i = 0; i < 5; ++i) ann.push_back(rig.Ask(kAnn));
  settle();
  EXPECT_EQ(rig.HeldNow(), 4u);
  const auto bob = rig.Ask(kBob);
  settle();
  EXPECT_THAT(rig.other.got, ElementsAre("POST /x x-client-id=bob"));
  for (int i = 0; i < 5; ++i) {
    const auto refused = rig.Ask(kBob);
    EXPECT_EQ(rig.shared->oldest().operation, store::Operation::kPeek);
    settle();
    EXPECT_THAT(refused->client.got.front(), StartsWith("head 503 ")) << i;
  }
  ann.back()->receiver->OnAbort(rig.now);
  const auto held = rig.Ask(kBob);
  settle();
  EXPECT_EQ(rig.HeldNow(), 4u);
  rig.Pass(1s);
  EXPECT_THAT(rig.admission.asked, ElementsAre("ann", "bob", "ann", "bob"));
}

// Four may be held, and all of them ask at once.
TEST(WaitingRequest, RequestWithATurnIsHeldEvenIfOthersFillItsPlaceMeanwhile) {
  std::deque<PlayedUpstream> more(5);
  RuleRig rig({"client: 1/second burst 9 queue"}, Store::kShared);
  for (PlayedUpstream& one : more) rig.free.push_back(&one);
  std::vector<std::unique_ptr<RuleRig::Exchange>> all;
  for (int i = 0; i < 7; ++i) all.push_back(rig.Ask(kAnn));
  for (int i = 0; i < 4; ++i) {
    rig.shared->AnswerAll();
    rig.Pass(0s);
  }
  EXPECT_EQ(rig.shared->waiting(), 0u);
  // The first one passes. The last three have peeked before the places were full, or have not.
  const uint64_t refused = rig.rule_counters.held_refused.value();
  EXPECT_EQ(rig.HeldNow() + refused, 6u);
  EXPECT_GE(rig.HeldNow(), 4u);
  rig.Pass(std::chrono::seconds(rig.HeldNow() + 1));
  EXPECT_EQ(rig.HeldNow(), 0u);
}

TEST(WaitingRequest, IsNotForgottenBetweenTheLookAndTheTake) {
  RuleRig rig(kQueue, Store::kShared);
  rig.held.EndAt(rig.now + 1s);
  const auto exchange = rig.Ask(kAnn);
  rig.shared->AnswerAll();
  rig.Pass(0s);
  EXPECT_EQ(rig.shared->waiting(), 1u) << "the take";
  rig.Pass(1s);
  EXPECT_THAT(exchange->client.got.front(), AllOf(StartsWith("head 503 "), HasSubstr("After=1")));
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

// ---- Any order

// Clients that ask, send, end, leave and wait in any order. Afterwards every byte is credited,
// nobody is held, and the pool has heard once of each request that it admitted.
struct RandomClients {
  explicit RandomClients(uint64_t seed)
      : random(seed), rig(kQueue, seed % 2 == 0 ? Store::kMemory : Store::kShared) {}

  struct Sender {
    std::unique_ptr<RuleRig::Exchange> exchange;
    size_t sent = 0;
    bool ended = false;
  };

  void Ask() {
    rig.free.push_back(&upstreams.emplace_back());
    http::RequestHead head = RuleRig::HeadOf("/x", kAnn);
    head.body = {.kind = http::BodyLength::Kind::kUnsized};
    senders.push_back({.exchange = rig.Ask(std::move(head))});
  }
  void Send(Sender& sender) {
    if (sender.ended) return;
    const std::string bytes(1 + random.Below(40), 'b');
    sender.exchange->receiver->OnData(bytes, rig.now);
    sender.sent += bytes.size();
  }
  void End(Sender& sender) {
    if (!std::exchange(sender.ended, true)) sender.exchange->receiver->OnEnd({}, rig.now);
  }
  void Leave(size_t index) {
    if (random.Below(2) == 0) senders[index].exchange->receiver->OnAbort(rig.now);
    senders.erase(senders.begin() + static_cast<std::ptrdiff_t>(index));
  }
  void Answer() {
    for (PlayedUpstream& upstream : upstreams) {
      if (upstream.receiver == nullptr || random.Below(2) == 0) continue;
      upstream.receiver->OnHead({}, rig.now);
      std::exchange(upstream.receiver, nullptr)->OnEnd({}, rig.now);
    }
  }
  void AnswerOfStore() {
    if (rig.shared) rig.shared->AnswerAll();
  }
  void Step() {
    if (random.Below(100) == 0) rig.held.LetGo();
    if (random.Below(200) == 0) rig.held.EndAt(rig.now + std::chrono::milliseconds(500));
    const size_t index = senders.empty() ? 0 : random.Below(senders.size());
    switch (random.Below(senders.empty() ? 4 : 8)) {
      case 0:
        return Ask();
      case 1:
        return rig.Pass(std::chrono::milliseconds(random.Below(700)));
      case 2:
        return AnswerOfStore();
      case 3:
        return Answer();
      case 4:
        return End(senders[index]);
      case 5:
        return Leave(index);
      default:
        return Send(senders[index]);
    }
  }
  void Settle() {
    // A request may ask twice: it peeks, and then takes.
    do {
      AnswerOfStore();
      rig.Pass(0s);
    } while (rig.shared && rig.shared->waiting() > 0);
    rig.Pass(1min);
  }

  base::Random random;
  std::deque<PlayedUpstream> upstreams;
  RuleRig rig;
  std::vector<Sender> senders;
};

TEST(WaitingRequest, KeepsItsAccountsInAnyOrder) {
  size_t held = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    RandomClients clients(seed);
    clients.rig.free.clear();
    for (int i = 0; i < 60; ++i) clients.Step();
    clients.Settle();
    EXPECT_EQ(clients.rig.HeldNow(), 0u);
    for (const RandomClients::Sender& sender : clients.senders)
      EXPECT_EQ(sender.exchange->client.credited, sender.sent);
    clients.senders.clear();
    EXPECT_EQ(clients.rig.admission.left.size(), clients.rig.application_counters.admitted.value());
    held += clients.rig.rule_counters.verdicts.held_begun.value();
  }
  EXPECT_GT(held, 300u) << "the runs have something to hold";
}

}  // namespace waiting_request_test
}  // namespace headgate::proxy
