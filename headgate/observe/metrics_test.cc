#include "headgate/observe/metrics.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <thread>

namespace headgate::observe {
namespace metrics_test {

using limiter::Outcome;
using ::testing::HasSubstr;
using ::testing::Not;

rule::Rule MakeRule(std::string path) {
  rule::Rule rule;
  rule.domain = "edge";
  rule.path = std::move(path);
  return rule;
}

void Decide(Metrics& metrics, const rule::Rule* rule, Outcome outcome, uint32_t worker = 0,
            std::string_view domain = "edge") {
  rule::Match match;
  match.rule = rule;
  metrics.OnDecision(worker, {.outcome = outcome,
                              .cost = 1,
                              .rule = rule,
                              .series = rule != nullptr ? metrics.OnRule(*rule) : 0,
                              .domain = domain,
                              .entries = {},
                              .match = &match});
}

// The value on the line of this series, or empty.
std::optional<std::string> ValueOf(const std::string& text, std::string_view series) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(series) && line.size() > series.size() && line[series.size()] == ' ') {
      return line.substr(series.size() + 1);
    }
  }
  return std::nullopt;
}

TEST(Metrics, CountsWhatARuleAndItsRolloutInShadowWouldDo) {
  Metrics metrics({});
  const rule::Rule rule = MakeRule("api_key");
  const uint32_t series = metrics.OnRollout(rule);
  EXPECT_EQ(metrics.OnRollout(rule), series);
  for (int i = 0; i < 3; ++i)
    metrics.OnShadowRollout(0, {.series = series, .rule_allows = true, .rollout_allows = false});
  metrics.OnShadowRollout(0, {.series = series, .rule_allows = false, .rollout_allows = false});
  const std::string text = metrics.Render();
  const std::string begin = R"(headgate_rollout_decisions_total{domain="edge",rule="api_key",)";
  EXPECT_EQ(ValueOf(text, begin + R"(current="allowed",rollout="denied"})"), "3");
  EXPECT_EQ(ValueOf(text, begin + R"(current="denied",rollout="denied"})"), "1");
  EXPECT_THAT(text, Not(HasSubstr(R"(current="allowed",rollout="allowed"})")));
}

TEST(Metrics, CountsFurtherRolloutsTogether) {
  Metrics metrics({});
  for (uint32_t i = 0; i < Metrics::kRolloutsMax; ++i)
    EXPECT_NE(metrics.OnRollout(MakeRule(fmt::format("rule{}", i))), 0u);
  EXPECT_EQ(metrics.OnRollout(MakeRule("one more")), 0u);
}

TEST(Metrics, CountsPermitsAndShowsThoseThatAreHeld) {
  using Kind = limiter::PermitEvent::Kind;
  Metrics metrics({.workers = 2});
  const uint32_t series = metrics.OnConcurrency(MakeRule("api_key"));
  EXPECT_EQ(metrics.OnConcurrency(MakeRule("api_key")), series);
  const auto count = [&](uint32_t worker, Kind kind, uint32_t times = 1) {
    metrics.OnPermits(worker, {.series = series, .kind = kind, .count = times});
  };
  for (int i = 0; i < 5; ++i) count(i % 2 == 0 ? 0 : 1, Kind::kTaken);
  count(0, Kind::kGivenBack);
  count(1, Kind::kEnded);
  count(1, Kind::kExpired, 7);
  count(1, Kind::kAcquired);
  const std::string text = metrics.Render();
  const std::string begin = R"(headgate_permits_total{domain="edge",rule="api_key",event=)";
  EXPECT_EQ(ValueOf(text, begin + R"("taken"})"), "5");
  EXPECT_EQ(ValueOf(text, begin + R"("given_back"})"), "1");
  EXPECT_EQ(ValueOf(text, begin + R"("ended"})"), "1");
  EXPECT_EQ(ValueOf(text, begin + R"("expired"})"), "7");
  EXPECT_EQ(ValueOf(text, begin + R"("acquired"})"), "1");
  EXPECT_THAT(text, Not(HasSubstr(begin + R"("released"})")));
  EXPECT_EQ(ValueOf(text, R"(headgate_permits_held{domain="edge",rule="api_key"})"), "3");
}

