// Several observers of one limiter.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "headgate/base/hash_rig.h"
#include "headgate/limiter/checker.h"
#include "headgate/limiter/own_limits.h"
#include "headgate/limiter/permit_hold.h"
#include "headgate/rule/read/load.h"
#include "headgate/store/memory.h"

namespace headgate::limiter {
namespace observers_test {

using base::Instant;

constexpr Instant kStart = Instant::FromNanos(1'790'000'000'000'000'000);
constexpr std::string_view kRules = R"(
domain: d
descriptors:
- key: user
  rate_limit: {unit: day, requests_per_unit: 1}
- key: trial
  rate_limit: {unit: day, requests_per_unit: 5}
  rollout: {shadow: true, rate_limit: {unit: day, requests_per_unit: 0}}
- key: pool
  rate_limit: {algorithm: concurrency, requests: 2, ttl: 30s}
- key: plan
  rate_limit: {unit: day, requests_per_unit: 9, max: 10}
)";

// Numbers rules from `first` on, and notes what it is told.
class Listener final : public Observer {
 public:
  explicit Listener(uint32_t first) : first_(first) {}

  uint32_t OnRule(const rule::Rule& rule) override { return first_ + rule.index; }
  uint32_t OnRollout(const rule::Rule& rule) override { return first_ + rule.index + 10; }
  uint32_t OnConcurrency(const rule::Rule& rule) override { return first_ + rule.index + 20; }
  void OnDecision(uint32_t, const DecisionEvent& event) override { ++decisions[event.series]; }
  void OnOwnLimits(uint32_t, Outcome, uint64_t count) override { own_limits += count; }
  void OnShadowRollout(uint32_t, const RolloutEvent& event) override { ++rollouts[event.series]; }
  void OnGivenLimit(uint32_t, rule::Given) override { ++given_limits; }
  void OnPermits(uint32_t, const PermitEvent& event) override {
    permits[event.series] += event.count;
  }
  using Observer::HearDecisions;

  std::map<uint32_t, uint64_t> decisions;
  std::map<uint32_t, uint64_t> rollouts;
  std::map<uint32_t, uint64_t> permits;
  uint64_t own_limits = 0;
  uint64_t given_limits = 0;

 private:
  const uint32_t first_;
};

class ObserversTest : public ::testing::Test {
 protected:
  ObserversTest() {
    const rule::read::RuleFile file{.name = "f", .text = std::string(kRules)};
    const rule::read::LoadResult loaded = rule::read::LoadRules({&file, 1});
    EXPECT_TRUE(loaded.ok()) << rule::Describe(loaded.problems);
    EXPECT_TRUE(limiter_.OnRules(loaded.rules, kStart).ok());
  }

  void Take(std::string_view key, PermitHold* permits = nullptr, std::string_view given = "") {
    const rule::Entry entry{key, "v"};
    const rule::Descriptor descriptor{.entries = {&entry, 1}, .given_limit = given};
    EXPECT_TRUE(checker_
                    .Check({.domain = "d", .descriptors = {&descriptor, 1}, .permits = permits},
                           response_, kStart)
                    .ok());
  }

  using Counts = std::map<uint32_t, uint64_t>;

  store::MemoryStore store_{{.max_buckets = 1000, .secret = base::SecretFromSeed(1)}};
  Listener first_{100};
  Listener second_{200};
  Limiter limiter_{store_, {&first_, nullptr, &second_}};
  Checker checker_{limiter_};
  Response response_;
};

TEST_F(ObserversTest, EachIsToldWithItsOwnNumberOfTheRule) {
  Take("user");
  Take("user");
  Take("nobody");
  EXPECT_EQ(first_.decisions, (Counts{{0, 1}, {100, 2}}));
  EXPECT_EQ(second_.decisions, (Counts{{0, 1}, {200, 2}}));
}

TEST_F(ObserversTest, EachIsToldOfEveryKindOfEvent) {
  Take("trial");
  OwnLimits(checker_).Observe(Outcome::kAllowed, 3);
  Take("plan", nullptr, "7");
  {
    PermitHold hold;
    Take("pool", &hold);
  }
  EXPECT_EQ(first_.rollouts, (Counts{{111, 1}}));
  EXPECT_EQ(second_.rollouts, (Counts{{211, 1}}));
  EXPECT_EQ(first_.permits, (Counts{{122, 2}})) << "taken and given back";
  EXPECT_EQ(second_.permits, (Counts{{222, 2}}));
  for (const Listener* listener : {&first_, &second_}) {
    EXPECT_EQ(listener->own_limits, 3u);
    EXPECT_EQ(listener->given_limits, 1u);
  }
}

TEST_F(ObserversTest, OneThatHearsNoDecisionsIsNotToldOfThem) {
  second_.HearDecisions(false);
  Take("user");
  EXPECT_EQ(first_.decisions, (Counts{{100, 1}}));
  EXPECT_EQ(second_.decisions, (Counts{}));
  second_.HearDecisions(true);
  Take("user");
  EXPECT_EQ(second_.decisions, (Counts{{200, 1}}));
}

}  // namespace observers_test
}  // namespace headgate::limiter
