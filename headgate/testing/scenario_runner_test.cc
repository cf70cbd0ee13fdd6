#include "headgate/testing/scenario_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <deque>

namespace headgate::testing {
namespace scenario_runner_test {

using algorithm::Decision;
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Returns scripted answers in turn, and records the requests.
class ScriptedDriver final : public Driver {
 public:
  explicit ScriptedDriver(std::deque<absl::StatusOr<Decision>> answers,
                          base::Duration precision = 1ns)
      : answers_(std::move(answers)), precision_(precision) {}

  base::Duration precision() const override { return precision_; }
  absl::Status SetRules(std::span<const ScenarioRule> rules, base::Instant now) override {
    heard.push_back(std::to_string(rules.size()) + " rules, the first " +
                    std::to_string(rules[0].limits[0].spec().requests) + " at " +
                    std::to_string(now.ns));
    return rules_status;
  }
  absl::StatusOr<Decision> Answer(const Ask& ask, base::Instant now) override {
    heard.push_back(ask.rule + ":" + ask.key + " cost " + std::to_string(ask.cost) + " at " +
                    std::to_string(now.ns));
    if (answers_.empty()) return Decision{};
    auto answer = std::move(answers_.front());
    answers_.pop_front();
    return answer;
  }

  std::vector<std::string> heard;
  absl::Status rules_status;

 private:
  std::deque<absl::StatusOr<Decision>> answers_;
  const base::Duration precision_;
};

std::vector<std::string> Differences(std::string_view text, Driver& driver) {
  const ParsedScenario parsed = ParseScenario("a.scenario", text);
  EXPECT_TRUE(parsed.ok());
  std::vector<std::string> lines;
  for (const ScenarioDifference& difference : RunScenario(parsed.scenario, driver)) {
    lines.push_back(Describe("a.scenario", difference));
  }
  return lines;
}

constexpr std::string_view kRule = "rule r = 1 per 1s\n";
std::string WithRule(std::string_view lines) { return std::string(kRule) + std::string(lines); }

TEST(ScenarioRunner, AsksWhatTheLinesSayWhenTheySay) {
  ScriptedDriver driver({});
  EXPECT_THAT(Differences("rule r = 1 per 1s\n"
                          "rule s = 2 per 1s\n"
                          "at 1ns r:k x2 cost 3 allow\n"
                          "at 3ns rule r = 5 per 1s\n"
                          "at 2ns s:k refund 4\n"
                          "at 2ns s:k reset",
                          driver),
              IsEmpty());
  EXPECT_THAT(driver.heard,
              ElementsAre("2 rules, the first 1 at 0", "r:k cost 3 at 1", "r:k cost 3 at 1",
                          "2 rules, the first 5 at 3", "s:k cost 4 at 2", "s:k cost 1 at 2"));
}

TEST(ScenarioRunner, TellsTheLineThatDiffers) {
  ScriptedDriver driver(
      {Decision{.allowed = false, .remaining = 2, .retry_after = 9s, .reset_after = 49s}});
  EXPECT_THAT(Differences(WithRule("at 0s r:k deny remaining 2 retry 10s reset 50s"), driver),
              ElementsAre("a.scenario:2: expected deny remaining 2 retry 10s reset 50s, "
                          "got deny remaining 2 retry 9s reset 49s"));
}

TEST(ScenarioRunner, ComparesOnlyWhatTheLineNames) {
  ScriptedDriver driver(
      {Decision{.allowed = true, .remaining = 2, .reset_after = 49s, .wait = 1s}});
  EXPECT_THAT(Differences(WithRule("at 0s r:k allow wait 1s"), driver), IsEmpty());
}

TEST(ScenarioRunner, TellsWhenToRetryOfADenialThatWasNotForeseen) {
  ScriptedDriver driver({Decision{.allowed = false, .retry_after = algorithm::kNever}});
  EXPECT_THAT(Differences(WithRule("at 0s r:k allow"), driver),
              ElementsAre("a.scenario:2: expected allow, got deny retry never"));
}

TEST(ScenarioRunner, HoldsTheVerdictAgainstEachRepetitionAndTheFiguresAgainstTheLast) {
  ScriptedDriver as_expected(
      {Decision{.remaining = 2}, Decision{.remaining = 1}, Decision{.remaining = 0}});
  EXPECT_THAT(Differences(WithRule("at 0s r:k x3 allow remaining 0"), as_expected), IsEmpty());

  ScriptedDriver early({Decision{}, Decision{.allowed = false, .retry_after = 1s}, Decision{}});
  EXPECT_THAT(Differences(WithRule("at 0s r:k x3 allow remaining 0\nat 1s r:k allow"), early),
              ElementsAre("a.scenario:2: expected allow remaining 0, got deny remaining 0 retry 1s "
                          "(request 2 of 3)"));
  EXPECT_EQ(early.heard.size(), 5u) << "the rest of the line and of the file is asked all the same";

  ScriptedDriver late({Decision{.remaining = 0}, Decision{.remaining = 1}});
  EXPECT_THAT(
      Differences(WithRule("at 0s r:k x2 allow remaining 0"), late),
      ElementsAre(
          "a.scenario:2: expected allow remaining 0, got allow remaining 1 (request 2 of 2)"));
}

TEST(ScenarioRunner, RoundsWhatIsExpectedUpToWhatCanBeShown) {
  ScriptedDriver driver({Decision{.allowed = false, .retry_after = 1ms, .reset_after = 2s}}, 1ms);
  EXPECT_THAT(Differences(WithRule("at 0s r:k deny retry 1ns reset 2s"), driver), IsEmpty());

  ScriptedDriver never({Decision{.allowed = false, .retry_after = algorithm::kNever}}, 1ms);
  EXPECT_THAT(Differences(WithRule("at 0s r:k deny retry never"), never), IsEmpty());

  ScriptedDriver down({Decision{.allowed = false, .retry_after = 0ms}}, 1ms);
  EXPECT_THAT(Differences(WithRule("at 0s r:k deny retry 1ns"), down),
              ElementsAre("a.scenario:2: expected deny retry 1ms, got deny retry 0s"));
}

TEST(ScenarioRunner, TellsWhatWasRefused) {
  ScriptedDriver driver({absl::FailedPreconditionError("a queue takes nothing back")});
  EXPECT_THAT(Differences(WithRule("at 0s r:k refund 1"), driver),
              ElementsAre("a.scenario:2: expected an answer, got: a queue takes nothing back"));
}

TEST(ScenarioRunner, GoesNoFurtherWithoutRules) {
  ScriptedDriver driver({});
  driver.rules_status = absl::ResourceExhaustedError("too many limits");
  EXPECT_THAT(Differences(WithRule("at 0s r:k allow"), driver),
              ElementsAre("a.scenario:1: expected the rules to be taken up, got: too many limits"));
  EXPECT_EQ(driver.heard.size(), 1u);
}

}  // namespace scenario_runner_test
}  // namespace headgate::testing
