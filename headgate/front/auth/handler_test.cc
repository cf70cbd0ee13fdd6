#include "headgate/front/auth/handler.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/random.h"
#include "headgate/front/auth/auth_rig.h"
#include "headgate/http/test_lines.h"

namespace headgate::front::auth {
namespace handler_test {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Auth, InPassthroughEveryRequestPassesAndIsCountedAsItWasDecided) {
  AuthRig rig(kByKey, {"api_key: 1/minute"});
  rig.limiter.SetPassthrough(true);
  const auto ask = [&](std::vector<std::pair<std::string_view, std::string_view>> fields) {
    const http::Response response = rig.Ask("GET", "/auth", std::move(fields));
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body, "");
    EXPECT_THAT(http::Lines(response.fields), Not(HasSubstr("Retry-After: ")));
    return OutcomeOf(response);
  };
  EXPECT_EQ(ask({{"X-Forwarded-Uri", "/x"}, {"X-API-Key", "k1"}}), "allowed");
  EXPECT_EQ(ask({{"X-Forwarded-Uri", "/x"}, {"X-API-Key", "k1"}}), "passthrough");     // denied
  EXPECT_EQ(ask({{"X-Forwarded-Uri", "/x"}}), "passthrough");                          // missing
  EXPECT_EQ(ask({{"X-Forwarded-Uri", "/a%2fb"}}), "passthrough");                      // invalid
  EXPECT_EQ(ask({{"X-Forwarded-Uri", "/open/x"}, {"X-Team", "red"}}), "passthrough");  // refused
  rig.peer.ip = *base::ParseIpAddress("192.0.2.1");
  EXPECT_EQ(ask({{"X-Forwarded-Uri", "/x"}}), "passthrough");  // untrusted
  const auto counted = [&](gate::RequestOutcome outcome) {
    return rig.counters.outcomes[static_cast<size_t>(outcome)].value();
  };
  for (const gate::RequestOutcome outcome :
       {gate::RequestOutcome::kAllowed, gate::RequestOutcome::kDenied,
        gate::RequestOutcome::kMissing, gate::RequestOutcome::kInvalid,
        gate::RequestOutcome::kRefused, gate::RequestOutcome::kUntrusted}) {
    EXPECT_EQ(counted(outcome), 1u) << Name(outcome);
  }
  rig.limiter.SetPassthrough(false);
  EXPECT_EQ(rig.Ask("GET", "/auth", {{"X-Forwarded-Uri", "/x"}}).status, 403);
}

TEST(Auth, LetsPassAndDeniesWithAnHonestRetryAfter) {
  AuthRig rig(kByKey, {"api_key: 2/minute"});
  const std::vector<std::pair<std::string_view, std::string_view>> fields = {
      {"X-Forwarded-Uri", "/x"}, {"X-API-Key", "k1"}};
  for (int i = 0; i < 2; ++i) {
    const http::Response passed = rig.Ask("GET", "/auth", fields);
    EXPECT_EQ(passed.status, 200);
    EXPECT_EQ(passed.body, "");
    EXPECT_EQ(OutcomeOf(passed), "allowed");
  }
  const http::Response denied = rig.Ask("GET", "/auth", fields);
  EXPECT_EQ(denied.status, 429);
  EXPECT_EQ(OutcomeOf(denied), "denied");
  EXPECT_THAT(http::Lines(denied.fields), HasSubstr("\r\nRetry-After: 30\r\n"));
  EXPECT_THAT(denied.body, HasSubstr("over the limit"));
  EXPECT_EQ(rig.Ask("GET", "/auth", fields, kRigStart + 30s).status, 200);
  EXPECT_EQ(rig.counters.outcomes[static_cast<size_t>(gate::RequestOutcome::kAllowed)].value(), 3u);
  EXPECT_EQ(rig.counters.outcomes[static_cast<size_t>(gate::RequestOutcome::kDenied)].value(), 1u);
}

