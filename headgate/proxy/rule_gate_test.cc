#include "headgate/proxy/rule_gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headgate/proxy/rule_rig.h"

namespace headgate::proxy {
namespace rule_gate_test {

using namespace std::chrono_literals;
using gate::RequestOutcome;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

const RuleRig::FieldList kAnn = {{"x-client-id", "ann"}};

// ---- Passes, or is denied, at once

TEST(RuleGate, RequestThatPassesIsRelayedAtOnce) {
  RuleRig rig({"client: 2/minute"});
  const auto passed = rig.Ask(kAnn);
  EXPECT_THAT(rig.admission.asked, ElementsAre("ann"));
  EXPECT_THAT(rig.upstream.got, ElementsAre("POST /x x-client-id=ann"));
  EXPECT_EQ(rig.Count(RequestOutcome::kAllowed), 1u);
}

// The rule leaves one request, and the pool seven.
TEST(RuleGate, AnswerHasTheFieldsOfTheTighterLimit) {
  RuleRig rig({"client=ann: 2/minute", "client=bob: 20/minute"});
  const auto ann = rig.Ask(kAnn);
  rig.Answer(rig.upstream).OnHead({}, rig.now);
  EXPECT_THAT(ann->client.got, ElementsAre("head 200 RateLimit-Policy=\"client_ann\";q=2;w=60 "
                                           "RateLimit=\"client_ann\";r=1;t=30"));
  const auto bob = rig.Ask({{"x-client-id", "bob"}});
  rig.Answer(rig.other).OnHead({}, rig.now);
  EXPECT_THAT(bob->client.got, ElementsAre("head 200 RateLimit-Policy=\"fair-share\";q=10;w=10 "
                                           "RateLimit=\"fair-share\";r=7;t=4"));
}

TEST(RuleGate, RuleNamesTheFieldsAndTheBodyOfItsAnswers) {
  RuleRig rig({});
  rig.SetRuleFile(
      "domain: default\ndescriptors:\n- key: client\n  rate_limit: {unit: hour, "
      "requests_per_unit: 1}\n  rate_limit_fields: openai\n  refusal: {body: '${rule} "
      "${limit}'}\n");
  const auto admitted = rig.Ask({{"x-client-id", "ann"}});
  EXPECT_EQ(rig.Count(RequestOutcome::kAllowed), 1u);
  const auto denied = rig.Ask({{"x-client-id", "ann"}});
  ASSERT_GE(denied->client.got.size(), 2u);
  EXPECT_THAT(denied->client.got[0], StartsWith("head 429 sized 8 "));
  EXPECT_THAT(denied->client.got[0], HasSubstr(" x-ratelimit-remaining-requests=0"));
  EXPECT_THAT(denied->client.got[0], HasSubstr(" Content-Type=text/plain; charset=utf-8"));
  EXPECT_THAT(denied->client.got[1], HasSubstr("client 1"));
}

TEST(RuleGate, DeniedRequestTakesNothingFromThePool) {
  RuleRig rig({"client: 1/minute"});
  const auto passed = rig.Ask(kAnn);
  const auto denied = rig.Ask(kAnn);
  EXPECT_THAT(denied->client.got,
              ElementsAre(AllOf(StartsWith("head 429 sized "), HasSubstr(" Retry-After=60"),
                                HasSubstr("RateLimit=\"client\";r=0;t=60"),
                                HasSubstr("Content-Type=application/problem+json")),
                          HasSubstr("over the limit"), "end"));
  EXPECT_THAT(rig.admission.asked, ElementsAre("ann")) << "only for the first";
  EXPECT_THAT(rig.admission.left, IsEmpty());
  EXPECT_THAT(rig.other.got, IsEmpty());
  denied->receiver->OnData("abc", rig.now);
  EXPECT_EQ(denied->client.credited, 3u) << "the rest of the request is dropped";
  EXPECT_EQ(rig.Count(RequestOutcome::kDenied), 1u);
  EXPECT_EQ(rig.application_counters.refused.value(), 1u);
}

// Neither the rules nor the pool count it, but lists of refusals hold.
TEST(RuleGate, PreflightPassesUnlessAListRefusesIt) {
  RuleRig rig({"address: 0/minute"});
  const auto preflight = [&] {
    http::RequestHead head = RuleRig::HeadOf(
        "/x", {{"origin", "https://a.example"}, {"access-control-request-method", "POST"}});
    head.method = "OPTIONS";
    return head;
  };
  rig.admission.sees_room = rig.admission.verdict.admitted = false;
  rig.Map("mappings:\n- descriptors:\n  - entries: [{key: address, client_address: true}]\n");
  const auto passed = rig.Ask(preflight());
  EXPECT_EQ(rig.upstream.got.size(), 1u);
  EXPECT_THAT(rig.admission.asked, IsEmpty());
  EXPECT_EQ(rig.Count(RequestOutcome::kPreflight), 1u);
  EXPECT_EQ(rig.application_counters.preflights.value(), 1u);
  rig.Map(
      "mappings:\n- refuse: [{client_address: true, networks: [192.0.2.0/24]}]\n"
      "  descriptors: []\n");
  EXPECT_THAT(rig.FirstOf(preflight()), StartsWith("head 403 "));
  rig.application_options.passes_preflights = false;
  EXPECT_THAT(rig.FirstOf(preflight()), StartsWith("head 429 "));
}

TEST(RuleGate, PageMayReadARefusalByARule) {
  RuleRig rig({"client: 0/minute"});
  rig.options.cors.origins = {"*"};
  EXPECT_THAT(rig.FirstOf(RuleRig::HeadOf("/x", kAnn)),
              AllOf(StartsWith("head 429 "), HasSubstr(" Access-Control-Allow-Origin=* ")));
}

TEST(RuleGate, DateIsATimeOfDay) {
  RuleRig rig({"client: 1/minute"});
  rig.clock.StepWall(std::chrono::hours(2));
  const auto passed = rig.Ask(kAnn);
  const auto denied = rig.Ask(kAnn);
  EXPECT_THAT(denied->client.got.front(), HasSubstr(" Date=Thu, 01 Jan 1970 02:16:40 GMT"));
}

TEST(RuleGate, RequestThatThePoolRefusesTakesNothingFromARule) {
  RuleRig rig({"client: 1/minute"});
  rig.admission.sees_room = false;
  rig.admission.verdict = {.admitted = false, .retry_after = 3s, .reason = "used up"};
  EXPECT_THAT(rig.FirstOf(RuleRig::HeadOf("/x", kAnn)), StartsWith("head 429 "));
  EXPECT_EQ(rig.application_counters.refused.value(), 1u);
  rig.admission.sees_room = true;
  rig.admission.verdict.admitted = true;
  const auto passed = rig.Ask(kAnn);
  EXPECT_THAT(rig.upstream.got, ElementsAre("POST /x x-client-id=ann"));
}

// For example because the pool gives an owner its share back.
TEST(RuleGate, PoolThatFindsRoomAfterAllIsToldIfARuleDenies) {
  RuleRig rig({"client: 1/minute"});
  rig.admission.sees_room = false;
  const auto passed = rig.Ask(kAnn);
  EXPECT_THAT(rig.upstream.got, ElementsAre("POST /x x-client-id=ann"));
  EXPECT_THAT(rig.admission.asked, ElementsAre("ann")) << "once";
  EXPECT_THAT(rig.admission.left, IsEmpty());
  EXPECT_THAT(rig.FirstOf(RuleRig::HeadOf("/x", kAnn)), StartsWith("head 429 "));
  EXPECT_THAT(rig.admission.left, ElementsAre(Left::kUnasked));
}

TEST(RuleGate, PoolMayRefuseAfterTheRules) {
  RuleRig rig({"client: 5/minute"});
  rig.admission.verdict = {.admitted = false, .retry_after = 3s, .reason = "used up"};
  EXPECT_THAT(rig.FirstOf(RuleRig::HeadOf("/x", kAnn)),
              AllOf(StartsWith("head 429 "), HasSubstr("Retry-After=3")));
}

TEST(RuleGate, WithoutARuleThePoolDecidesAlone) {
  RuleRig rig({"other: 1/day"});
  const auto passed = rig.Ask(kAnn);
  rig.Answer(rig.upstream).OnHead({}, rig.now);
  EXPECT_THAT(passed->client.got, ElementsAre(HasSubstr("\"fair-share\";r=7;t=4")));
}

TEST(RuleGate, RulesChangeLive) {
  RuleRig rig({"client: 1/minute fixed_window"});
  const auto passed = rig.Ask(kAnn);
  EXPECT_THAT(rig.FirstOf(RuleRig::HeadOf("/x", kAnn)), StartsWith("head 429 "));
  rig.SetRules({"client: 3/minute fixed_window"});
  const auto other = rig.Ask(kAnn);
  EXPECT_THAT(rig.other.got, ElementsAre("POST /x x-client-id=ann"));
}

TEST(RuleGate, DeniedGrpcCallGetsItsOwnForm) {
  RuleRig rig({"client: 1/minute"});
  const auto passed = rig.Ask(kAnn);
  http::RequestHead head =
      RuleRig::HeadOf("/x", {{"x-client-id", "ann"}, {"content-type", "application/grpc"}});
  head.version = http::Version::kHttp2;
  EXPECT_THAT(rig.FirstOf(head), AllOf(StartsWith("head 200 "), HasSubstr("grpc-status=8"),
                                       HasSubstr("grpc-retry-pushback-ms=60000")));
}

// While everything passes, refusals are only counted.
TEST(RuleGate, InPassthroughNothingIsRefused) {
  RuleRig rig({"client: 1/minute"});
  rig.admission.refusing = false;
  const auto first = rig.Ask(kAnn);
  const auto second = rig.Ask(kAnn);
  rig.Answer(rig.other).OnHead({}, rig.now);
  EXPECT_THAT(second->client.got,
              ElementsAre(AllOf(StartsWith("head 200 "), HasSubstr("RateLimit=\"client\";r=0"),
                                Not(HasSubstr("Retry-After")))));
  EXPECT_EQ(rig.rule_counters.let_through.value(), 1u);
  EXPECT_EQ(rig.Count(RequestOutcome::kDenied), 1u);
  EXPECT_THAT(rig.admission.asked, ElementsAre("ann")) << "the second takes nothing from the pool";
}

// As in RequestThatThePoolRefusesTakesNothingFromARule.
TEST(RuleGate, InPassthroughRequestThatThePoolWouldRefuseTakesNothingFromARule) {
  RuleRig rig({"client: 1/minute"});
  rig.admission.refusing = false;
  rig.admission.sees_room = false;
  rig.admission.verdict.counted_only = true;
  const auto first = rig.Ask(kAnn);
  EXPECT_THAT(rig.upstream.got, ElementsAre("POST /x x-client-id=ann"));
  EXPECT_EQ(rig.Count(RequestOutcome::kAllowed) + rig.Count(gate::RequestOutcome::kDenied), 0u);
  rig.admission.sees_room = true;
  rig.admission.verdict.counted_only = false;
  const auto second = rig.Ask(kAnn);
  EXPECT_EQ(rig.Count(RequestOutcome::kAllowed), 1u);
  EXPECT_EQ(rig.rule_counters.let_through.value(), 0u);
}

TEST(RuleGate, InPassthroughNothingIsHeld) {
  RuleRig rig({"client: 1/minute burst 5 queue"});
  rig.admission.refusing = false;
  const auto first = rig.Ask(kAnn);
  const auto second = rig.Ask(kAnn);
  EXPECT_THAT(rig.other.got, ElementsAre("POST /x x-client-id=ann"));
  EXPECT_EQ(rig.HeldNow(), 0u);
}

// ---- Mappings

constexpr std::string_view kMap = R"(
mappings:
- path: /free/*
- path: /login
  require_rule: true
  descriptors:
  - entries: [{key: path, path: true}]
- path: /api/*
  refuse: [{client_address: true, networks: [198.51.100.0/24]}]
  descriptors:
  - entries: [{key: token, header: Authorization}]
)";

TEST(RuleGateMapping, EveryOutcomeHasItsStatus) {
  RuleRig rig({"token: 1/minute"});
  rig.Map(kMap);
  EXPECT_THAT(rig.FirstOf(RuleRig::HeadOf("/api/x", {})), StartsWith("head 401 "));
  EXPECT_THAT(rig.FirstOf(RuleRig::HeadOf("/api%2fx", {})), StartsWith("head 400 "));
  EXPECT_THAT(rig.FirstOf(RuleRig::HeadOf("/api//../x", {})), StartsWith("head 400 "));
  EXPECT_THAT(rig.FirstOf(RuleRig::HeadOf("/api;x=1/x", {})), StartsWith("head 400 "));
  EXPECT_THAT(rig.FirstOf(RuleRig::HeadOf("//h/api/x", {})), StartsWith("head 400 "));
  EXPECT_THAT(rig.FirstOf(RuleRig::HeadOf("/login", {})), StartsWith("head 403 "));
  rig.peer.ip = base::ParseIpAddress("198.51.100.3");
  EXPECT_THAT(rig.FirstOf(RuleRig::HeadOf("/api/x", {{"authorization", "a"}})),
              StartsWith("head 403 "));
  EXPECT_THAT(rig.admission.asked, IsEmpty());
  EXPECT_THAT(rig.upstream.got, IsEmpty());
  const auto free = rig.Ask(RuleRig::HeadOf("/free/x", {}));
  EXPECT_THAT(rig.upstream.got, ElementsAre("POST /free/x"));
}

TEST(RuleGateMapping, PathThatIsForwardedIsThePathThatWasMatched) {
  RuleRig rig({"token: 5/minute"});
  rig.Map(kMap);
  const auto passed =
      rig.Ask(RuleRig::HeadOf("/api/.//%2e/a%20b/../%63?x=//./", {{"authorization", "a"}}));
  EXPECT_THAT(rig.upstream.got, ElementsAre("POST /api/%63?x=//./ authorization=a"));
}

TEST(RuleGateMapping, FieldsThatServersCouldTakeForAMappedHeaderAreRemoved) {
  RuleRig rig({"key: 5/minute"});
  rig.Map("mappings:\n- descriptors: [{entries: [{key: key, header: X-API-Key}]}]\n");
  const auto passed = rig.Ask(RuleRig::HeadOf(
      "/", {{"x-api-key", "a"}, {"x_api_key", "b"}, {"x.api.key", "c"}, {"other_field", "d"}}));
  EXPECT_THAT(rig.upstream.got, ElementsAre("POST / x-api-key=a other_field=d"));
  EXPECT_THAT(rig.FirstOf(RuleRig::HeadOf("/", {{"x_api_key", "b"}})), StartsWith("head 401 "));
}

TEST(RuleGateMapping, PathThatNoMappingReadsIsForwardedAsItCame) {
  RuleRig rig({"client: 5/minute"});
  const auto passed = rig.Ask(RuleRig::HeadOf("/a//b/./c%2fd", kAnn));
  EXPECT_THAT(rig.upstream.got, ElementsAre("POST /a//b/./c%2fd x-client-id=ann"));
}

TEST(RuleGateMapping, OnlyTrustedPeersNameAnotherClient) {
  RuleRig rig({"address: 1/minute"});
  rig.Map(R"(
trusted_proxies: [192.0.2.7, 127.0.0.1]
mappings:
- descriptors: [{entries: [{key: address, client_address: true}]}]
)");
  const auto from = [&](std::optional<std::string_view> peer, std::string_view forwarded) {
    rig.peer.ip = peer ? base::ParseIpAddress(*peer) : std::nullopt;
    rig.free = {&rig.upstream};
    rig.upstream.receiver = nullptr;
    const std::string first = rig.FirstOf(RuleRig::HeadOf("/", {{"x-forwarded-for", forwarded}}));
    return first.substr(0, 8);
  };
  EXPECT_EQ(from("192.0.2.7", "203.0.113.1"), "nothing") << "it is relayed";
  EXPECT_EQ(from("192.0.2.7", "203.0.113.2"), "nothing");
  EXPECT_EQ(from("192.0.2.7", "203.0.113.1"), "head 429");
  EXPECT_EQ(from("192.0.2.8", "203.0.113.8"), "nothing");
  EXPECT_EQ(from("192.0.2.8", "203.0.113.9"), "head 429") << "the peer itself is counted";
  EXPECT_EQ(from(std::nullopt, "203.0.113.10"), "head 401") << "a Unix socket has no address";
  rig.peer.loopback = false;
  EXPECT_EQ(from("127.0.0.1", "203.0.113.11"), "nothing");
  EXPECT_EQ(from("127.0.0.1", "203.0.113.12"), "head 429") << "a PROXY header names the address";
}

TEST(RuleGateMapping, WithoutMappingsNobodyPasses) {
  RuleRig rig({"client: 5/minute"});
  gate::LiveMappings none;
  gate::Judge judge(*rig.checker, *rig.answer,
                    {.mappings = none,
                     .repeats = rig.repeats,
                     .secret = rig.secret,
                     .clock = rig.clock,
                     .is_own_proxy = true},
                    rig.rule_counters.verdicts);
  RuleGate gate(judge, wire::RateLimitDialect::kDraft, rig.held, rig.rule_counters);
  rig.application.SetRules(gate);
  EXPECT_THAT(rig.FirstOf(RuleRig::HeadOf("/", kAnn)), StartsWith("head 403 "));
}

}  // namespace rule_gate_test
}  // namespace headgate::proxy