TEST(Metrics, CountsDecisionsByDomainRuleAndOutcome) {
  Metrics metrics({});
  const rule::Rule rule = MakeRule("api_key");
  for (int i = 0; i < 10; ++i) Decide(metrics, &rule, Outcome::kAllowed);
  for (int i = 0; i < 3; ++i) Decide(metrics, &rule, Outcome::kDenied);
  const std::string text = metrics.Render();
  EXPECT_EQ(
      ValueOf(text, R"(headgate_decisions_total{domain="edge",rule="api_key",outcome="allowed"})"),
      "10");
  EXPECT_EQ(
      ValueOf(text, R"(headgate_decisions_total{domain="edge",rule="api_key",outcome="denied"})"),
      "3");
  EXPECT_THAT(text, HasSubstr("# TYPE headgate_decisions_total counter\n"));
  EXPECT_THAT(text, HasSubstr("# HELP headgate_decisions_total " +
                              std::string(SpecOf(Metric::kDecisions).help) + "\n"));
}

TEST(Metrics, ARulesNameStandsForItsPath) {
  Metrics metrics({});
  rule::Rule rule = MakeRule("api_key");
  rule.name = "gold customers";
  Decide(metrics, &rule, Outcome::kAllowed);
  EXPECT_EQ(
      ValueOf(metrics.Render(),
              R"(headgate_decisions_total{domain="edge",rule="gold customers",outcome="allowed"})"),
      "1");
}

TEST(Metrics, WithoutARuleTheDomainCountsAndAnUnknownDomainIsOther) {
  Metrics metrics({});
  const rule::Rule rule = MakeRule("api_key");
  metrics.OnRule(rule);
  Decide(metrics, nullptr, Outcome::kNoRule);
  Decide(metrics, nullptr, Outcome::kNoRule, 0, "aimed at your memory");
  const std::string text = metrics.Render();
  EXPECT_EQ(ValueOf(text, R"(headgate_decisions_total{domain="edge",rule="",outcome="no_rule"})"),
            "1");
  EXPECT_EQ(
      ValueOf(text, R"(headgate_decisions_total{domain="other",rule="other",outcome="no_rule"})"),
      "1");
  EXPECT_THAT(text, Not(HasSubstr("aimed")));
  EXPECT_EQ(ValueOf(text, "headgate_series_dropped_total"), "0");
}

TEST(Metrics, ALimitOfTheRequestsOwnCountsInItsDomainWithoutARuleByItsOutcome) {
  Metrics metrics({});
  metrics.OnRule(MakeRule("api_key"));
  Decide(metrics, nullptr, Outcome::kAllowed);
  Decide(metrics, nullptr, Outcome::kDenied);
  const std::string text = metrics.Render();
  EXPECT_EQ(ValueOf(text, R"(headgate_decisions_total{domain="edge",rule="",outcome="allowed"})"),
            "1");
  EXPECT_EQ(ValueOf(text, R"(headgate_decisions_total{domain="edge",rule="",outcome="denied"})"),
            "1");
  EXPECT_EQ(ValueOf(text, R"(headgate_decisions_total{domain="edge",rule="",outcome="no_rule"})"),
            std::nullopt);
}

TEST(Metrics, LabelsBeyondTheCapBecomeOtherAndAreCounted) {
  Metrics metrics({});
  for (uint32_t i = 0; i < SeriesTable::kSeriesMax + 5; ++i) {
    const rule::Rule rule = MakeRule(fmt::format("rule{}", i));
    Decide(metrics, &rule, Outcome::kAllowed);
  }
  const std::string text = metrics.Render();
  EXPECT_EQ(
      ValueOf(text, R"(headgate_decisions_total{domain="other",rule="other",outcome="allowed"})"),
      "5");
  EXPECT_EQ(ValueOf(text, "headgate_series_dropped_total"), "5");
  EXPECT_EQ(ValueOf(text, "headgate_series"), "2000");
}

TEST(Metrics, AClientsValuesBeyondTheirShareCountUnderTheirRule) {
  Metrics metrics({});
  rule::Rule rule = MakeRule("api_key");
  rule.detailed_metric = true;
  const uint32_t series = metrics.OnRule(rule);
  rule::Match match;
  match.rule = &rule;
  match.step_count = 1;
  for (uint32_t i = 0; i < SeriesTable::kDetailRowsMax + 3; ++i) {
    const std::string value = fmt::format("k{}", i);
    const rule::Entry entry{"api_key", value};
    metrics.OnDecision(0, {Outcome::kAllowed, 1, &rule, series, "edge", {&entry, 1}, &match});
  }
  const std::string text = metrics.Render();
  EXPECT_EQ(
      ValueOf(text,
              R"(headgate_decisions_total{domain="edge",rule="api_key_k0",outcome="allowed"})"),
      "1");
  EXPECT_EQ(
      ValueOf(text, R"(headgate_decisions_total{domain="edge",rule="api_key",outcome="allowed"})"),
      "3");
  EXPECT_EQ(ValueOf(text, "headgate_series_dropped_total"), "3");
}