TEST(Auth, EveryOutcomeHasItsStatus) {
  AuthRig rig(kByKey, {"api_key: 2/minute"});
  const auto ask = [&](std::string_view path,
                       std::vector<std::pair<std::string_view, std::string_view>> fields) {
    fields.emplace_back("X-Forwarded-Uri", path);
    const http::Response response = rig.Ask("POST", "/auth/anything?x", std::move(fields));
    return std::to_string(response.status) + " " + OutcomeOf(response);
  };
  EXPECT_EQ(ask("/x", {}), "401 missing");
  EXPECT_EQ(ask("/x", {{"X-API-Key", "a"}, {"X-API-Key", "b"}}), "400 invalid");
  EXPECT_EQ(ask("/a%2fb", {{"X-API-Key", "a"}}), "400 invalid");
  EXPECT_EQ(ask("/free/x", {}), "200 allowed");
  EXPECT_EQ(ask("/open/x", {{"X-Team", "ops"}}), "200 exempt");
  EXPECT_EQ(ask("/open/x", {{"X-Team", "red"}}), "403 refused");
  EXPECT_EQ(ask("/open/x", {}), "200 allowed") << "the only descriptor is optional";
  AuthRig other(kByKey, {"other: 2/minute"});
  const http::Response no_rule =
      other.Ask("GET", "/auth", {{"X-Forwarded-Uri", "/x"}, {"X-API-Key", "a"}});
  EXPECT_EQ(no_rule.status, 403);
  EXPECT_EQ(OutcomeOf(no_rule), "no_rule");
}

TEST(Auth, AProblemNamesTheAttribute) {
  AuthRig rig(kByKey, {"api_key: 2/minute"});
  const http::Response missing = rig.Ask("GET", "/auth", {{"X-Forwarded-Uri", "/x"}});
  EXPECT_THAT(missing.body, HasSubstr(R"("hint":"header X-API-Key is missing")"));
  EXPECT_THAT(http::Lines(missing.fields), Not(HasSubstr("WWW-Authenticate")))
      << "there is no scheme for it";
}

constexpr std::string_view kByToken = R"(
trusted_proxies: [10.0.0.0/8]
jwt:
- {name: bearer, unverified: true}
- {name: session, unverified: true, cookie: session}
mappings:
- refuse: [{claim: sub, jwt: bearer, values: [mallory]}]
  descriptors:
  - entries: [{key: user, claim: sub, jwt: KIND}]
)";

std::string ByToken(std::string_view kind) {
  std::string text(kByToken);
  return text.replace(text.find("KIND"), 4, kind);
}

// RFC 9110, section 15.5.2, for the one case that has a scheme.
TEST(Auth, AMissingBearerTokenIsAskedFor) {
  constexpr std::string_view kChallenge = "WWW-Authenticate: Bearer realm=\"headgate\"\r\n";
  AuthRig bearer(ByToken("bearer"), {"user: 2/minute"});
  const http::Response missing = bearer.Ask("GET", "/auth", {});
  EXPECT_EQ(missing.status, 401);
  EXPECT_THAT(http::Lines(missing.fields), HasSubstr(kChallenge));
  AuthRig session(ByToken("session"), {"user: 2/minute"});
  EXPECT_EQ(session.Ask("GET", "/auth", {}).status, 401);
  EXPECT_THAT(http::Lines(session.Ask("GET", "/auth", {}).fields),
              Not(HasSubstr("WWW-Authenticate")));
  AuthRig other(ByToken("bearer") + "  status: {missing: 403}\n", {"user: 2/minute"});
  EXPECT_EQ(other.Ask("GET", "/auth", {}).status, 403);
  EXPECT_THAT(http::Lines(other.Ask("GET", "/auth", {}).fields),
              Not(HasSubstr("WWW-Authenticate")));
}

// {"alg":"HS256"}, {"sub":"mallory"}
constexpr std::string_view kMallory = "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJtYWxsb3J5In0.AA";

