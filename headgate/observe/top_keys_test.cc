#include "headgate/observe/top_keys.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "headgate/base/hash_rig.h"
#include "headgate/base/random.h"
#include "headgate/testing/count_allocations.h"

namespace headgate::observe {
namespace top_keys_test {

using namespace std::chrono_literals;
using base::Instant;
using limiter::Outcome;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using By = TopKeys::By;

constexpr Instant kStart = Instant::FromNanos(1'790'000'000'000'000'000);

rule::Rule MakeRule(std::string path) {
  rule::Rule rule;
  rule.domain = "edge";
  rule.path = std::move(path);
  return rule;
}

class TopKeysTest : public ::testing::Test {
 protected:
  struct Made {
    Outcome outcome = Outcome::kAllowed;
    algorithm::Cost cost = 1;
    uint32_t worker = 0;
  };
  // As a limiter keeps it: a rule is named once.
  uint32_t NumberOf(TopKeys& top, const rule::Rule* rule) {
    if (rule == nullptr) return 0;
    if (&top != &top_) return top.OnRule(*rule);
    const auto found = numbers_.find(rule);
    return found != numbers_.end() ? found->second : numbers_[rule] = top.OnRule(*rule);
  }
  // As a limiter reports it.
  void Decide(TopKeys& top, const rule::Rule* rule, std::string_view value, const Made& made) {
    if (!top.hears_decisions()) return;
    const rule::Entry entry{rule != nullptr ? std::string_view(rule->path) : "k", value};
    rule::Match match;
    match.rule = rule;
    match.step_count = rule != nullptr ? 1 : 0;
    top.OnDecision(made.worker, {.outcome = made.outcome,
                                 .cost = made.cost,
                                 .rule = rule,
                                 .series = NumberOf(top, rule),
                                 .domain = "edge",
                                 .entries = {&entry, 1},
                                 .match = &match});
  }
  void Decide(std::string_view value, const Made& made) { Decide(top_, &user_, value, made); }
  void Decide(std::string_view value, int times = 1) {
    for (int i = 0; i < times; ++i) Decide(value, Made{});
  }

  TopKeys::Answer Ask(const TopKeys::Question& question = {}) {
    auto answer = top_.Ask(question, now_);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? *std::move(answer) : TopKeys::Answer{};
  }
  std::vector<std::string> Keys(const TopKeys::Question& question = {}) {
    std::vector<std::string> keys;
    for (const TopKeys::Key& key : Ask(question).keys)
      keys.push_back(fmt::format("{} {}", key.counts.key, key.counts.count));
    return keys;
  }
  void Tick(base::Duration passed = 1s) {
    now_ = now_ + passed;
    top_.Tick(now_);
  }

