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
  Verdict verdict{.admitted = false,
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
        return testing::PrintToString(own.client.got);
      };
  EXPECT_THAT(refusal({}),
              AllOf(HasSubstr("the request does not name its client: the header X-Tenant is "
                              "missing"),
                    HasSubstr("send this header once, with the id of the client; ")));
  EXPECT_THAT(refusal({{"X-Tenant", ""}}), HasSubstr("the header X-Tenant is empty"));
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

// An upstream could believe the other one.
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