// RFC 6750, section 3.1.
TEST(Auth, ATokenThatIsRefusedIsAnsweredWithTheReason) {
  AuthRig rig(ByToken("bearer"), {"user: 2/minute"});
  // {"alg":"HS256"}, {"sub":"ann","exp":1}
  const http::Response expired =
      rig.Ask("GET", "/auth",
              {{"Authorization", "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbm4iLCJleHAiOjF9.AA"}});
  EXPECT_EQ(expired.status, 401);
  EXPECT_THAT(http::Lines(expired.fields),
              HasSubstr("WWW-Authenticate: Bearer realm=\"headgate\", error=\"invalid_token\", "
                        "error_description=\"the token has expired\"\r\n"));
  const auto refused = [&](jwt::Refusal refusal) {
    return rig.counters.token_refusals[static_cast<size_t>(refusal)].value();
  };
  EXPECT_EQ(refused(jwt::Refusal::kExpired), 1u);
  EXPECT_EQ(rig.Ask("GET", "/auth", {{"Authorization", "Bearer a.b"}}).status, 400)
      << "a list of refuse needs the claim";
  EXPECT_EQ(refused(jwt::Refusal::kNotThreeParts), 1u);
  rig.Ask("GET", "/auth", {{"Authorization", kMallory}});
  EXPECT_EQ(refused(jwt::Refusal::kNone), 0u) << "a valid token";
}

TEST(Auth, ATokenThatComesTwiceIsInvalid) {
  AuthRig rig(ByToken("bearer"), {"user: 2/minute"});
  EXPECT_EQ(OutcomeOf(rig.Ask("GET", "/auth", {{"Authorization", kMallory}})), "refused");
  const http::Response twice =
      rig.Ask("GET", "/auth", {{"Authorization", kMallory}, {"Authorization", kMallory}});
  EXPECT_EQ(twice.status, 400);
  EXPECT_EQ(OutcomeOf(twice), "invalid");
}

// At the start of the machine the time of day may be wrong. NTP then steps it, and the time of
// decisions does not follow.
TEST(Auth, TokensAreValidByTheTimeOfDay) {
  AuthRig rig(ByToken("bearer"), {"user: 9/minute"});
  const auto outcome = [&](std::string_view claims) {
    const std::string token = "Bearer eyJhbGciOiJIUzI1NiJ9." + std::string(claims) + ".AA";
    return OutcomeOf(rig.Ask("GET", "/auth", {{"Authorization", token}}, kRigStart));
  };
  // {"sub":"ann","exp":…}, an hour after the start; {"sub":"ann","nbf":…}, two hours less 5 s.
  constexpr std::string_view kFirstHour = "eyJzdWIiOiJhbm4iLCJleHAiOjE3OTAwMDM2MDB9";
  constexpr std::string_view kFromSecondHour = "eyJzdWIiOiJhbm4iLCJuYmYiOjE3OTAwMDcxOTV9";
  EXPECT_EQ(outcome(kFirstHour), "allowed");
  EXPECT_EQ(outcome(kFromSecondHour), "invalid") << "a list of refuse needs a valid token";
  rig.clock.StepWall(2h);
  EXPECT_EQ(outcome(kFirstHour), "missing");
  EXPECT_EQ(outcome(kFromSecondHour), "allowed");
  rig.clock.StepWall(-2h);
  EXPECT_EQ(outcome(kFirstHour), "allowed");
}

TEST(Auth, AnswersNobodyWhoIsNotTrusted) {
  AuthRig rig(kByKey, {"api_key: 2/minute"});
  for (const std::string_view ip : {"127.0.0.1", "203.0.113.1", "::1"}) {
    rig.peer.ip = base::ParseIpAddress(ip);
    const http::Response response =
        rig.Ask("GET", "/auth", {{"X-Forwarded-Uri", "/x"}, {"X-API-Key", "k1"}});
    EXPECT_EQ(response.status, 403);
    EXPECT_EQ(OutcomeOf(response), "untrusted");
  }
  rig.peer.ip.reset();
  EXPECT_EQ(rig.Ask("GET", "/auth", {}).status, 403);
  // The bucket is untouched.
  rig.peer.ip = base::ParseIpAddress("10.0.0.1");
  EXPECT_THAT(
      http::Lines(rig.Ask("GET", "/auth", {{"X-Forwarded-Uri", "/x"}, {"X-API-Key", "k1"}}).fields),
      HasSubstr("X-RateLimit-Remaining: 1\r\n"));
}

