// Rules that limit concurrency, in front of the pool: permits are held while requests are in
// flight.
#include "headgate/proxy/held_permits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headgate/proxy/rule_rig.h"

namespace headgate::proxy {
namespace held_permits_test {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::string_view kOne =
    "domain: default\ndescriptors:\n- key: client\n"
    "  rate_limit: {algorithm: concurrency, requests: 1, ttl: 30s}\n";

const RuleRig::FieldList kAnn = {{"x-client-id", "ann"}};

struct PermitRig : RuleRig {
  explicit PermitRig(std::string_view rules = kOne) : RuleRig({}) { SetRuleFile(rules); }
  // Whether another request of ann would pass now.
  bool HasRoom() {
    const rule::Entry entry{.key = "client", .value = "ann"};
    const rule::Descriptor descriptor{.entries = {&entry, 1}, .cost = 0};
    limiter::Response response;
    EXPECT_TRUE(checker
                    ->Check({.domain = "default",
                             .descriptors = {&descriptor, 1},
                             .operation = limiter::Operation::kPeek},
                            response, now)
                    .ok());
    return response.allowed;
  }
  void Pass(base::Duration d) {
    RuleRig::Pass(d);
    wheel.Advance(now);
  }
};

TEST(HeldPermits, OneMoreThanMayBeInFlightIsDenied) {
  PermitRig rig;
  const auto first = rig.Ask(kAnn);
  EXPECT_THAT(rig.upstream.got, ElementsAre("POST /x x-client-id=ann"));
  const auto second = rig.Ask(kAnn);
  EXPECT_THAT(second->client.got.front(),
              AllOf(StartsWith("head 429 "), HasSubstr("Retry-After=")));
  EXPECT_THAT(rig.admission.asked, ElementsAre("ann")) << "it takes nothing from the pool";
  const auto other = rig.Ask({{"x-client-id", "bob"}});
  EXPECT_THAT(rig.other.got, ElementsAre("POST /x x-client-id=bob")) << "another key";
}

TEST(HeldPermits, AreGivenBackWhenTheAnswerIsComplete) {
  PermitRig rig;
  const auto first = rig.Ask(kAnn);
  first->receiver->OnEnd({}, rig.now);
  rig.Answer(rig.upstream).OnHead({.body = {.kind = http::BodyLength::Kind::kUnsized}}, rig.now);
  rig.Answer(rig.upstream).OnData("abc", rig.now);
  EXPECT_FALSE(rig.HasRoom()) << "the answer is still on its way";
  rig.Answer(rig.upstream).OnEnd({}, rig.now);
  EXPECT_TRUE(rig.HasRoom());
}

TEST(HeldPermits, AreGivenBackWhenTheClientLeaves) {
  PermitRig rig;
  const auto first = rig.Ask(kAnn);
  EXPECT_FALSE(rig.HasRoom());
  first->receiver->OnAbort(rig.now);
  EXPECT_TRUE(rig.HasRoom());
}

TEST(HeldPermits, AreGivenBackWhenTheUpstreamFails) {
  PermitRig rig;
  const auto before = rig.Ask(kAnn);
  rig.Fail(rig.upstream, http::Failure::kInvalid);
  EXPECT_TRUE(rig.HasRoom());
  const auto amid = rig.Ask(kAnn);
  rig.Answer(rig.other).OnHead({.body = {.kind = http::BodyLength::Kind::kUnsized}}, rig.now);
  EXPECT_FALSE(rig.HasRoom());
  rig.Fail(rig.other, http::Failure::kTruncated);
  EXPECT_TRUE(rig.HasRoom());
}

TEST(HeldPermits, AreGivenBackWhenThePoolRefuses) {
  PermitRig rig;
  rig.admission.verdict = {.admitted = false, .reason = "used up"};
  const auto refused = rig.Ask(kAnn);
  EXPECT_THAT(refused->client.got.front(), StartsWith("head 429 "));
  EXPECT_TRUE(rig.HasRoom());
}

TEST(HeldPermits, AreGivenBackWhenATunnelCloses) {
  PermitRig rig;
  http::RequestHead head = RuleRig::HeadOf("/x", kAnn);
  head.method = "GET";
  head.protocol = "chat";
  const auto tunnel = rig.Ask(std::move(head));
  rig.Answer(rig.upstream)
      .OnHead({.status = 101, .body = {.kind = http::BodyLength::Kind::kTunnel}}, rig.now);
  rig.Answer(rig.upstream).OnEnd({}, rig.now);
  EXPECT_FALSE(rig.HasRoom()) << "the client's direction is open";
  tunnel->receiver->OnEnd({}, rig.now);
  EXPECT_TRUE(rig.HasRoom());
}

TEST(HeldPermits, AreNotTakenByARequestThatABucketDenies) {
  PermitRig rig(
      "domain: default\ndescriptors:\n- key: client\n  rate_limits:\n"
      "  - {algorithm: concurrency, requests: 1, ttl: 30s}\n"
      "  - {unit: hour, requests_per_unit: 0, algorithm: token_bucket}\n");
  const auto denied = rig.Ask(kAnn);
  EXPECT_THAT(denied->client.got.front(), StartsWith("head 429 "));
  EXPECT_EQ(
      rig.limiter.permits().Do({}, {.kind = permit::Ask::Kind::kPeek, .max = 1}, rig.now).in_flight,
      0u);
}

// The rule's ttl is 30 s. The rig answers for a download that lasts minutes.
TEST(HeldPermits, LongRequestKeepsItsPermit) {
  PermitRig rig;
  const auto exchange = rig.Ask(kAnn);
  rig.Answer(rig.upstream).OnHead({.body = {.kind = http::BodyLength::Kind::kUnsized}}, rig.now);
  for (int second = 0; second < 120; ++second) {
    rig.Pass(1s);
    rig.Answer(rig.upstream).OnData("abc", rig.now);
    ASSERT_FALSE(rig.HasRoom()) << second;
  }
  rig.Answer(rig.upstream).OnEnd({}, rig.now);
  EXPECT_TRUE(rig.HasRoom());
}

// The timers of a process that was killed do not run.
TEST(HeldPermits, EndAfterTheirTtlIfNobodyRenewsThem) {
  PermitRig rig;
  const auto exchange = rig.Ask(kAnn);
  rig.now += 30s - 1ns;
  EXPECT_FALSE(rig.HasRoom());
  rig.now += 1ns;
  EXPECT_TRUE(rig.HasRoom());
}

// ---- In a shared store

constexpr std::string_view kName = "hg:{p|default|client=ann}";

struct SharedPermitRig : RuleRig {
  SharedPermitRig() : RuleRig({}, Store::kShared) { SetRuleFile(kOne); }
  void Settle() {
    shared->AnswerAll();
    Pass(0s);
  }
  uint32_t InFlight() { return shared->PermitsIn(std::string(kName)); }
};

TEST(HeldPermits, AreGivenBackToTheStore) {
  SharedPermitRig rig;
  const auto first = rig.Ask(kAnn);
  rig.Settle();
  EXPECT_THAT(rig.upstream.got, ElementsAre("POST /x x-client-id=ann"));
  EXPECT_EQ(rig.InFlight(), 1u);
  const auto second = rig.Ask(kAnn);
  rig.Settle();
  EXPECT_THAT(second->client.got.front(), StartsWith("head 429 "));
  first->receiver->OnAbort(rig.now);
  rig.Settle();
  EXPECT_EQ(rig.InFlight(), 0u);
}

TEST(HeldPermits, OfAClientThatLeavesBeforeTheStoreAnswersAreGivenBack) {
  SharedPermitRig rig;
  {
    const auto exchange = rig.Ask(kAnn);
    exchange->receiver->OnAbort(rig.now);
  }
  rig.Settle();
  rig.Settle();
  EXPECT_EQ(rig.InFlight(), 0u);
  EXPECT_THAT(rig.upstream.got, ::testing::IsEmpty());
}

TEST(HeldPermits, OfALongRequestAreRenewedInTheStore) {
  SharedPermitRig rig;
  const auto exchange = rig.Ask(kAnn);
  rig.Settle();
  rig.Answer(rig.upstream).OnHead({.body = {.kind = http::BodyLength::Kind::kUnsized}}, rig.now);
  for (int second = 0; second < 120; ++second) {
    rig.Pass(1s);
    rig.wheel.Advance(rig.now);
    rig.Settle();
    ASSERT_EQ(rig.InFlight(), 1u) << second;
  }
  rig.Answer(rig.upstream).OnEnd({}, rig.now);
  rig.Settle();
  EXPECT_EQ(rig.InFlight(), 0u);
}

TEST(HeldPermits, PassthroughTakesThemIfItCan) {
  PermitRig rig;
  rig.admission.refusing = false;
  const auto first = rig.Ask(kAnn);
  const auto second = rig.Ask(kAnn);
  EXPECT_THAT(rig.other.got, ElementsAre("POST /x x-client-id=ann"));
  EXPECT_EQ(rig.rule_counters.let_through.value(), 1u);
  first->receiver->OnAbort(rig.now);
  EXPECT_TRUE(rig.HasRoom());
}

// In both modes, a request that the pool refuses, or would refuse, gives its permit back at once.
TEST(HeldPermits, PassthroughKeepsNoneIfThePoolWouldRefuse) {
  PermitRig rig;
  rig.admission.refusing = false;
  rig.admission.verdict.counted_only = true;
  const auto first = rig.Ask(kAnn);
  EXPECT_THAT(rig.upstream.got, ElementsAre("POST /x x-client-id=ann"));
  EXPECT_TRUE(rig.HasRoom());
}

}  // namespace held_permits_test
}  // namespace headgate::proxy
