#include "headgate/testing/scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace headgate::testing {
namespace scenario_test {

using algorithm::Algorithm;
using algorithm::Align;
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Scenario Parsed(std::string_view text) {
  ParsedScenario parsed = ParseScenario("a.scenario", text);
  for (const ScenarioProblem& problem : parsed.problems)
    ADD_FAILURE() << Describe("a.scenario", problem);
  return std::move(parsed.scenario);
}

algorithm::LimitSpec ParsedLimit(std::string_view words) {
  const Scenario scenario = Parsed("rule r = " + std::string(words));
  return scenario.rules.empty() ? algorithm::LimitSpec{} : scenario.rules[0].limits.at(0).spec();
}

Ask ParsedAsk(std::string_view words) {
  const Scenario scenario = Parsed("rule r = 1 per 1s\nat 0s r:k " + std::string(words));
  return scenario.steps.empty() ? Ask{} : std::get<Ask>(scenario.steps[0].action);
}

// "line:column: message" of each problem.
std::vector<std::string> Problems(std::string_view text) {
  std::vector<std::string> problems;
  for (const ScenarioProblem& p : ParseScenario("", text).problems) {
    EXPECT_THAT(p.hint, ::testing::Not(IsEmpty()));
    problems.push_back(std::to_string(p.line) + ":" + std::to_string(p.column) + ": " + p.message);
  }
  return problems;
}

// The problem of a line that follows a valid rule r.
std::string ProblemOf(std::string_view line) {
  const auto problems = Problems("rule r = 1 per 1s\n" + std::string(line));
  return problems.size() == 1 ? problems[0] : std::to_string(problems.size()) + " problems";
}

TEST(Scenario, IsRulesAndStepsInTheOrderOfTheFile) {
  const Scenario scenario = Parsed(
      "# A burst of five.\n"
      "\n"
      "rule login = 1 per 10s burst 5   # kept short\n"
      "at 9.9s login:ann x5 cost 2 deny remaining 0 retry 100ms reset 50s wait 0s\n"
      "at 10s rule login = 2 per 10s\r\n"
      "at 10s login:bob refund 3\n"
      "\tat 1790000000s7ns login:bob reset");
  EXPECT_EQ(scenario.path, "a.scenario");
  ASSERT_THAT(scenario.rules, SizeIs(1));
  EXPECT_EQ(scenario.rules[0].name, "login");
  EXPECT_EQ(scenario.rules[0].limits.at(0).spec(),
            (algorithm::LimitSpec{.requests = 1, .period = 10s, .burst = 5}));
  ASSERT_THAT(scenario.steps, SizeIs(4));

  EXPECT_EQ(scenario.steps[0].line, 4u);
  EXPECT_EQ(scenario.steps[0].at, base::Instant::FromNanos(9'900'000'000));
  const auto& request = std::get<Ask>(scenario.steps[0].action);
  EXPECT_EQ(request.operation, Ask::Operation::kRequest);
  EXPECT_EQ(request.rule, "login");
  EXPECT_EQ(request.key, "ann");
  EXPECT_EQ(request.repeat, 5u);
  EXPECT_EQ(request.cost, 2u);
  EXPECT_FALSE(request.expected.allowed);
  EXPECT_EQ(request.expected.remaining, 0u);
  EXPECT_EQ(request.expected.retry_after, 100ms);
  EXPECT_EQ(request.expected.reset_after, 50s);
  EXPECT_EQ(request.expected.wait, 0s);

  EXPECT_EQ(std::get<ScenarioRule>(scenario.steps[1].action).limits.at(0).spec().requests, 2u);
  const auto& refund = std::get<Ask>(scenario.steps[2].action);
  EXPECT_EQ(refund.operation, Ask::Operation::kRefund);
  EXPECT_EQ(refund.cost, 3u);
  EXPECT_EQ(std::get<Ask>(scenario.steps[3].action).operation, Ask::Operation::kReset);
  EXPECT_EQ(scenario.steps[3].at, base::Instant::FromNanos(1'790'000'000'000'000'007));
}

TEST(Scenario, ARequestThatNamesNothingElseCostsOneAndIsMadeOnce) {
  const Ask ask = ParsedAsk("allow");
  EXPECT_EQ(ask.cost, 1u);
  EXPECT_EQ(ask.repeat, 1u);
  EXPECT_TRUE(ask.expected.allowed);
  EXPECT_EQ(ask.expected.remaining, std::nullopt);
  EXPECT_EQ(ask.expected.retry_after, std::nullopt);
  EXPECT_EQ(ask.expected.reset_after, std::nullopt);
  EXPECT_EQ(ask.expected.wait, std::nullopt);
}

TEST(Scenario, RetryMayBeNever) {
  EXPECT_EQ(ParsedAsk("deny retry never").expected.retry_after, algorithm::kNever);
}

TEST(Scenario, TheWordsOfALimitStandInAnyOrder) {
  const algorithm::LimitSpec expected{
      .algorithm = Algorithm::kLeakyBucketQueue, .requests = 3, .period = 90s, .burst = 0};
  EXPECT_EQ(ParsedLimit("3 per 1.5m algorithm leaky_bucket burst 0 queue"), expected);
  EXPECT_EQ(ParsedLimit("queue burst 0 algorithm leaky_bucket 3 per 1m30s"), expected);
  EXPECT_EQ(ParsedLimit("burst 0 queue 3 per 90s"), expected);
}

TEST(Scenario, ARuleMayHaveSeveralLimits) {
  const Scenario scenario =
      Parsed("rule r = 1 per 10s burst 5 and algorithm fixed_window 20 per 1h count_denied");
  ASSERT_THAT(scenario.rules, SizeIs(1));
  ASSERT_THAT(scenario.rules[0].limits, SizeIs(2));
  EXPECT_EQ(scenario.rules[0].limits[0].spec(),
            (algorithm::LimitSpec{.requests = 1, .period = 10s, .burst = 5}));
  EXPECT_EQ(scenario.rules[0].limits[1].spec(),
            (algorithm::LimitSpec{.algorithm = Algorithm::kFixedWindow,
                                  .requests = 20,
                                  .period = 1h,
                                  .count_denied = true}));
}

TEST(Scenario, EveryAlgorithmHasItsWords) {
  EXPECT_EQ(ParsedLimit("1 per 1s").algorithm, Algorithm::kTokenBucket);
  EXPECT_EQ(ParsedLimit("1 per 1s algorithm token_bucket").algorithm, Algorithm::kTokenBucket);
  EXPECT_EQ(ParsedLimit("1 per 1s algorithm gcra").algorithm, Algorithm::kTokenBucket);
  EXPECT_EQ(ParsedLimit("1 per 1s algorithm leaky_bucket").algorithm, Algorithm::kLeakyBucket);
  EXPECT_EQ(ParsedLimit("1 per 1s algorithm leaky_bucket queue").algorithm,
            Algorithm::kLeakyBucketQueue);
  EXPECT_EQ(ParsedLimit("1 per 1s algorithm fixed_window").algorithm, Algorithm::kFixedWindow);
  EXPECT_EQ(ParsedLimit("1 per 1s algorithm fixed_window align epoch").align, Align::kEpoch);
  EXPECT_EQ(ParsedLimit("1 per 1s algorithm fixed_window align first_hit").align, Align::kFirstHit);
  EXPECT_EQ(ParsedLimit("1 per month algorithm fixed_window").align, Align::kCalendarMonth);
  EXPECT_EQ(ParsedLimit("1 per year algorithm fixed_window").align, Align::kCalendarYear);
  EXPECT_TRUE(ParsedLimit("1 per 1s algorithm fixed_window count_denied").count_denied);
  EXPECT_EQ(ParsedLimit("1 per 1s algorithm sliding_window_counter").algorithm,
            Algorithm::kSlidingWindowCounter);
  EXPECT_EQ(ParsedLimit("1 per 1s algorithm sliding_window_log").algorithm,
            Algorithm::kSlidingWindowLog);
  EXPECT_EQ(ParsedLimit("0 per 1s").requests, 0u);
}

TEST(Scenario, APeriodMayBeAUnitAsInRuleFiles) {
  EXPECT_EQ(ParsedLimit("1 per minute").period, 60s);
  EXPECT_EQ(ParsedLimit("1 per month").period, 24h * 30)
      << "only a fixed window ends with the calendar's month";
}

TEST(Scenario, AKeyIsWhateverFollowsTheFirstColon) {
  const Scenario scenario =
      Parsed("rule r = 1 per 1s\nat 0s r:a:b#c=\xff\x01 allow # r:x\nat 0s r:: allow");
  ASSERT_THAT(scenario.steps, SizeIs(2));
  EXPECT_EQ(std::get<Ask>(scenario.steps[0].action).key, "a:b#c=\xff\x01");
  EXPECT_EQ(std::get<Ask>(scenario.steps[1].action).key, ":");
}

TEST(Scenario, ARuleMayHaveTheNameOfAWord) {
  const Scenario scenario =
      Parsed("rule rule = 1 per 1s\nat 0s rule:at allow\nat 1s rule rule = 2 per 1s");
  EXPECT_EQ(std::get<Ask>(scenario.steps[0].action).rule, "rule");
  EXPECT_EQ(std::get<ScenarioRule>(scenario.steps[1].action).name, "rule");
}

TEST(Scenario, TimeMayGoBackwards) {
  const Scenario scenario = Parsed("rule r = 1 per 1s\nat 5s r:k allow\nat 4s r:k deny");
  EXPECT_EQ(scenario.steps[1].at, base::Instant::FromNanos(4'000'000'000));
}

TEST(Scenario, NothingIsAScenarioToo) { EXPECT_THAT(Parsed("").steps, IsEmpty()); }

TEST(ScenarioProblems, AreAllReportedWithTheirPlace) {
  EXPECT_THAT(
      Problems("rules r = 1 per 1s\n"
               "rule r = 1 per 1s\n"
               "at 0s r:k allow remaining\n"
               "\n"
               "at 0s s:k allow"),
      ElementsAre("1:1: expected \"rule\" or \"at\", got \"rules\"",
                  "3:26: expected a whole number of requests remaining, but the line ends here",
                  "5:7: no line above says what rule \"s\" is"));
}

TEST(ScenarioProblems, AreDescribedWithAHint) {
  const auto problems = ParseScenario("dir/a.scenario", "at 0s r:k allow").problems;
  ASSERT_THAT(problems, SizeIs(1));
  EXPECT_EQ(
      Describe("dir/a.scenario", problems[0]),
      "dir/a.scenario:1:7: no line above says what rule \"r\" is\n  hint: rule r = N per DURATION");
}

TEST(ScenarioProblems, OneMistakeIsOneProblem) {
  EXPECT_THAT(Problems("rule r = 1 per fortnight\nat 0s r:k allow\nat 1s rule r = 2 per 1s"),
              SizeIs(1));
}

TEST(ScenarioProblems, RulesAreReported) {
  EXPECT_EQ(ProblemOf("rule r = 1 per 1s"), "2:6: there is a rule \"r\" already");
  EXPECT_EQ(ProblemOf("rule"),
            "2:5: expected a rule's name, without : and = in it, but the line ends here");
  EXPECT_EQ(ProblemOf("rule a:b = 1 per 1s"),
            "2:6: expected a rule's name, without : and = in it, got \"a:b\"");
  EXPECT_EQ(ProblemOf("rule s"), "2:7: expected \"=\", but the line ends here");
  EXPECT_EQ(ProblemOf("rule s 1 per 1s"), "2:8: expected \"=\", got \"1\"");
  EXPECT_EQ(ProblemOf("rule s ="),
            "2:9: expected how many requests per which period, but the line ends here");
  EXPECT_EQ(ProblemOf("rule s = burst 5"),
            "2:17: expected how many requests per which period, but the line ends here");
  EXPECT_EQ(ProblemOf("rule s = 1"), "2:11: expected \"per\", but the line ends here");
  EXPECT_EQ(ProblemOf("rule s = 1/1s"), "2:10: expected a word of a rule, got \"1/1s\"");
  EXPECT_EQ(ProblemOf("rule s = -1 per 1s"), "2:10: expected a word of a rule, got \"-1\"");
  EXPECT_EQ(ProblemOf("rule s = 99999999999999999999 per 1s"),
            "2:10: expected a word of a rule, got \"99999999999999999999\"");
  EXPECT_EQ(ProblemOf("rule s = 1 per"), "2:15: expected a period, but the line ends here");
  EXPECT_THAT(ProblemOf("rule s = 1 per 10"), HasSubstr("2:16: "));
  EXPECT_EQ(ProblemOf("rule s = 1 per 1s 2 per 1s"), "2:19: the rule says \"per\" twice");
  EXPECT_EQ(ProblemOf("rule s = 1 per 1s queue queue"), "2:25: the rule says \"queue\" twice");
  EXPECT_EQ(ProblemOf("rule s = 1 per 1s burst many"),
            "2:25: expected a whole number for the burst, got \"many\"");
  EXPECT_EQ(ProblemOf("rule s = 1 per 1s algorithm sieve"),
            "2:29: expected an algorithm, got \"sieve\"");
  EXPECT_EQ(ProblemOf("rule s = 1 per 1s align left"),
            "2:25: expected first_hit or epoch, got \"left\"");
  EXPECT_EQ(ProblemOf("rule s = 1 per 1s and"),
            "2:22: expected how many requests per which period, but the line ends here");
  std::string many = "rule s = 1 per 1s";
  for (int i = 0; i < 16; ++i) many += " and 1 per 1s";
  EXPECT_THAT(ProblemOf(many), HasSubstr(": a rule has at most 16 limits"));
  EXPECT_EQ(ProblemOf("rule s = 1 per 1s fast"), "2:19: expected a word of a rule, got \"fast\"");
  EXPECT_EQ(ProblemOf("rule s = 1 per 1s algorithm fixed_window queue"),
            "2:10: queue belongs to leaky_bucket, not fixed_window");
  EXPECT_EQ(ProblemOf("at 0s rule s = 1 per 1s"), "2:12: no line above says what rule \"s\" is");
}

TEST(ScenarioProblems, AnInvalidLimitIsReportedWithTheLimitsOwnMessage) {
  EXPECT_THAT(ProblemOf("rule s = 1 per 0s"), HasSubstr("2:10: the period must be longer than 0"));
  EXPECT_THAT(ProblemOf("rule s = 1 per 1s burst 0"), HasSubstr("2:10: burst must be 1 or more"));
  EXPECT_THAT(ProblemOf("rule s = 1 per 1s align first_hit"),
              HasSubstr("only fixed_window can be aligned"));
  EXPECT_THAT(ProblemOf("rule s = 1 per 1s burst 2 algorithm sliding_window_log"),
              HasSubstr("burst has no meaning"));
}

TEST(ScenarioProblems, StepsAreReported) {
  EXPECT_EQ(ProblemOf("at"), "2:3: expected a time, but the line ends here");
  EXPECT_THAT(ProblemOf("at noon r:k allow"), HasSubstr("2:4: a time: "));
  EXPECT_THAT(ProblemOf("at -1s r:k allow"), HasSubstr("2:4: a time: "));
  EXPECT_EQ(ProblemOf("at 0s"), "2:6: expected \"rule\" or NAME:KEY, but the line ends here");
  EXPECT_EQ(ProblemOf("at 0s r allow"), "2:7: expected \"rule\" or NAME:KEY, got \"r\"");
  EXPECT_EQ(ProblemOf("at 0s r: allow"), "2:7: expected \"rule\" or NAME:KEY, got \"r:\"");
  EXPECT_EQ(ProblemOf("at 0s :k allow"), "2:7: expected \"rule\" or NAME:KEY, got \":k\"");
  EXPECT_EQ(ProblemOf("at 0s r:k"), "2:10: expected allow or deny, but the line ends here");
  EXPECT_EQ(ProblemOf("at 0s r:k # allow"), "2:18: expected allow or deny, but the line ends here");
  EXPECT_EQ(ProblemOf("at 0s r:k pass"),
            "2:11: expected allow or deny, after any xN and cost, got \"pass\"");
  EXPECT_EQ(ProblemOf("at 0s r:k x2 x2 allow"),
            "2:14: expected allow or deny, after any xN and cost, got \"x2\"");
  EXPECT_EQ(ProblemOf("at 0s r:k x allow"),
            "2:11: expected allow or deny, after any xN and cost, got \"x\"");
  EXPECT_EQ(ProblemOf("at 0s r:k x0 allow"), "2:11: a line repeats its request 1 to 1000000 times");
  EXPECT_EQ(ProblemOf("at 0s r:k x1000001 allow"),
            "2:11: a line repeats its request 1 to 1000000 times");
  EXPECT_EQ(ProblemOf("at 0s r:k cost allow"),
            "2:16: expected a whole number for the cost, got \"allow\"");
  EXPECT_EQ(ProblemOf("at 0s r:k cost 4611686018427387905 allow"),
            "2:16: a cost is at most 4611686018427387904");
  EXPECT_EQ(ProblemOf("at 0s r:k allow deny"),
            "2:17: expected remaining, retry, reset or wait, got \"deny\"");
  EXPECT_EQ(ProblemOf("at 0s r:k allow remaining 1 remaining 1"),
            "2:29: the line says \"remaining\" twice");
  EXPECT_EQ(ProblemOf("at 0s r:k deny retry"),
            "2:21: expected when to retry, but the line ends here");
  EXPECT_THAT(ProblemOf("at 0s r:k deny reset never"),
              HasSubstr("2:22: when the bucket is full again: "));
  EXPECT_EQ(ProblemOf("at 0s r:k refund"),
            "2:17: expected a whole number for the cost, but the line ends here");
  EXPECT_EQ(ProblemOf("at 0s r:k refund 1 allow"),
            "2:20: expected the end of the line, got \"allow\"");
  EXPECT_EQ(ProblemOf("at 0s r:k reset 50s"), "2:17: expected the end of the line, got \"50s\"");
}

TEST(ScenarioProblems, ScenariosBeyondTheBoundsAreReported) {
  EXPECT_THAT(Problems(std::string(kScenarioBytesMax + 1, '\n')),
              ElementsAre("1:1: a scenario has at most 1048576 bytes"));
  std::string text = "rule r = 1 per 1s\n";
  for (int i = 0; i < 11; ++i) text += "at 0s r:k x1000000 allow\n";
  EXPECT_THAT(Problems(text),
              ElementsAre("12:7: a scenario makes at most 10000000 requests in all"));
  text.clear();
  for (int i = 0; i < 1000; ++i) text += "what\n";
  EXPECT_THAT(Problems(text), SizeIs(kScenarioProblemsMax));
}

}  // namespace scenario_test
}  // namespace headgate::testing