// A PROXY header names such an address, or a proxy on this machine does not know its client.
TEST(Auth, ALoopbackAddressOfAnotherMachineIsNotTrusted) {
  AuthRig rig("trusted_proxies: [127.0.0.1, '::1', 10.0.0.0/8]\nmappings: [{descriptors: []}]\n",
              {});
  for (const std::string_view ip : {"127.0.0.1", "::1"}) {
    rig.peer = {.loopback = true, .ip = base::ParseIpAddress(ip)};
    EXPECT_EQ(rig.Ask("GET", "/auth", {}).status, 200) << ip;
    rig.peer.loopback = false;
    EXPECT_EQ(OutcomeOf(rig.Ask("GET", "/auth", {})), "untrusted") << ip;
  }
  rig.peer = net::PeerBehindProxy(*base::ParseIpAddress("10.1.1.1"), 1);
  EXPECT_EQ(rig.Ask("GET", "/auth", {}).status, 200);
  rig.peer = net::PeerBehindProxy(*base::ParseIpAddress("127.0.0.1"), 1);
  EXPECT_EQ(OutcomeOf(rig.Ask("GET", "/auth", {})), "untrusted");
}

TEST(Auth, ADescriptionThatComesTwiceIsRefused) {
  AuthRig rig(kByKey, {"api_key: 2/minute"});
  EXPECT_EQ(rig.Ask("GET", "/auth",
                    {{"X-Forwarded-Uri", "/x"}, {"x-forwarded-uri", "/free/x"}, {"X-API-Key", "k"}})
                .status,
            400);
}

TEST(Auth, FieldsOfTheLimitAreAlwaysThere) {
  AuthRig rig(kByKey, {"api_key: 2/minute"});
  const http::Response response = rig.Ask("GET", "/auth", {{"X-Forwarded-Uri", "/free/x"}});
  for (const std::string_view field :
       {"RateLimit-Policy: \r\n", "RateLimit: \r\n", "X-RateLimit-Limit: \r\n",
        "X-RateLimit-Remaining: \r\n", "X-RateLimit-Reset: \r\n"}) {
    EXPECT_THAT(http::Lines(response.fields), HasSubstr(field));
  }
  EXPECT_THAT(http::Lines(response.fields), Not(HasSubstr("Retry-After")));
}

TEST(Auth, AnswersToNginxHaveNoBody) {
  AuthRig rig(
      "trusted_proxies: [10.0.0.0/8]\noriginal_request: x-original\nmappings:\n"
      "- {refuse: [{header: X, values: [a]}]}\n",
      {});
  const http::Response response = rig.Ask("GET", "/auth", {{"X", "a"}});
  EXPECT_EQ(response.status, 403);
  EXPECT_EQ(response.body, "");
}

TEST(Auth, TheRequestLineItselfMayBeTheClients) {
  AuthRig rig(
      "trusted_proxies: [10.0.0.0/8]\noriginal_request: request-line\nmappings:\n"
      "- path: /a/*\n  method: [PUT]\n  refuse: [{path: true, values: [/a/b]}]\n",
      {});
  EXPECT_EQ(OutcomeOf(rig.Ask("PUT", "/auth/a/b?c=1", {})), "refused");
  EXPECT_EQ(OutcomeOf(rig.Ask("PUT", "/auth/a//./b", {})), "refused");
  EXPECT_EQ(OutcomeOf(rig.Ask("PUT", "/auth//a/b", {})), "invalid");
  EXPECT_EQ(OutcomeOf(rig.Ask("PUT", "/auth/a;x/b", {})), "invalid");
  EXPECT_EQ(OutcomeOf(rig.Ask("PUT", "/auth/a/c", {})), "allowed");
  EXPECT_EQ(OutcomeOf(rig.Ask("GET", "/auth/a/b", {})), "unmatched");
  EXPECT_EQ(OutcomeOf(rig.Ask("PUT", "/auth", {})), "unmatched");
  EXPECT_EQ(OutcomeOf(rig.Ask("PUT", "/auth?x", {})), "unmatched");
  EXPECT_EQ(rig.Ask("PUT", "/authx", {}).status, 404);
}

