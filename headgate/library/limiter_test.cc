#include "headgate/library/limiter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace headgate {
namespace limiter_test {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr base::WallTime kStart = base::WallTime::FromNanos(1'790'000'000'000'000'000);

Limiter Made(const LimiterOptions& options) {
  auto made = Limiter::Make(options);
  EXPECT_TRUE(made.ok()) << made.status();
  return *std::move(made);
}

TEST(Limiter, AnswersInTheTimeOfItsClock) {
  base::ManualClock clock(kStart);
  Limiter limiter = Made({.rules = {"api_key: 2/minute"}, .clock = &clock});
  const Verdict first = limiter.Check("api_key", "ann");
  EXPECT_TRUE(first);
  EXPECT_TRUE(first.limited);
  EXPECT_EQ(first.limit, 2u);
  EXPECT_EQ(first.remaining, 1u);
  EXPECT_EQ(first.reset_after, 30s);
  EXPECT_TRUE(limiter.Check("api_key", "ann"));
  const Verdict third = limiter.Check("api_key", "ann");
  EXPECT_FALSE(third);
  EXPECT_EQ(third.retry_after, 30s);
  EXPECT_TRUE(limiter.Check("api_key", "bob"));
  clock.Advance(30s);
  EXPECT_TRUE(limiter.Check("api_key", "ann"));
}

TEST(Limiter, LetsPassWhatNoRuleLimits) {
  Limiter limiter = Made({.rules = {"api_key: 0/minute"}});
  const Verdict verdict = limiter.Check("color", "red");
  EXPECT_TRUE(verdict.allowed);
  EXPECT_FALSE(verdict.limited);
  EXPECT_FALSE(limiter.Check("api_key", "red"));
}

TEST(Limiter, TakesCostsPeeksRefundsAndResets) {
  base::ManualClock clock(kStart);
  Limiter limiter = Made({.rules = {"api_key,path: 10/hour"}, .clock = &clock});
  const rule::Entry entries[] = {{"api_key", "ann"}, {"path", "/a"}};
  EXPECT_EQ(limiter.Check(entries, 7).remaining, 3u);
  EXPECT_EQ(limiter.Peek(entries, 0).remaining, 3u);
  EXPECT_FALSE(limiter.Check(entries, 4));
  EXPECT_EQ(limiter.Check(entries, 11).retry_after, std::chrono::nanoseconds::max());
  EXPECT_TRUE(limiter.Refund(entries, 2).ok());
  EXPECT_EQ(limiter.Peek(entries, 0).remaining, 5u);
  EXPECT_TRUE(limiter.Reset(entries).ok());
  EXPECT_EQ(limiter.Peek(entries, 0).remaining, 10u);
  const rule::Entry other[] = {{"color", "red"}};
  EXPECT_EQ(limiter.Refund(other).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(limiter.Reset(other).code(), absl::StatusCode::kNotFound);
}

// The expressions of docs/guides/embedding.md.
TEST(Limiter, TakesEntriesInBraces) {
  base::ManualClock clock(kStart);
  Limiter made = Made({.rules = {"api_key,path: 10/hour"}, .clock = &clock});
  Limiter* const limiter = &made;
  const std::string key = "ann";
  const std::string_view path = "/a";
  EXPECT_EQ(limiter->Check({{"api_key", key}, {"path", path}}).remaining, 9u);
  EXPECT_EQ(limiter->Check({{"api_key", key}, {"path", path}}, 2).remaining, 7u);
  EXPECT_EQ(limiter->Peek({{"api_key", key}, {"path", path}}, 0).remaining, 7u);
  EXPECT_TRUE(limiter->Refund({{"api_key", key}, {"path", path}}, 2).ok());
  EXPECT_EQ(limiter->Peek({{"api_key", key}, {"path", path}}, 0).remaining, 9u);
  EXPECT_TRUE(limiter->Reset({{"api_key", key}, {"path", path}}).ok());
  EXPECT_EQ(limiter->Peek({{"api_key", "ann"}, {"path", "/a"}}, 0).remaining, 10u);
  EXPECT_FALSE(limiter->Check({{"api_key", key}}).limited) << "one entry is another descriptor";
}

TEST(Limiter, RefusesWhatIsOutOfBounds) {
  Limiter limiter = Made({.rules = {"k: 10/hour"}});
  EXPECT_FALSE(limiter.Check(std::vector<rule::Entry>(33, {"k", "v"})));
  EXPECT_TRUE(limiter.Check(std::vector<rule::Entry>(32, {"k", "v"})));
  const rule::Entry entry[] = {{"k", "v"}};
  EXPECT_FALSE(limiter.Check(entry, 1, ""));
  EXPECT_FALSE(limiter.CheckAll({}).ok());
  const std::vector<rule::Descriptor> many(65, rule::Descriptor{.entries = entry});
  EXPECT_FALSE(limiter.CheckAll(many).ok());
}

TEST(Limiter, TakesAllOrNothingIfTheDomainSaysSo) {
  base::ManualClock clock(kStart);
  const std::string file = R"(domain: edge
all_or_nothing: true
descriptors:
- key: user
  rate_limit: {unit: hour, requests_per_unit: 5}
- key: address
  rate_limit: {unit: hour, requests_per_unit: 1}
)";
  Limiter limiter = Made({.files = {{"edge.yaml", file}}, .clock = &clock});
  const rule::Entry user[] = {{"user", "ann"}};
  const rule::Entry address[] = {{"address", "::1"}};
  const std::vector<rule::Descriptor> both = {{.entries = user}, {.entries = address}};
  auto verdicts = limiter.CheckAll(both, "edge");
  ASSERT_TRUE(verdicts.ok());
  EXPECT_TRUE(verdicts->at(0) && verdicts->at(1));
  verdicts = limiter.CheckAll(both, "edge");
  EXPECT_FALSE(verdicts->at(1));
  EXPECT_EQ(limiter.Peek(user, 0, "edge").remaining, 4u) << "the user has lost nothing";
}

TEST(Limiter, NoRequestWithAnEmptyKeyPasses) {
  Limiter limiter = Made({.rules = {"k: 5/hour"}});
  const std::vector<rule::Entry> good = {{"k", "v"}};
  const std::vector<rule::Entry> unnamed = {{"k", "v"}, {"", "v"}};
  EXPECT_FALSE(limiter.Check("", "v"));
  EXPECT_FALSE(limiter.Peek(unnamed));
  const std::vector<rule::Descriptor> both = {{.entries = good}, {.entries = unnamed}};
  EXPECT_EQ(limiter.CheckAll(both).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(limiter.Peek(good, 0).remaining, 5u) << "nothing was taken";
}

TEST(Limiter, NamesEveryProblemOfItsRules) {
  const auto made = Limiter::Make({.rules = {"a: 1/fortnight", "b 3"}});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(made.status().message()), HasSubstr("fortnight"));
  EXPECT_THAT(std::string(made.status().message()), HasSubstr("b 3"));
  for (const uint64_t buckets : {uint64_t{0}, LimiterOptions::kBucketsMax + 1}) {
    EXPECT_EQ(Limiter::Make({.max_buckets = buckets}).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST(Limiter, KeepsTheOldRulesIfTheNewOnesAreWrong) {
  Limiter limiter = Made({.rules = {"k: 1/hour fixed_window first_hit"}});
  EXPECT_FALSE(limiter.SetRules({"k: many/hour"}).ok());
  EXPECT_TRUE(limiter.Check("k", "v"));
  EXPECT_FALSE(limiter.Check("k", "v"));
  EXPECT_TRUE(limiter.SetRules({"k: 3/hour fixed_window first_hit"}).ok());
  EXPECT_TRUE(limiter.Check("k", "v", 2));
  EXPECT_FALSE(limiter.Check("k", "v")) << "what was taken stays taken";
}

TEST(Limiter, ASnapshotGivesTheBucketsToALaterLimiter) {
  Limiter limiter = Made({.rules = {"k: 1/hour"}});
  EXPECT_TRUE(limiter.Check("k", "v"));
  limiter.Maintain();
  const std::string snapshot = limiter.Snapshot();
  Limiter later = Made({.rules = {"k: 1/hour"}, .snapshot = snapshot});
  EXPECT_FALSE(later.Check("k", "v"));
  EXPECT_TRUE(later.Check("k", "w"));
  EXPECT_FALSE(Limiter::Make({.snapshot = snapshot.substr(0, snapshot.size() - 1)}).ok());
}

TEST(Limiter, ManyThreadsTogetherPassNoMoreThanTheLimit) {
  Limiter limiter = Made({.rules = {"k: 5000/day fixed_window"}});
  std::atomic<int> passed{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 20; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 500; ++k) passed += limiter.Check("k", "v") ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(passed, 5000);
}

}  // namespace limiter_test
}  // namespace headgate