TEST(Metrics, QuotesWhatARuleIsCalled) {
  Metrics metrics({});
  rule::Rule rule = MakeRule("say \"hi\"\\\n");
  Decide(metrics, &rule, Outcome::kAllowed);
  // Control characters are written as \x0a; quotes and backslashes follow the Prometheus format.
  EXPECT_THAT(metrics.Render(), HasSubstr(R"(rule="say \"hi\"\\\\x0a")"));
}

TEST(Metrics, SumsTheWorkersExactly) {
  constexpr uint32_t kWorkers = 4, kEach = 100'000;
  Metrics metrics({.workers = kWorkers});
  const auto front = metrics.AddFront("resp");
  const rule::Rule rule = MakeRule("api_key");
  const uint32_t series = metrics.OnRule(rule);
  rule::Match match;
  match.rule = &rule;
  std::vector<std::thread> threads;
  for (uint32_t worker = 0; worker < kWorkers; ++worker) {
    threads.emplace_back([&, worker] {
      for (uint32_t i = 0; i < kEach; ++i) {
        metrics.OnDecision(worker, {i % 2 == 0 ? Outcome::kAllowed : Outcome::kDenied,
                                    1,
                                    &rule,
                                    series,
                                    "edge",
                                    {},
                                    &match});
        metrics.OnBatch(worker, front, 1, base::Duration(150));
      }
    });
  }
  // Counters never decrease while threads are counting.
  double last = 0;
  for (int i = 0; i < 20; ++i) {
    const double value =
        std::stod(ValueOf(metrics.Render(), R"(headgate_requests_total{front="resp"})").value());
    EXPECT_GE(value, last);
    last = value;
  }
  for (std::thread& thread : threads) thread.join();
  const std::string text = metrics.Render();
  EXPECT_EQ(
      ValueOf(text, R"(headgate_decisions_total{domain="edge",rule="api_key",outcome="allowed"})"),
      "200000");
  EXPECT_EQ(
      ValueOf(text, R"(headgate_decisions_total{domain="edge",rule="api_key",outcome="denied"})"),
      "200000");
  EXPECT_EQ(ValueOf(text, R"(headgate_requests_total{front="resp"})"), "400000");
  EXPECT_EQ(ValueOf(text, R"(headgate_batch_seconds_bucket{front="resp",le="2e-07"})"), "400000");
}

TEST(Metrics, BatchesFallIntoBucketsWhoseBoundsAreInclusive) {
  Metrics metrics({});
  const auto front = metrics.AddFront("http");
  for (const int64_t ns : {99, 100, 101, 100'000'000, 100'000'001}) {
    metrics.OnBatch(0, front, 32, base::Duration(ns));
  }
  metrics.OnBatch(0, front, 1, base::Duration(-5));  // a clock that went backwards
  metrics.OnProtocolError(0, front);
  const std::string text = metrics.Render();
  EXPECT_EQ(ValueOf(text, R"(headgate_batch_seconds_bucket{front="http",le="1e-07"})"), "3");
  EXPECT_EQ(ValueOf(text, R"(headgate_batch_seconds_bucket{front="http",le="2e-07"})"), "4");
  EXPECT_EQ(ValueOf(text, R"(headgate_batch_seconds_bucket{front="http",le="0.05"})"), "4");
  EXPECT_EQ(ValueOf(text, R"(headgate_batch_seconds_bucket{front="http",le="0.1"})"), "5");
  EXPECT_EQ(ValueOf(text, R"(headgate_batch_seconds_bucket{front="http",le="+Inf"})"), "6");
  EXPECT_EQ(ValueOf(text, R"(headgate_batch_seconds_count{front="http"})"), "6");
  EXPECT_EQ(ValueOf(text, R"(headgate_batch_seconds_sum{front="http"})"), "0.200000301");
  EXPECT_EQ(ValueOf(text, R"(headgate_requests_total{front="http"})"), "161");
  EXPECT_EQ(ValueOf(text, R"(headgate_protocol_errors_total{front="http"})"), "1");
}

TEST(Metrics, WaitsHaveBoundsOfTheirOwn) {
  Metrics metrics({});
  const auto front = metrics.AddFront("http");
  for (const int64_t ns : {50'000, 50'001, 1'000'000'000, 1'000'000'001}) {
    metrics.OnWait(0, front, base::Duration(ns));
  }
  const std::string text = metrics.Render();
  EXPECT_EQ(ValueOf(text, R"(headgate_wait_seconds_bucket{front="http",le="5e-05"})"), "1");
  EXPECT_EQ(ValueOf(text, R"(headgate_wait_seconds_bucket{front="http",le="0.0001"})"), "2");
  EXPECT_EQ(ValueOf(text, R"(headgate_wait_seconds_bucket{front="http",le="1"})"), "3");
  EXPECT_EQ(ValueOf(text, R"(headgate_wait_seconds_count{front="http"})"), "4");
  EXPECT_EQ(ValueOf(text, R"(headgate_wait_seconds_sum{front="http"})"), "2.000100002");
  EXPECT_EQ(ValueOf(text, R"(headgate_batch_seconds_count{front="http"})"), "0");
}

TEST(Metrics, CollectorsSayWhatHistogramsOfOthersHold) {
  Metrics metrics({});
  const std::array<uint64_t, 2> bounds = {1'000'000, 2'500'000};
  const std::array<uint64_t, 3> counts = {3, 0, 1};
  metrics.AddCollector([&](Sink& sink) {
    sink.Set(Metric::kStoreCallSeconds, {}, {.bounds = bounds, .counts = counts, .sum = 5'000'000});
    sink.Set(Metric::kStoreBatchCalls, {}, {.bounds = bounds, .counts = counts, .sum = 7});
  });
  const std::string text = metrics.Render();
  EXPECT_EQ(ValueOf(text, R"(headgate_store_call_seconds_bucket{le="0.001"})"), "3");
  EXPECT_EQ(ValueOf(text, R"(headgate_store_call_seconds_bucket{le="0.0025"})"), "3");
  EXPECT_EQ(ValueOf(text, R"(headgate_store_call_seconds_bucket{le="+Inf"})"), "4");
  EXPECT_EQ(ValueOf(text, "headgate_store_call_seconds_sum"), "0.005");
  EXPECT_EQ(ValueOf(text, "headgate_store_call_seconds_count"), "4");
  EXPECT_EQ(ValueOf(text, R"(headgate_store_batch_calls_bucket{le="2500000"})"), "3");
  EXPECT_EQ(ValueOf(text, "headgate_store_batch_calls_sum"), "7");
}

TEST(Metrics, CollectorsSayWhatOthersCount) {
  Metrics metrics({});
  uint64_t buckets = 7;
  metrics.AddCollector([&](Sink& sink) {
    sink.Set(Metric::kBuckets, {}, buckets);
    sink.Set(Metric::kConnectionsRefused, {"total_limit"}, 2);
    sink.Set(Metric::kConnectionsRefused, {"address_limit"}, 3);
    sink.Set(Metric::kRulesAge, {}, std::chrono::milliseconds(1'500));
    sink.Set(Metric::kClockAhead, {}, -std::chrono::seconds(2));
  });
  metrics.AddCollector(
      [](Sink& sink) { sink.Set(Metric::kConnectionsRefused, {"total_limit"}, 4); });
  EXPECT_EQ(ValueOf(metrics.Render(), "headgate_buckets"), "7");
  buckets = 9'007'199'254'740'991;  // 2^53 − 1: the largest that survives a double
  const std::string text = metrics.Render();
  EXPECT_EQ(ValueOf(text, "headgate_buckets"), "9007199254740991");
  EXPECT_EQ(ValueOf(text, R"(headgate_connections_refused_total{reason="total_limit"})"), "4")
      << "set again: replaced";
  EXPECT_EQ(ValueOf(text, R"(headgate_connections_refused_total{reason="address_limit"})"), "3");
  EXPECT_EQ(ValueOf(text, "headgate_rules_age_seconds"), "1.5");
  EXPECT_EQ(ValueOf(text, "headgate_clock_ahead_seconds"), "-2");
}

TEST(Metrics, FamiliesComeInTheCataloguesOrderAndOnlyOnce) {
  Metrics metrics({});
  metrics.AddCollector([](Sink& sink) {
    sink.Set(Metric::kUptime, {}, std::chrono::seconds(1));
    sink.Set(Metric::kBuckets, {}, 1);
  });
  std::vector<std::string> names;
  std::istringstream lines(metrics.Render());
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# TYPE ")) names.push_back(line.substr(7, line.find(' ', 7) - 7));
  }
  EXPECT_THAT(names, ::testing::ElementsAre("headgate_series", "headgate_series_dropped_total",
                                            "headgate_buckets", "headgate_uptime_seconds"));
}

using MetricsDeathTest = ::testing::Test;
TEST(MetricsDeathTest, ACollectorCannotInventLabels) {
  Metrics metrics({});
  metrics.AddCollector([](Sink& sink) { sink.Set(Metric::kBuckets, {"k1"}, 1); });
  EXPECT_DEATH(metrics.Render(), "label_count");
}

}  // namespace metrics_test
}  // namespace headgate::observe