TEST(Auth, NewMappingsAreTakenUpByTheNextRequest) {
  AuthRig rig(kByKey, {"api_key: 2/minute"});
  EXPECT_EQ(OutcomeOf(rig.Ask("GET", "/auth", {{"X-Forwarded-Uri", "/x"}})), "missing");
  rig.Publish("trusted_proxies: [10.0.0.0/8]\nmappings: []\n");
  EXPECT_EQ(OutcomeOf(rig.Ask("GET", "/auth", {{"X-Forwarded-Uri", "/x"}})), "unmatched");
}

constexpr std::string_view kWithIds = R"(
trusted_proxies: [10.0.0.0/8]
idempotency_header: X-Request-Id
mappings:
- descriptors:
  - entries: [{key: api_key, header: X-API-Key}]
)";

TEST(Auth, ARequestWithTheSameIdCountsOnceInItsWindow) {
  AuthRig rig(kWithIds, {"api_key: 2/hour"});
  const auto ask = [&](std::string_view id, std::string_view key, base::Instant now) {
    const http::Response response =
        rig.Ask("GET", "/auth", {{"X-Request-Id", id}, {"X-API-Key", key}}, now);
    for (const auto [name, value] : response.fields) {
      if (name.ends_with("Remaining")) return fmt::format("{} {}", response.status, value);
    }
    return std::string();
  };
  EXPECT_EQ(ask("a", "k1", kRigStart), "200 1");
  EXPECT_EQ(ask("a", "k1", kRigStart + 1s), "200 1");
  EXPECT_EQ(ask("a", "k2", kRigStart + 1s), "200 1") << "another bucket";
  EXPECT_EQ(ask("b", "k1", kRigStart + 2s), "200 0");
  EXPECT_EQ(ask("c", "k1", kRigStart + 3s), "429 0");
  EXPECT_EQ(ask("c", "k1", kRigStart + 4s), "429 0");
  EXPECT_EQ(ask("a", "k1", kRigStart + 9s), "200 1");
  EXPECT_EQ(ask("a", "k1", kRigStart + 10s), "429 0") << "its window has ended";
  EXPECT_EQ(rig.counters.repeated.value(), 3u);
}

TEST(Auth, AnIdThatComesTwiceIsInvalid) {
  AuthRig rig(kWithIds, {"api_key: 2/hour"});
  const http::Response response =
      rig.Ask("GET", "/auth", {{"X-Request-Id", "a"}, {"X-API-Key", "k1"}, {"X-Request-Id", "b"}});
  EXPECT_EQ(response.status, 400);
  EXPECT_THAT(response.body, HasSubstr("header X-Request-Id"));
}

TEST(Auth, ARepeatedDenialNamesTheTimeThatIsLeft) {
  AuthRig rig(kWithIds, {"api_key: 1/minute"});
  const auto ask = [&](std::string_view id, base::Instant now) {
    return http::Lines(
        rig.Ask("GET", "/auth", {{"X-Request-Id", id}, {"X-API-Key", "k"}}, now).fields);
  };
  ask("a", kRigStart);
  EXPECT_THAT(ask("b", kRigStart), HasSubstr("Retry-After: 60\r\n"));
  EXPECT_THAT(ask("b", kRigStart + 5s), HasSubstr("Retry-After: 55\r\n"));
  EXPECT_THAT(ask("b", kRigStart + 5s), HasSubstr("\"api_key\";r=0;t=55\r\n"));
}