  const rule::Rule user_ = MakeRule("user");
  const rule::Rule path_ = MakeRule("path");
  TopKeys top_{{.workers = 2, .secret = base::SecretFromSeed(3)}};
  Instant now_ = kStart;
  std::map<const rule::Rule*, uint32_t> numbers_;
};

TEST_F(TopKeysTest, CountsNothingUntilSomebodyAsks) {
  Decide("a");
  Tick();
  EXPECT_FALSE(top_.hears_decisions());
  EXPECT_THAT(Keys(), IsEmpty()) << "the first answer begins the list";
  EXPECT_FALSE(top_.hears_decisions());
  Tick();
  EXPECT_TRUE(top_.hears_decisions());
  EXPECT_EQ(Ask().counted_for, 0s);
  Decide("a", 2);
  Decide("b");
  Tick();
  EXPECT_THAT(Keys(), ElementsAre("edge|user=a 2", "edge|user=b 1"));
  EXPECT_EQ(Ask().counted_for, 1s);
  EXPECT_EQ(Ask().total, 3u);
}

TEST_F(TopKeysTest, EndsAMinuteAfterTheLastQuestion) {
  Ask();
  Tick();
  Decide("a");
  Tick(30s);
  EXPECT_THAT(Keys(), ElementsAre("edge|user=a 1"));
  Tick(59s);
  EXPECT_TRUE(top_.hears_decisions());
  Tick(1s);
  EXPECT_FALSE(top_.hears_decisions());
  EXPECT_THAT(Keys(), IsEmpty());
  Tick();
  Decide("b");
  Tick();
  EXPECT_THAT(Keys(), ElementsAre("edge|user=b 1")) << "nothing is left of the list before";
}

TEST_F(TopKeysTest, IsOfTheLastTenToTwentySeconds) {
  Ask();
  Tick();
  Decide("old");
  for (int second = 0; second < 10; ++second) Tick();
  Decide("recent");
  for (int second = 0; second < 9; ++second) Tick();
  EXPECT_THAT(Keys(), ElementsAre(::testing::_, ::testing::_)) << "nineteen seconds";
  EXPECT_EQ(Ask().counted_for, 19s);
  Tick();
  Tick();
  EXPECT_EQ(Ask().counted_for, 11s);
  EXPECT_THAT(Keys(), ElementsAre("edge|user=recent 1"));
}

TEST_F(TopKeysTest, RanksByDenialsAndByCost) {
  Ask();
  Tick();
  Decide("busy", 9);
  Decide("blocked", {.outcome = Outcome::kBlocked});
  for (const Outcome outcome :
       {Outcome::kDenied, Outcome::kShadowDenied, Outcome::kNeverFits, Outcome::kUnavailable})
    Decide("denied", {.outcome = outcome});
  Decide("dear", {.cost = 50});
  Decide("dear", {.outcome = Outcome::kRepeated, .cost = 1});
  Tick();
  EXPECT_THAT(Keys({.by = By::kDenials}), ElementsAre("edge|user=denied 4", "edge|user=blocked 1"));
  EXPECT_THAT(Keys({.by = By::kCost, .count = 1}), ElementsAre("edge|user=dear 51"));
  const TopKeys::Key first = Ask({.count = 1}).keys.at(0);
  EXPECT_EQ(first.rule->domain, "edge");
  EXPECT_EQ(first.rule->rule, "user");
  EXPECT_EQ(first.counts.allowed, 9u);
}

TEST_F(TopKeysTest, HasAListOfOneRuleBesideThatOfAll) {
  top_.OnRule(user_);
  top_.OnRule(path_);
  const TopKeys::Question of_path{.rule = RuleNames::Name{.domain = "edge", .rule = "path"}};
  Ask();
  Ask(of_path);
  Tick();
  Decide("a", 3);
  Decide(top_, &path_, "/x", {});
  Tick();
  EXPECT_THAT(Keys(of_path), ElementsAre("edge|path=/x 1"));
  EXPECT_EQ(Ask(of_path).total, 1u);
  EXPECT_THAT(Keys(), ElementsAre("edge|user=a 3", "edge|path=/x 1"));
  const auto none = top_.Ask({.rule = RuleNames::Name{.domain = "edge", .rule = "none"}}, now_);
  EXPECT_TRUE(absl::IsNotFound(none.status()));
}

TEST_F(TopKeysTest, AListThatBeginsLaterLeavesTheOthersAsTheyAre) {
  top_.OnRule(user_);
  const TopKeys::Question of_user{.rule = RuleNames::Name{.domain = "edge", .rule = "user"}};
  Ask();
  Tick();
  Decide("a");
  Ask(of_user);
  Tick();
  Decide("a");
  Tick();
  EXPECT_THAT(Keys(), ElementsAre("edge|user=a 2"));
  EXPECT_THAT(Keys(of_user), ElementsAre("edge|user=a 1"));
  // The list of all ends first.
  Tick(30s);
  Ask(of_user);
  Tick(31s);
  Decide("b");
  Tick();
  EXPECT_TRUE(top_.hears_decisions());
  EXPECT_EQ(Ask(of_user).total, 1u) << "of two windows that are over, nothing is left";
  EXPECT_EQ(Ask().counted_for, 0s);
}

TEST_F(TopKeysTest, KeepsABoundedNumberOfLists) {
  for (size_t i = 0; i < TopKeys::kListsMax; ++i) {
    const rule::Rule rule = MakeRule(fmt::format("rule{}", i));
    top_.OnRule(rule);
    Ask({.rule = RuleNames::Name{.domain = "edge", .rule = rule.path}});
  }
  EXPECT_TRUE(absl::IsResourceExhausted(top_.Ask({}, now_).status()));
  Tick(TopKeys::kKeptFor);
  EXPECT_TRUE(top_.Ask({}, now_).ok());
}

TEST_F(TopKeysTest, NamesTheKeyOfALimitThatTheRequestBroughtByAllItsEntries) {
  Ask();
  Tick();
  Decide(top_, nullptr, "v", {.outcome = Outcome::kAllowed});
  Decide(top_, nullptr, "w", {.outcome = Outcome::kNoRule});
  Tick();
  EXPECT_THAT(Keys(), ElementsAre("edge|k=v 1"));
  EXPECT_FALSE(Ask().keys.at(0).rule.has_value());
}

TEST_F(TopKeysTest, HasTheKeysThatComeWithLimitsOfTheirOwn) {
  const TopKeys::Question own{
      .rule = RuleNames::Name{.domain = "", .rule = std::string(TopKeys::kOwnLimits)}};
  Ask();
  Ask(own);
  EXPECT_FALSE(top_.hears_own_keys());
  Tick();
  EXPECT_TRUE(top_.hears_own_keys());
  Decide("a", 2);
  for (int i = 0; i < 3; ++i)
    top_.OnOwnKey(1, {.outcome = Outcome::kDenied, .cost = 2, .key = "user|1"});
  Tick();
  EXPECT_THAT(Keys(), ElementsAre("user%7c1 3", "edge|user=a 2"));
  EXPECT_THAT(Keys(own), ElementsAre("user%7c1 3"));
  EXPECT_EQ(Ask(own).keys.at(0).rule->rule, "CL.THROTTLE");
  EXPECT_EQ(Ask(own).keys.at(0).counts.cost, 6u);
  Tick(TopKeys::kKeptFor);
  EXPECT_FALSE(top_.hears_own_keys());
}

TEST_F(TopKeysTest, ShowsHashesInsteadOfKeys) {
  TopKeys hashed({.keys = base::HeavyHitters::Keys::kHashed});
  ASSERT_TRUE(hashed.Ask({}, now_).ok());
  hashed.Tick(now_);
  Decide(hashed, &user_, "secret", {});
  hashed.Tick(now_ + 1s);
  const auto answer = hashed.Ask({}, now_ + 1s);
  EXPECT_THAT(answer->keys.at(0).counts.key, ::testing::MatchesRegex("[0-9a-f]{16}"));
}

TEST_F(TopKeysTest, CountsADecisionWithoutAnAllocation) {
  // More than there are counters, so that keys are replaced; some too long to be shown.
  std::vector<std::string> values;
  for (size_t i = 0; i < 4 * TopKeys::kCounters; ++i)
    values.push_back(fmt::format("{}", i) + std::string(i % 300, '\xff'));
  Ask();
  Tick();
  (void)NumberOf(top_, &user_);
  for (int round = 0; round < 3; ++round) {
    const uint64_t before = testing::allocation_count.load();
    for (const std::string& value : values) Decide(value, {.outcome = Outcome::kDenied});
    EXPECT_EQ(testing::allocation_count.load(), before);
    Tick();
  }
}

// Against exact counts: requests of many keys, by several workers, with a Tick now and then.
TEST_F(TopKeysTest, KeepsTheBoundsOfTheSketchOverWorkersAndWindows) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    base::Random random(seed);
    TopKeys top({.workers = 3, .secret = base::SecretFromSeed(seed)});
    Instant now = kStart;
    ASSERT_TRUE(top.Ask({}, now).ok());
    top.Tick(now);
    std::map<std::string, uint64_t> exact;
    uint64_t total = 0;
    for (int i = 0; i < 20'000; ++i) {
      const std::string value = fmt::format("{}", random.Below(60) * random.Below(60));
      Decide(top, &user_, value, {.worker = static_cast<uint32_t>(random.Below(3))});
      ++exact["edge|user=" + value];
      ++total;
      // All of it within two windows.
      if (random.Below(1500) == 0) top.Tick(now = now + 700ms);
    }
    top.Tick(now = now + 100ms);
    const auto answer = top.Ask({}, now);
    ASSERT_TRUE(answer.ok());
    ASSERT_LT(answer->counted_for, 2 * TopKeys::kWindow);
    ASSERT_EQ(answer->total, total);
    ASSERT_EQ(answer->error_most, total / TopKeys::kCounters);
    std::map<std::string, uint64_t> shown;
    for (const TopKeys::Key& key : answer->keys) {
      shown[key.counts.key] = key.counts.count;
      ASSERT_LE(key.counts.error, answer->error_most);
      ASSERT_LE(exact[key.counts.key], key.counts.count);
      ASSERT_GE(exact[key.counts.key], key.counts.count - key.counts.error);
    }
    for (const auto& [key, count] : exact) {
      if (count > answer->error_most) {
        ASSERT_TRUE(shown.contains(key)) << key << " in seed " << seed;
      }
    }
  }
}

