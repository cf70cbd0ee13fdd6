// The scripts on a real redis-server: compared with the C++ algorithms over 10^5 random steps each,
// run on arbitrary values under a key, and measured for the memory of a key.
#include "tests/redis/redis_server.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <span>

#include <fmt/format.h>

#include "headgate/store/redis/bucket_call.h"
#include "tests/redis/twin_walk.h"

namespace headgate::redis_host {
namespace server_test {

using algorithm::Algorithm;
using algorithm::LimitSpec;
using base::Instant;
using store::SharedAnswer;
using store::SharedRequest;
using store::redis::BucketCall;
using store::redis::CallContext;
using wire::RespValue;
using namespace std::chrono_literals;

constexpr uint64_t kSteps = 100'000;
constexpr uint64_t kStepsOfOneBucket = 200;
constexpr size_t kBucketsAtOnce = 250;
// The number of lease places in one bucket, as in scripts/leases.lua.
constexpr uint64_t kLeasesMax = 512;
// To repeat a failure alone, put its seed here.
constexpr uint64_t kSeed = 20'261'121;

class RealRedis : public ::testing::Test {
 protected:
  // All tests share one server.
  static void SetUpTestSuite() {
    server = std::make_unique<RedisServer>();
    for (const store::redis::Script& script : store::redis::AllScripts()) {
      EXPECT_EQ(server->Run({"SCRIPT", "LOAD", script.text}).text, script.sha1) << script.name;
    }
  }
  static void TearDownTestSuite() { server.reset(); }

  static void SetUpKeys() { EXPECT_EQ(server->Run({"FLUSHALL"}).text, "OK"); }

  SharedAnswer Ask(const SharedRequest& request, const CallContext& context = {}) {
    BucketCall call(request, context);
    while (true) {
      std::string bytes;
      call.AppendCommand(BucketCall::Form::kDigest, bytes);
      if (auto answer = call.Read(server->Exchange(bytes, 1)[0])) return *answer;
    }
  }

  // Keys without a TTL.
  static int64_t Immortal() {
    return server
        ->Run({"EVAL",
               "local n = 0 for _, k in ipairs(redis.call('KEYS', '*')) do "
               "if redis.call('PTTL', k) < 0 then n = n + 1 end end return n",
               "0"})
        .integer;
  }

  store::LimitHandle Intern(const LimitSpec& spec) {
    return *limits.Intern(*algorithm::Limit::Make(spec));
  }