TEST(Auth, AHeaderThatDescribesTheRequestTwiceIsInvalid) {
  AuthRig rig(
      "trusted_proxies: [10.0.0.0/8]\noriginal_request: x-original\nmappings:\n"
      "- status: {invalid: 403}\n  descriptors:\n  - entries: [{key: api_key, header: "
      "X-API-Key}]\n",
      {"api_key: 1/minute"});
  const http::Response response =
      rig.Ask("GET", "/auth", {{"X-Original-URI", "/a"}, {"X-Original-URI", "/b"}});
  EXPECT_EQ(response.status, 403);
  EXPECT_THAT(http::Lines(response.fields), HasSubstr("Headgate-Outcome: invalid\r\n"));
  EXPECT_EQ(rig.counters.outcomes[static_cast<size_t>(gate::RequestOutcome::kInvalid)].value(), 1u);
}

// nginx passes on only 401 and 403: with 431 or 417 its client gets 500.
TEST(Auth, AHeadThatCannotBeReadIsAnsweredByTheMappingsInTheFormOfNginx) {
  const auto text = [](std::string_view form) {
    return fmt::format(
        "trusted_proxies: [10.0.0.0/8]\noriginal_request: {}\nmappings:\n"
        "- status: {{invalid: 403}}\n  descriptors:\n  - entries: [{{key: k, header: K}}]\n",
        form);
  };
  AuthRig rig(text("x-original"), {"k: 1/minute"});
  constexpr http::Refusal kTooMany{431, "too many fields", "send fewer fields"};
  http::Request head;
  head.method = "GET";
  head.target = "/auth";
  head.peer = rig.peer;
  http::Response response;
  ASSERT_TRUE(rig.router.AnswerRefusedHead(head, kTooMany, response, kRigStart));
  EXPECT_EQ(response.status, 403);
  EXPECT_THAT(http::Lines(response.fields), HasSubstr("Headgate-Outcome: invalid\r\n"));
  EXPECT_EQ(response.body, "");
  EXPECT_EQ(rig.counters.outcomes[static_cast<size_t>(gate::RequestOutcome::kInvalid)].value(), 1u);
  head.target = "/v1/check";
  EXPECT_FALSE(rig.router.AnswerRefusedHead(head, kTooMany, response, kRigStart));
  head.target = "/auth";
  head.peer.ip = *base::ParseIpAddress("192.0.2.1");
  EXPECT_FALSE(rig.router.AnswerRefusedHead(head, kTooMany, response, kRigStart)) << "a stranger";
  rig.Publish(text("x-forwarded"));
  head.peer = rig.peer;
  EXPECT_FALSE(rig.router.AnswerRefusedHead(head, kTooMany, response, kRigStart));
}

TEST(Repeats, WaitUntilTheFirstRequestPasses) {
  gate::Repeats repeats({.window = 10s, .entries_max = 32});
  const base::Hash128 id{.low = 1, .high = 0};
  gate::Verdict verdict;
  verdict.wait = 3s;
  repeats.Remember(id, verdict, kRigStart);
  std::string policy;
  ASSERT_TRUE(repeats.Find(id, kRigStart + 1s, verdict, policy));
  EXPECT_EQ(verdict.wait, 2s);
  ASSERT_TRUE(repeats.Find(id, kRigStart + 4s, verdict, policy));
  EXPECT_EQ(verdict.wait, 0s);
  EXPECT_TRUE(repeats.Find(id, kRigStart + 12s, verdict, policy))
      << "the window begins with the pass";
  EXPECT_FALSE(repeats.Find(id, kRigStart + 13s, verdict, policy));
}