// Threads decide while lists begin, are read, and end. Nothing that was counted is lost.
TEST_F(TopKeysTest, TakesTheTablesOfThreadsThatGoOn) {
  constexpr uint64_t kEach = 20'000;
  Ask();
  Tick();
  (void)NumberOf(top_, &user_);
  std::atomic<int> running{2};
  std::vector<std::thread> threads;
  for (uint32_t worker = 0; worker < 2; ++worker) {
    threads.emplace_back([&, worker] {
      for (uint64_t i = 0; i < kEach; ++i) Decide("a", {.worker = worker});
      --running;
    });
  }
  // No time passes, so that no window ends.
  while (running.load() > 0) {
    Tick(0s);
    Ask();
  }
  for (std::thread& thread : threads) thread.join();
  Tick(0s);
  EXPECT_EQ(Ask().total, 2 * kEach);
  EXPECT_THAT(Keys(), ElementsAre(fmt::format("edge|user=a {}", 2 * kEach)));
}

TEST_F(TopKeysTest, EndsWhileThreadsDecide) {
  (void)NumberOf(top_, &user_);
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (uint32_t worker = 0; worker < 2; ++worker) {
    threads.emplace_back([&, worker] {
      while (!over.load()) Decide("a", {.worker = worker});
    });
  }
  for (int i = 0; i < 50; ++i) {
    Ask();
    Tick();
    Tick();
    Tick(TopKeys::kKeptFor);
    EXPECT_FALSE(top_.hears_decisions());
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace top_keys_test
}  // namespace headgate::observe