  static inline std::unique_ptr<RedisServer> server;
  store::LimitTable limits;
};

class RedisTwin : public RealRedis, public ::testing::WithParamInterface<Algorithm> {};

TEST_P(RedisTwin, AnswersLikeTheCppAlgorithm) {
  SetUpKeys();
  CallContext context{.kept_least = 24h};  // the walks' time is not the server's
  struct OneBucket {
    std::string name;
    uint64_t seed;
    TwinWalk walk;
    std::optional<algorithm::Decision> expected{};
    std::optional<BucketCall> call{};
  };
  std::deque<OneBucket> buckets;
  uint64_t made = 0;
  uint64_t steps = 0;
  while (steps < kSteps) {
    buckets.clear();
    while (buckets.size() < kBucketsAtOnce) {
      const uint64_t seed = kSeed + 1'000'000 * static_cast<uint64_t>(GetParam()) + made++;
      buckets.push_back({fmt::format("hg:{{{}}}", seed), seed, TwinWalk(seed, GetParam())});
    }
    for (uint64_t i = 0; i < kStepsOfOneBucket; ++i) {
      std::vector<OneBucket*> waiting;
      for (OneBucket& bucket : buckets) {
        if (bucket.walk.at_the_end_of_time()) continue;
        const TwinStep step = bucket.walk.Next();
        ++steps;
        bucket.expected = bucket.walk.Answer(step);
        const SharedRequest request{.name = bucket.name,
                                    .limit = Intern(step.spec),
                                    .cost = step.cost,
                                    .operation = step.operation,
                                    .taken_at = step.taken_at};
        if (BucketCall::AnswerWithoutStore(request)) continue;
        context.now = step.now;
        bucket.call.emplace(request, context);
        waiting.push_back(&bucket);
      }
      while (!waiting.empty()) {
        std::string bytes;
        for (OneBucket* bucket : waiting)
          bucket->call->AppendCommand(BucketCall::Form::kDigest, bytes);
        const std::vector<RespValue> replies = server->Exchange(bytes, waiting.size());
        std::vector<OneBucket*> again;
        for (size_t j = 0; j < waiting.size(); ++j) {
          OneBucket& bucket = *waiting[j];
          const auto answer = bucket.call->Read(replies[j]);
          if (!answer) {
            again.push_back(&bucket);
            continue;
          }
          ASSERT_TRUE(answer->status.ok())
              << bucket.walk.story() << answer->status << " seed " << bucket.seed;
          ASSERT_TRUE(answer->decision == *bucket.expected)
              << bucket.walk.story() << "kernel: " << model::Describe(*bucket.expected)
              << "\nscript: " << model::Describe(answer->decision) << "\nseed " << bucket.seed;
        }
        waiting = std::move(again);
      }
    }
  }
  EXPECT_EQ(Immortal(), 0);
}

// The leaky bucket as a meter is the token bucket's script.
INSTANTIATE_TEST_SUITE_P(Of, RedisTwin,
                         ::testing::Values(Algorithm::kTokenBucket, Algorithm::kLeakyBucketQueue,
                                           Algorithm::kFixedWindow,
                                           Algorithm::kSlidingWindowCounter,
                                           Algorithm::kSlidingWindowLog),
                         [](const auto& test) { return std::string(Name(test.param)); });

// A TTL long enough that no key expires while a test runs.
constexpr base::Duration kLongWindow = 10'000h;

const std::vector<LimitSpec>& EveryFamily() {
  static const std::vector<LimitSpec> specs = {
      {.algorithm = Algorithm::kTokenBucket, .requests = 60, .period = 60s},
      {.algorithm = Algorithm::kLeakyBucketQueue, .requests = 60, .period = 60s, .burst = 59},
      {.algorithm = Algorithm::kFixedWindow, .requests = 60, .period = kLongWindow},
      {.algorithm = Algorithm::kFixedWindow,
       .requests = 60,
       .period = kLongWindow,
       .align = algorithm::Align::kFirstHit},
      {.algorithm = Algorithm::kSlidingWindowCounter, .requests = 60, .period = kLongWindow},
      {.algorithm = Algorithm::kSlidingWindowLog, .requests = 60, .period = kLongWindow},
  };
  return specs;
}

// The server's own clock counts: a call describes a change by its age, independently of the
// instance's clock.
TEST_F(RealRedis, ALimitThatWasChangedAndChangedBackIsNoticed) {
  for (const LimitSpec& spec :
       {LimitSpec{.algorithm = Algorithm::kTokenBucket, .requests = 10, .period = 1h},
        LimitSpec{.algorithm = Algorithm::kLeakyBucketQueue, .requests = 10, .period = 1h},
        LimitSpec{.algorithm = Algorithm::kFixedWindow, .requests = 10, .period = 1000h},
        LimitSpec{.algorithm = Algorithm::kSlidingWindowCounter, .requests = 10, .period = 1h},
        LimitSpec{.algorithm = Algorithm::kSlidingWindowLog, .requests = 10, .period = 1h}}) {
    SCOPED_TRACE(Name(spec.algorithm));
    SetUpKeys();
    LimitSpec between = spec;
    between.requests = 5;
    const store::LimitHandle limit = Intern(spec);
    const store::LimitHandle other = Intern(between);
    EXPECT_TRUE(Ask({.name = "b", .limit = limit, .cost = 2}).decision.allowed);
    EXPECT_TRUE(Ask({.name = "b", .limit = limit, .cost = 2}).decision.allowed);
    const Instant changed = Instant::FromNanos(1);
    const std::vector<store::LimitChange> history{{limit.get(), changed}, {other.get(), changed}};
    const auto ask = [&](Instant now) {
      return Ask({.name = "b", .limit = limit, .cost = 1, .history = history, .now = now});
    };
    EXPECT_FALSE(ask(changed + 1h).events.carried_over) << "the bucket was used after the change";
    const SharedAnswer carried = ask(changed);
    EXPECT_TRUE(carried.status.ok()) << carried.status;
    EXPECT_TRUE(carried.events.carried_over);
    // 5 of 10 tokens were left, which are 5 of 5; the others keep their counts.
    EXPECT_EQ(carried.decision.remaining,
              4u + (spec.algorithm == Algorithm::kLeakyBucketQueue ? 1 : 0));
    EXPECT_EQ(server->Run({"DBSIZE"}).integer, 1);
    EXPECT_EQ(Immortal(), 0);
  }
}

TEST_F(RealRedis, DecidesByTheServersClock) {
  for (const LimitSpec& spec : EveryFamily()) {
    SCOPED_TRACE(model::Describe(spec));
    SetUpKeys();
    const SharedRequest request{.name = "hg:{clock}", .limit = Intern(spec), .cost = 2};
    const SharedAnswer first = Ask(request);
    ASSERT_TRUE(first.status.ok()) << first.status;
    EXPECT_TRUE(first.decision.allowed);
    EXPECT_EQ(first.decision.remaining, 58u);
    EXPECT_EQ(first.events, store::SharedEvents{});
    const int64_t ttl_ms = server->Run({"PTTL", "hg:{clock}"}).integer;
    EXPECT_GE(
        ttl_ms + 1,
        std::chrono::floor<std::chrono::milliseconds>(first.decision.reset_after).count() - 100);
    const SharedAnswer second = Ask(request);
    EXPECT_GE(second.decision.remaining, 56u);
    EXPECT_LT(second.decision.remaining, 58u);
  }
}

TEST_F(RealRedis, ReadsTheServersClockExactly) {
  SetUpKeys();
  const auto server_time_ns = [] {
    const RespValue time = server->Run({"TIME"});
    return std::stoll(time.items[0].text) * 1'000'000'000 + std::stoll(time.items[1].text) * 1000;
  };
  const SharedRequest request{
      .name = "k",
      .limit =
          Intern({.algorithm = Algorithm::kFixedWindow, .requests = 60, .period = kLongWindow})};
  for (int i = 0; i < 100; ++i) {
    const int64_t before = server_time_ns();
    const int64_t now = kLongWindow.count() - Ask(request).decision.reset_after.count();
    const int64_t after = server_time_ns();
    EXPECT_LE(before % kLongWindow.count(), now);
    EXPECT_LE(now, after % kLongWindow.count());
  }
}

TEST_F(RealRedis, ForeignValuesStayAndFailRequestsUntilAReset) {
  for (const LimitSpec& spec : EveryFamily()) {
    const SharedRequest request{.name = "hg:{k}", .limit = Intern(spec)};
    const std::string prefix(BucketCall(request, {}).Part(1));
    const std::string full_of_ones = prefix + std::string(20, '\xff');
    const std::string half = prefix + std::string(7, 'a');
    const std::string too_long = prefix + std::string(29, '\0');
    const std::string long_header = prefix + std::string(12, '\1');
    const std::vector<std::vector<std::string_view>> foreign = {
        {"SET", "hg:{k}", "hello"},
        {"SET", "hg:{k}", ""},
        {"SET", "hg:{k}", "1e308"},
        {"SET", "hg:{k}", "\x01"},
        {"SET", "hg:{k}", "\x01\x07garbage"},
        {"SET", "hg:{k}", "\x02of a version to come"},
        {"SET", "hg:{k}", full_of_ones},
        {"SET", "hg:{k}", half},
        {"SET", "hg:{k}", too_long},
        {"HSET", "hg:{k}", "a", "b"},
        {"SADD", "hg:{k}", "a"},
        {"ZADD", "hg:{k}", "1", "a"},
        {"LPUSH", "hg:{k}", "a", "b"},
        {"RPUSH", "hg:{k}", "\x01", "b"},
        {"RPUSH", "hg:{k}", prefix, "b"},
        {"RPUSH", "hg:{k}", long_header, "b"},
        {"RPUSH", "hg:{k}", long_header, "hit hit hit "},
    };
    for (const auto& command : foreign) {
      for (const auto operation :
           {store::Operation::kTake, store::Operation::kPeek, store::Operation::kRefund}) {
        const bool queue = spec.algorithm == Algorithm::kLeakyBucketQueue;
        if (queue && operation == store::Operation::kRefund) continue;
        // Zeros after the state. In kinds that grant leases, these are not leases; a log and a
        // queue may have them.
        SCOPED_TRACE(fmt::format("{} {} {}", model::Describe(spec), fmt::join(command, " "),
                                 static_cast<int>(operation)));
        SetUpKeys();
        ASSERT_FALSE(server->Run(command).is_error());
        SharedRequest asked = request;
        asked.operation = operation;
        const SharedAnswer answer = Ask(asked);
        EXPECT_TRUE(absl::IsDataLoss(answer.status)) << answer.status;
        EXPECT_EQ(server->Run({"EXISTS", "hg:{k}"}).integer, 1);
        asked.operation = store::Operation::kReset;
        EXPECT_TRUE(Ask(asked).status.ok());
        const SharedAnswer fresh = Ask(request);
        ASSERT_TRUE(fresh.status.ok()) << fresh.status;
        EXPECT_EQ(fresh.decision.remaining, 59u);
        EXPECT_EQ(Immortal(), 0);
      }
    }
  }
}

TEST_F(RealRedis, ATokenBucketIsSmall) {
  SetUpKeys();
  const std::string name = "hg:{edge|api_key=0123456789|path=/login}";
  ASSERT_EQ(name.size(), 40u);
  const SharedRequest request{
      .name = name,
      .limit = Intern(
          {.algorithm = Algorithm::kTokenBucket, .requests = 1000, .period = 1h, .burst = 100})};
  ASSERT_TRUE(Ask(request).status.ok());
  EXPECT_EQ(server->Run({"OBJECT", "ENCODING", name}).text, "embstr");
  EXPECT_LE(server->Run({"MEMORY", "USAGE", name}).integer, 150);
}

TEST_F(RealRedis, LeasesAreGrantedReportedAndReturned) {
  for (const LimitSpec& spec : EveryFamily()) {
    if (spec.algorithm == Algorithm::kLeakyBucketQueue ||
        spec.algorithm == Algorithm::kSlidingWindowLog)
      continue;
    SCOPED_TRACE(model::Describe(spec));
    SetUpKeys();
    const auto lease = [&](uint64_t node, uint64_t number, uint64_t want,
                           std::vector<store::LeaseReport> reports) {
      const SharedAnswer answer =
          Ask({.name = "hg:{lease}",
               .limit = Intern(spec),
               .lease = store::LeaseAsk{.id = {.node = node, .number = number},
                                        .want = want,
                                        .brief = want,
                                        .ttl = 2s,
                                        .reports = reports},
               .leased = true});
      EXPECT_TRUE(answer.status.ok()) << answer.status;
      EXPECT_EQ(answer.events, store::SharedEvents{});
      return answer;
    };
    EXPECT_EQ(lease(~uint64_t{0}, 1, 20, {}).grant.granted, 20u);
    EXPECT_EQ(lease(~uint64_t{0}, 1, 20, {}).grant.granted, 20u);
    const SharedAnswer second = lease(1, 1, 10, {});
    EXPECT_EQ(second.grant.granted, 10u);
    EXPECT_EQ(second.grant.others, 20u);
    EXPECT_GE(second.decision.remaining, 30u);
    EXPECT_LE(second.decision.remaining, 31u);
    const SharedAnswer returned =
        lease(~uint64_t{0}, 2, 0, {{.number = 1, .spent = 5, .returned = true}});
    EXPECT_EQ(returned.grant.others, 10u);
    EXPECT_GE(returned.decision.remaining, 45u);
    EXPECT_LE(returned.decision.remaining, 46u);
    EXPECT_GE(server->Run({"PTTL", "hg:{lease}"}).integer, 1000);
  }
}

// More nodes than a key has lease places. The store decides each request of a node without a lease,
// and no node is denied requests that are left.
TEST_F(RealRedis, TheStoreDecidesForNodesWithoutAPlaceForALease) {
  constexpr uint64_t kNodes = 600;
  constexpr uint64_t kRequests = 1'000'000;
  for (const LimitSpec& spec :
       {LimitSpec{.algorithm = Algorithm::kTokenBucket, .requests = kRequests, .period = 24h},
        LimitSpec{.algorithm = Algorithm::kFixedWindow, .requests = kRequests, .period = 24h},
        LimitSpec{
            .algorithm = Algorithm::kSlidingWindowCounter, .requests = kRequests, .period = 24h}}) {
    SCOPED_TRACE(model::Describe(spec));
    SetUpKeys();
    std::vector<uint64_t> held(kNodes);
    uint64_t number = 0;
    uint64_t spent = 0;
    uint64_t exact = 0;
    for (int round = 0; round < 2; ++round) {
      ++number;
      for (uint64_t node = 0; node < kNodes; ++node) {
        // The requests of held leases were spent, and are reported with the next ask.
        const std::vector<store::LeaseReport> reports = {
            {.number = number - 1, .spent = held[node], .returned = true}};
        const SharedAnswer answer = Ask(
            {.name = "hg:{crowd}",
             .limit = Intern(spec),
             .lease = store::LeaseAsk{.id = {.node = (node + 1) << 16, .number = number},
                                      .want = 10,
                                      .brief = 10,
                                      .ttl = 60s,
                                      .reports = std::span(reports).first(held[node] > 0 ? 1 : 0)},
             .leased = true},
            {.lease_ttl_most = 60s});
        ASSERT_TRUE(answer.status.ok()) << answer.status;
        EXPECT_GE(answer.decision.remaining, 900'000u);
        held[node] = answer.grant.granted;
        spent += answer.grant.granted;
        if (answer.grant.granted > 0) continue;
        const SharedAnswer decided =
            Ask({.name = "hg:{crowd}", .limit = Intern(spec), .leased = true});
        ASSERT_TRUE(decided.status.ok()) << decided.status;
        ASSERT_TRUE(decided.decision.allowed) << "node " << node << " of round " << round;
        ++exact;
      }
      const auto holders = static_cast<uint64_t>(
          std::count_if(held.begin(), held.end(), [](uint64_t n) { return n > 0; }));
      EXPECT_EQ(holders, kLeasesMax) << "every place, in each round";
    }
    EXPECT_EQ(exact, 2 * (kNodes - kLeasesMax));
    const uint64_t left = Ask({.name = "hg:{crowd}",
                               .limit = Intern(spec),
                               .cost = 0,
                               .operation = store::Operation::kPeek})
                              .decision.remaining;
    EXPECT_GE(left, kRequests - spent - exact);
    EXPECT_LE(left, kRequests - spent - exact + 1000) << "the refill of a minute";
  }
}

TEST_F(RealRedis, AnUnknownScriptIsSentOnce) {
  SetUpKeys();
  server->Run({"SCRIPT", "FLUSH"});
  const SharedRequest request{.name = "k", .limit = Intern(EveryFamily()[0])};
  BucketCall call(request, {});
  std::string bytes;
  call.AppendCommand(BucketCall::Form::kDigest, bytes);
  EXPECT_THAT(server->Exchange(bytes, 1)[0].text, ::testing::StartsWith("NOSCRIPT"));
  bytes.clear();
  call.AppendCommand(BucketCall::Form::kText, bytes);
  const auto answer = call.Read(server->Exchange(bytes, 1)[0]);
  ASSERT_TRUE(answer.has_value());
  EXPECT_TRUE(answer->status.ok());
  EXPECT_TRUE(Ask(request).status.ok());
  for (const store::redis::Script& script : store::redis::AllScripts())
    server->Run({"SCRIPT", "LOAD", script.text});
}

}  // namespace server_test
}  // namespace headgate::redis_host