TEST(Repeats, RememberAnIdAnewThatExpiredBehindALongerOne) {
  gate::Repeats repeats({.window = 10s, .entries_max = 1000});
  // Both are in one shard.
  const base::Hash128 queued{.low = 1, .high = 0};
  const base::Hash128 id{.low = 2, .high = 0};
  gate::Verdict verdict;
  std::string policy;
  base::Instant now = kRigStart;
  repeats.Remember(queued, {.wait = 60s}, now);
  repeats.Remember(id, {.status = 200}, now);
  now = now + 11s;
  EXPECT_FALSE(repeats.Find(id, now, verdict, policy));
  repeats.Remember(id, {.status = 429}, now);
  ASSERT_TRUE(repeats.Find(id, now, verdict, policy)) << "or else each request with it counts";
  EXPECT_EQ(verdict.status, 429);
  // Within its window the first verdict stays.
  repeats.Remember(id, {.status = 200}, now + 1s);
  ASSERT_TRUE(repeats.Find(id, now + 9s, verdict, policy));
  EXPECT_EQ(verdict.status, 429);
  EXPECT_FALSE(repeats.Find(id, now + 10s, verdict, policy));
  // When the queued one leaves, the id stays.
  repeats.Remember(id, {.status = 503}, kRigStart + 65s);
  repeats.Remember({.low = 3, .high = 0}, {.status = 200}, kRigStart + 71s);
  ASSERT_TRUE(repeats.Find(id, kRigStart + 71s, verdict, policy));
  EXPECT_EQ(verdict.status, 503);
  EXPECT_EQ(repeats.forgotten(), 0u);
}

TEST(Repeats, ForgetsTheOldestBeyondItsBound) {
  gate::Repeats repeats({.window = 10s, .entries_max = 32});
  const auto id = [](uint64_t n) { return base::Hash128{.low = n, .high = 0}; };
  gate::Verdict verdict;
  std::string policy;
  for (uint64_t n = 0; n < 5; ++n) repeats.Remember(id(n), verdict, kRigStart);
  EXPECT_EQ(repeats.forgotten(), 3u) << "two in each of 16 parts";
  EXPECT_FALSE(repeats.Find(id(2), kRigStart, verdict, policy));
  EXPECT_TRUE(repeats.Find(id(4), kRigStart, verdict, policy));
  EXPECT_FALSE(repeats.Find(id(4), kRigStart + 10s, verdict, policy));
}

// Whatever the request says, no byte of it can end a field of the answer, and a peer that is not
// trusted changes nothing.
TEST(Auth, NoByteOfARequestEndsAField) {
  AuthRig rig(R"(
trusted_proxies: [10.0.0.0/8]
original_request: x-forwarded
idempotency_header: X-Request-Id
mappings:
- descriptors:
  - {entries: [{key: api_key, header: X-API-Key}], optional: true}
  - {entries: [{key: path, path: true}], optional: true}
  - {entries: [{key: q, query: q}], optional: true}
)",
              {"api_key: 5/minute", "path: 2/minute", "q: 2/minute"});
  base::Random random(3);
  constexpr std::string_view kBytes =
      "\r\n\0\x7f\x01:;,%/.?&=+ \"\\a\xc3\xa9"
      "0d";
  const auto text = [&] {
    std::string out;
    for (uint64_t i = random.Below(12); i > 0; --i) out += kBytes[random.Below(kBytes.size())];
    return out;
  };
  for (int round = 0; round < 5'000; ++round) {
    const std::string key = text();
    const std::string path = "/" + text() + "?q=" + text();
    const std::string id = text();
    const http::Response response = rig.Ask(
        "GET", "/auth", {{"X-API-Key", key}, {"X-Forwarded-Uri", path}, {"X-Request-Id", id}});
    const std::string lines = http::Lines(response.fields);
    std::string_view rest = lines;
    while (!rest.empty()) {
      const size_t end = rest.find("\r\n");
      ASSERT_NE(end, rest.npos);
      const std::string_view line = rest.substr(0, end);
      ASSERT_NE(line.find(": "), line.npos) << line;
      ASSERT_EQ(line.find_first_of(std::string_view("\r\n\0", 3)), line.npos);
      rest.remove_prefix(end + 2);
    }
  }
}

}  // namespace handler_test
}  // namespace headgate::front::auth
