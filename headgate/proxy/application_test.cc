#include "headgate/proxy/application.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headgate/proxy/relay_rig.h"

namespace headgate::proxy {
namespace application_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

struct ApplicationTest : ::testing::Test {
  void Ask(std::initializer_list<std::pair<std::string_view, std::string_view>> fields,
           http::Version version = http::Version::kHttp11) {
    http::RequestHead head{.version = version,
                           .method = "POST",
                           .target = "/x",
                           .scheme = "http",
                           .authority = "example.com"};
    for (const auto& [name, value] : fields) head.fields.Add(name, value);
    receiver = application.OnRequest(std::move(head), peer, rig.client, rig.now);
  }

  RelayRig rig;
  PlayedAdmission& table = rig.admission;
  ApplicationOptions options{.forwarded = {.x_forwarded = Forwarding::kOff, .via = ""},
                             .cycle = std::chrono::seconds(10)};
  ApplicationCounters counters;
  Application application{options, rig.context, counters};
  net::Peer peer{.ip = base::ParseIpAddress("192.0.2.7")};
  std::unique_ptr<http::RequestReceiver> receiver;
  std::vector<std::unique_ptr<PlayedClient>> clients;
};

TEST_F(ApplicationTest, AdmittedRequestIsPassedOn) {
  Ask({{"x-client-id", "ann"}});
  EXPECT_THAT(table.asked, ElementsAre("ann"));
  EXPECT_THAT(rig.upstream.got, ElementsAre("POST /x x-client-id=ann"));
  rig.Answer(rig.upstream).OnHead({}, rig.now);
  // draft-ietf-httpapi-ratelimit-headers-10
  EXPECT_THAT(rig.client.got, ElementsAre("head 200 RateLimit-Policy=\"fair-share\";q=10;w=10 "
                                          "RateLimit=\"fair-share\";r=7;t=4"));
  EXPECT_EQ(counters.admitted.value(), 1u);
}

// RFC 9110, 7.6.2.
TEST_F(ApplicationTest, MaxForwardsOfOptionsAndTraceEndsHere) {
  struct Case {
    std::string_view method;
    std::string_view value;
    std::string_view sent;  // to the upstream; empty: it is answered here
    std::string_view status;
  };
  for (const Case& c :
       {Case{"OPTIONS", "0", "", "head 200"}, Case{"TRACE", "0", "", "head 501"},
        Case{"OPTIONS", "00", "", "head 200"},
        Case{"OPTIONS", "1", "OPTIONS /x x-client-id=ann Max-Forwards=0", ""},
        Case{"TRACE", "10", "TRACE /x x-client-id=ann Max-Forwards=9", ""},
        Case{"OPTIONS", "99999999999999999999", "OPTIONS /x x-client-id=ann Max-Forwards=999", ""},
        Case{"OPTIONS", "-1", "OPTIONS /x x-client-id=ann max-forwards=-1", ""},
        Case{"GET", "0", "GET /x x-client-id=ann max-forwards=0", ""}}) {
    RelayRig each;
    ApplicationCounters counted;
    Application one{options, each.context, counted};
    http::RequestHead head{
        .method = std::string(c.method), .target = "/x", .scheme = "http", .authority = "a"};
    head.fields.Add("x-client-id", "ann");
    head.fields.Add("max-forwards", c.value);
    const auto received = one.OnRequest(std::move(head), peer, each.client, each.now);
    if (c.sent.empty()) {
      EXPECT_THAT(each.upstream.got, IsEmpty()) << c.method;
      EXPECT_THAT(each.client.got.front(), StartsWith(c.status));
      EXPECT_THAT(each.admission.asked, IsEmpty()) << "it takes nothing of the share";
      EXPECT_EQ(counted.not_forwarded.value(), 1u);
    } else {
      EXPECT_THAT(each.upstream.got, ElementsAre(c.sent));
      received->OnAbort(each.now);
    }
  }
}

const std::initializer_list<std::pair<std::string_view, std::string_view>> kPreflight = {
    {"origin", "https://app.example.com"}, {"access-control-request-method", "POST"}};

TEST_F(ApplicationTest, APreflightIsPassedOnUncounted) {
  table.verdict.admitted = false;
  http::RequestHead head{
      .method = "OPTIONS", .target = "/x", .scheme = "http", .authority = "example.com"};
  for (const auto& [name, value] : kPreflight) head.fields.Add(name, value);
  receiver = application.OnRequest(std::move(head), peer, rig.client, rig.now);
  EXPECT_THAT(table.asked, IsEmpty());
  EXPECT_EQ(counters.preflights.value(), 1u);
  EXPECT_EQ(counters.admitted.value(), 0u);
  ASSERT_EQ(rig.upstream.got.size(), 1u);
  http::ResponseHead answer{.status = 200,
                            .body = {.kind = http::BodyLength::Kind::kSized, .bytes = 6}};
  answer.fields.Add("Access-Control-Allow-Origin", "https://app.example.com");
  answer.fields.Add("Set-Cookie", "sid=1");
  answer.fields.Add("Content-Type", "text/plain");
  http::ResponseReceiver& receives = rig.Answer(rig.upstream);
  receives.OnHead(std::move(answer), rig.now);
  receives.OnData("secret", rig.now);
  receives.OnEnd({}, rig.now);
  // Browsers show it to no page, and others gain nothing.
  EXPECT_THAT(
      rig.client.got,
      ElementsAre("head 200 sized 0 Access-Control-Allow-Origin=https://app.example.com", "end"));
}

// Whatever makes it more than a preflight (wire/preflight_test.cc), and a body, or the client's
// name.
TEST_F(ApplicationTest, WhatOnlyLooksLikeAPreflightIsCounted) {
  using Kind = http::BodyLength::Kind;
  struct Case {
    std::string_view method;
    std::pair<std::string_view, std::string_view> more;
    http::BodyLength body{};
    bool expects_continue = false;
  };
  for (const Case& c :
       {Case{.method = "OPTIONS", .more = {"a", "b"}, .expects_continue = true},
        Case{"OPTIONS", {"cookie", "sid=1"}}, Case{"OPTIONS", {"x-client-id", "ann"}},
        Case{"OPTIONS", {"x_client_id", "ann"}}, Case{"POST", {"a", "b"}},
        Case{"options", {"a", "b"}},
        Case{"OPTIONS", {"a", "b"}, {.kind = Kind::kSized, .bytes = 1}},
        Case{"OPTIONS", {"a", "b"}, {.kind = Kind::kUnsized}}}) {
    RelayRig each;
    each.admission.verdict.admitted = false;
    ApplicationCounters counted;
    Application one{options, each.context, counted};
    http::RequestHead head{.method = std::string(c.method),
                           .target = "/x",
                           .scheme = "http",
                           .authority = "a",
                           .body = c.body,
                           .expects_continue = c.expects_continue};
    for (const auto& [name, value] : kPreflight) head.fields.Add(name, value);
    head.fields.Add(c.more.first, c.more.second);
    const auto received = one.OnRequest(std::move(head), peer, each.client, each.now);
    EXPECT_EQ(each.admission.asked.size(), 1u) << c.method << " " << c.more.first;
    EXPECT_EQ(counted.refused.value(), 1u);
    EXPECT_EQ(counted.preflights.value(), 0u);
  }
}

// Otherwise a flood of preflights would leave no connection for requests that are counted.
TEST_F(ApplicationTest, PreflightsBeyondTheirBoundAreCounted) {
  options.preflights_max = 1;
  table.verdict.admitted = false;
  const auto ask = [&](PlayedClient& client) {
    http::RequestHead head{.method = "OPTIONS", .target = "/x", .scheme = "http", .authority = "a"};
    for (const auto& [name, value] : kPreflight) head.fields.Add(name, value);
    return application.OnRequest(std::move(head), peer, client, rig.now);
  };
  auto first = ask(rig.client);
  PlayedClient other;
  const auto second = ask(other);
  EXPECT_THAT(other.got.front(), StartsWith("head 429 "));
  EXPECT_EQ(counters.preflights_over.value(), 1u);
  first->OnAbort(rig.now);
  PlayedClient third;
  const auto again = ask(third);
  EXPECT_THAT(third.got, IsEmpty()) << "the first has ended";
  EXPECT_EQ(counters.preflights.value(), 2u);
  again->OnAbort(rig.now);
}

// One address with a flood of preflights leaves some to every other.
TEST_F(ApplicationTest, PreflightsAreDividedAmongAddresses) {
  table.verdict.admitted = false;
  std::vector<std::unique_ptr<http::RequestReceiver>> held;
  const auto passes = [&](std::string_view address) {
    auto client = std::make_unique<PlayedClient>();
    http::RequestHead head{.method = "OPTIONS", .target = "/x", .scheme = "http", .authority = "a"};
    for (const auto& [name, value] : kPreflight) head.fields.Add(name, value);
    held.push_back(application.OnRequest(std::move(head), {.ip = base::ParseIpAddress(address)},
                                         *client, rig.now));
    clients.push_back(std::move(client));
    return clients.back()->got.empty();
  };
  std::deque<PlayedUpstream> upstreams(100);
  rig.free.clear();
  for (PlayedUpstream& upstream : upstreams) rig.free.push_back(&upstream);
  size_t of_flood = 0;
  while (of_flood < 100 && passes("192.0.2.7")) ++of_flood;
  EXPECT_EQ(of_flood, 56u) << "eight times what is free then";
  for (const std::string_view other : {"192.0.2.8", "192.0.2.9", "2001:db8::1"}) {
    EXPECT_TRUE(passes(other)) << other;
    EXPECT_TRUE(passes(other)) << other;
  }
  EXPECT_FALSE(passes("192.0.2.7"));
  for (const auto& each : held) each->OnAbort(rig.now);
  EXPECT_TRUE(passes("192.0.2.7")) << "its own have ended";
  held.back()->OnAbort(rig.now);
}

TEST_F(ApplicationTest, PreflightsAreCountedIfTheServiceRunsThem) {
  options.passes_preflights = false;
  http::RequestHead head{.method = "OPTIONS", .target = "/x", .scheme = "http", .authority = "a"};
  for (const auto& [name, value] : kPreflight) head.fields.Add(name, value);
  receiver = application.OnRequest(std::move(head), peer, rig.client, rig.now);
  EXPECT_THAT(table.asked, ElementsAre(""));
}

TEST_F(ApplicationTest, APageMayReadARefusalIfItsOriginIsListed) {
  rig.options.cors.origins = {"https://app.example.com"};
  table.verdict.admitted = false;
  table.verdict.retry_after = std::chrono::seconds(4);
  Ask({{"x-client-id", "ann"}, {"origin", "https://app.example.com"}});
  EXPECT_THAT(rig.client.got.front(),
              HasSubstr("Vary=Origin Access-Control-Allow-Origin=https://app.example.com "
                        "Access-Control-Allow-Credentials=true "
                        "Access-Control-Expose-Headers=Retry-After, RateLimit-Policy, RateLimit"));
  for (const std::string_view origin : {"https://evil.example", "null"}) {
    RelayRig other;
    other.options.cors.origins = rig.options.cors.origins;
    other.admission.verdict.admitted = false;
    Application one{options, other.context, counters};
    http::RequestHead head{.method = "GET", .target = "/x", .scheme = "http", .authority = "a"};
    head.fields.Add("origin", origin);
    const auto received = one.OnRequest(std::move(head), peer, other.client, other.now);
    EXPECT_THAT(other.client.got.front(), Not(HasSubstr("Access-Control"))) << origin;
    EXPECT_THAT(other.client.got.front(), HasSubstr("Vary=Origin"));
  }
}

// The client would see two answers to one question.
TEST_F(ApplicationTest, OwnLimitReplacesThatOfTheUpstream) {
  Ask({{"x-client-id", "ann"}});
  http::ResponseHead head;
  head.fields.Add("ratelimit", "\"theirs\";r=1");
  head.fields.Add("RateLimit-Policy", "\"theirs\";q=2");
  head.fields.Add("Retry-After", "7");
  rig.Answer(rig.upstream).OnHead(std::move(head), rig.now);
  EXPECT_THAT(rig.client.got,
              ElementsAre("head 200 Retry-After=7 RateLimit-Policy=\"fair-share\";q=10;w=10 "
                          "RateLimit=\"fair-share\";r=7;t=4"));
}

TEST_F(ApplicationTest, LimitOfTheUpstreamPassesIfThereIsNoOwn) {
  table.verdict.has_limit = false;
  Ask({{"x-client-id", "ann"}});
  http::ResponseHead head;
  head.fields.Add("RateLimit", "\"theirs\";r=1");
  rig.Answer(rig.upstream).OnHead(std::move(head), rig.now);
  EXPECT_THAT(rig.client.got, ElementsAre("head 200 RateLimit=\"theirs\";r=1"));
}

// The upstream might fold `_` to `-`, and believe the second.
TEST_F(ApplicationTest, LookAlikeOfTheClientsFieldIsRemoved) {
  Ask({{"X_Client_Id", "bob"}, {"x-client-id", "ann"}});
  EXPECT_THAT(table.asked, ElementsAre("ann"));
  EXPECT_THAT(rig.upstream.got, ElementsAre("POST /x x-client-id=ann"));
}

TEST_F(ApplicationTest, AClientHasOneShareInAllSpellings) {
  options.client_field = "authorization";
  Ask({{"authorization", "Bearer k1"}});
  Ask({{"authorization", "bearer  k1"}});
  Ask({{"authorization", "Bearer k1\xa0"}});
  EXPECT_THAT(table.asked, ElementsAre("Bearer k1", "Bearer k1", ""));
}

TEST_F(ApplicationTest, RequestThatGoesInCirclesIsRefused) {
  options.forwarded.via = "headgate";
  std::string via = "1.1 headgate";
  for (size_t i = 1; i + 1 < kViaMax; ++i) via += ", 1.1 headgate";
  Ask({{"x-client-id", "ann"}, {"via", via}});
  EXPECT_THAT(rig.upstream.got, ElementsAre(HasSubstr(via + ", 1.1 headgate")));
  Ask({{"x-client-id", "ann"}, {"via", via + ", 1.1 headgate"}});
  EXPECT_THAT(rig.client.got.front(), StartsWith("head 508 "));
  EXPECT_THAT(rig.client.got.front(),
              HasSubstr("Proxy-Status=headgate; error=proxy_loop_detected"));
  EXPECT_THAT(table.asked, ElementsAre("ann")) << "it takes nothing from the pool";
  EXPECT_EQ(counters.loops.value(), 1u);
}

TEST_F(ApplicationTest, AdmittedAnswersNeedNotDescribeTheShare) {
  options.describes_admitted = false;
  Ask({{"x-client-id", "ann"}});
  rig.Answer(rig.upstream).OnHead({}, rig.now);
  EXPECT_THAT(rig.client.got, ElementsAre("head 200"));
}

// The time of day was two hours behind and has been set. Decisions do not follow at once.
TEST_F(ApplicationTest, ResetIsATimeOfDay) {
  base::ManualClock clock{base::WallTime::FromNanos(kStart.ns)};
  options.clock = &clock;
  options.dialect = wire::RateLimitDialect::kGithub;
  clock.StepWall(std::chrono::hours(2));
  Ask({{"x-client-id", "ann"}});
  rig.Answer(rig.upstream).OnHead({}, rig.now);
  // 1,000 s, two hours, and 4 s until the reset.
  EXPECT_THAT(rig.client.got.front(), HasSubstr("X-RateLimit-Reset=8204"));
}

TEST_F(ApplicationTest, DateOfARefusalIsATimeOfDay) {
  base::ManualClock clock{base::WallTime::FromNanos(kStart.ns)};
  options.clock = &clock;
  clock.StepWall(std::chrono::hours(2));
  table.verdict.admitted = false;
  Ask({{"x-client-id", "ann"}});
  EXPECT_THAT(rig.client.got.front(), HasSubstr(" Date=Thu, 01 Jan 1970 02:16:40 GMT"));
}

TEST_F(ApplicationTest, DateOfARequestThatGoesInCirclesIsATimeOfDay) {
  base::ManualClock clock{base::WallTime::FromNanos(kStart.ns)};
  options.clock = &clock;
  options.forwarded.via = "headgate";
  clock.StepWall(std::chrono::hours(2));
  std::string via = "1.1 headgate";
  for (size_t i = 1; i < kViaMax; ++i) via += ", 1.1 headgate";
  Ask({{"x-client-id", "ann"}, {"via", via}});
  EXPECT_THAT(rig.client.got.front(), StartsWith("head 508 "));
  EXPECT_THAT(rig.client.got.front(), HasSubstr(" Date=Thu, 01 Jan 1970 02:16:40 GMT"));
}

TEST_F(ApplicationTest, RefusalNamesTheHeaderThatNamesNoClient) {
  options.client_field = "X-Tenant";
  AdmissionVerdict verdict{.admitted = false,
                           .has_limit = false,
                           .reason = "the request does not name its client",
                           .names_no_client = true};
  const auto refusal =
      [&](std::initializer_list<std::pair<std::string_view, std::string_view>> fields) {
        RelayRig own;
        own.admission.verdict = verdict;
        Application asked{options, own.context, counters};
        http::RequestHead head{.version = http::Version::kHttp2, .method = "POST", .target = "/x"};
        for (const auto& [name, value] : fields) head.fields.Add(name, value);
        const auto rest = asked.OnRequest(std::move(head), peer, own.client, own.now);
        return ::testing::PrintToString(own.client.got);
      };
  EXPECT_THAT(refusal({}),
              AllOf(HasSubstr("the request does not name its client: the header X-Tenant is "
                              "missing"),
                    HasSubstr("send this header once, with the id of the client; ")));
  EXPECT_THAT(refusal({{"X-Tenant", ""}}), HasSubstr("the header X-Tenant is empty or malformed"));
  EXPECT_THAT(refusal({{"X-Tenant", "ann"}, {"x-tenant", "bob"}}),
              HasSubstr("the header X-Tenant comes more than once"));
  EXPECT_THAT(refusal({{"content-type", "application/grpc"}}),
              HasSubstr("grpc-message=the request does not name its client: the header X-Tenant is "
                        "missing"));
  verdict = {.admitted = false, .reason = "the client has used its share of this cycle"};
  EXPECT_THAT(refusal({{"X-Tenant", "ann"}}), Not(HasSubstr("X-Tenant is")));
}

TEST_F(ApplicationTest, RefusedRequestReachesNoUpstream) {
  table.verdict.admitted = false;
  table.verdict.remaining = 0;
  table.verdict.retry_after = std::chrono::milliseconds(3100);
  table.verdict.reason = "the client's share is used up";
  Ask({{"x-client-id", "ann"}});
  EXPECT_THAT(rig.upstream.got, IsEmpty());
  EXPECT_THAT(rig.client.got,
              ElementsAre(AllOf(StartsWith("head 429 sized "), HasSubstr(" Retry-After=4"),
                                HasSubstr("RateLimit=\"fair-share\";r=0;t=4"),
                                HasSubstr("Content-Type=application/problem+json")),
                          HasSubstr("the client's share is used up"), "end"));
  // The rest of the request is read, and dropped.
  receiver->OnData("abc", rig.now);
  EXPECT_EQ(rig.client.credited, 3u);
  EXPECT_EQ(counters.refused.value(), 1u);
}

TEST_F(ApplicationTest, RefusalHasTheBodyThatIsSet) {
  options.refusal = std::make_shared<const rule::Refusal>(*rule::Refusal::Make(
      "application/json", R"({"rule":"${rule}","limit":${limit},"wait":${seconds}})"));
  table.verdict.admitted = false;
  table.verdict.retry_after = std::chrono::milliseconds(3100);
  Ask({{"x-client-id", "ann"}});
  EXPECT_THAT(rig.client.got,
              ElementsAre(HasSubstr("Content-Type=application/json"),
                          HasSubstr(R"({"rule":"fair-share","limit":10,"wait":4})"), "end"));
}

// It is told what is missing, which the template does not know.
TEST_F(ApplicationTest, RefusalThatNamesNoClientKeepsTheProblemDocument) {
  options.refusal =
      std::make_shared<const rule::Refusal>(*rule::Refusal::Make("text/plain", "slow down"));
  table.verdict.admitted = false;
  table.verdict.names_no_client = true;
  Ask({});
  EXPECT_THAT(rig.client.got,
              ElementsAre(HasSubstr("application/problem+json"), HasSubstr("X-Client-Id"), "end"));
}

TEST_F(ApplicationTest, RequestThatCanNeverPassHasNoRetryAfter) {
  table.verdict.admitted = false;
  Ask({});
  EXPECT_THAT(rig.client.got.front(), Not(HasSubstr("Retry-After")));
}

// As long as no capacity is known, nobody has a share.
TEST_F(ApplicationTest, WithoutALimitOnlyRetryAfterIsSaid) {
  table.verdict = {.admitted = false, .has_limit = false, .retry_after = std::chrono::seconds(1)};
  Ask({{"x-client-id", "ann"}});
  EXPECT_THAT(rig.client.got.front(),
              AllOf(HasSubstr(" Retry-After=1"), Not(HasSubstr("RateLimit"))));
}

TEST_F(ApplicationTest, RefusedGrpcCallGetsItsOwnForm) {
  table.verdict.admitted = false;
  table.verdict.retry_after = std::chrono::seconds(2);
  Ask({{"content-type", "application/grpc"}}, http::Version::kHttp2);
  EXPECT_THAT(rig.client.got, ElementsAre(AllOf(StartsWith("head 200 "), HasSubstr("grpc-status=8"),
                                                HasSubstr("grpc-retry-pushback-ms=2000")),
                                          "end"));
}

// An upstream could read the other of the two names.
TEST_F(ApplicationTest, ClientThatIsNamedTwiceIsNotNamed) {
  Ask({{"x-client-id", "ann"}, {"X-Client-Id", "bob"}});
  Ask({});
  EXPECT_THAT(table.asked, ElementsAre("", ""));
}

TEST_F(ApplicationTest, ClientByAddress) {
  options.client_field = "";
  Ask({{"x-client-id", "ann"}});
  peer.ip.reset();
  Ask({});
  EXPECT_THAT(table.asked, ElementsAre("192.0.2.7", "unix"));
}

TEST_F(ApplicationTest, ForwardedFieldsAreSet) {
  options.forwarded = {};
  Ask({});
  EXPECT_THAT(rig.upstream.got.front(),
              AllOf(HasSubstr("X-Forwarded-For=192.0.2.7"), HasSubstr("Via=1.1 headgate")));
}

}  // namespace application_test
}  // namespace headgate::proxy
