#include "headgate/observe/metric_families.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "headgate/observe/metrics.h"

namespace headgate::observe {
namespace metric_families_test {

using namespace std::chrono_literals;
using nlohmann::json;
using ::testing::HasSubstr;

// The series of a metric; null if the metric is not there.
json SeriesOf(const MetricFamilies& families, Metric metric) {
  const json document = json::parse(families.Json());
  for (const json& one : document["metrics"])
    if (one["name"] == SpecOf(metric).name) return one["series"];
  return nullptr;
}

TEST(MetricFamilies, HasACounterInBothForms) {
  MetricFamilies families;
  families.Set(Metric::kRequests, {"http"}, uint64_t{1} << 60);
  families.Set(Metric::kRequests, {"resp"}, 2);
  families.Set(Metric::kRequests, {"resp"}, 3);
  EXPECT_EQ(SeriesOf(families, Metric::kRequests),
            json::parse(R"([{"labels":{"front":"http"},"value":1152921504606846976},)"
                        R"({"labels":{"front":"resp"},"value":3}])"));
  EXPECT_THAT(families.Text(), HasSubstr("headgate_requests_total{front=\"resp\"} 3\n"));
}

TEST(MetricFamilies, DescribesEachMetricAsTheCatalogDoes) {
  MetricFamilies families;
  families.Set(Metric::kUptime, {}, -1500ms);
  const json document = json::parse(families.Json());
  const MetricSpec& spec = SpecOf(Metric::kUptime);
  EXPECT_EQ(document, json({{"metrics",
                             {{{"name", spec.name},
                               {"type", Name(spec.type)},
                               {"unit", "seconds"},
                               {"help", spec.help},
                               {"series", {{{"labels", json::object()}, {"value", -1.5}}}}}}}}));
}

TEST(MetricFamilies, HasNoMetricWithoutASeries) {
  const MetricFamilies families;
  EXPECT_EQ(json::parse(families.Json()), json::parse(R"({"metrics":[]})"));
  EXPECT_EQ(families.Text(), "");
}

TEST(MetricFamilies, HasAHistogramInSeconds) {
  MetricFamilies families;
  constexpr std::array<uint64_t, 2> kBounds = {1'000, 2'000'000};
  constexpr std::array<uint64_t, 3> kCounts = {1, 2, 4};
  families.Set(Metric::kBatchSeconds, {"http"},
               HistogramValue{.bounds = kBounds, .counts = kCounts, .sum = 500'000'000});
  EXPECT_EQ(SeriesOf(families, Metric::kBatchSeconds),
            json::parse(R"([{"labels":{"front":"http"},"count":7,"sum":0.5,)"
                        R"("buckets":[{"le":1e-6,"count":1},{"le":0.002,"count":3}]}])"));
  const std::string text = families.Text();
  EXPECT_THAT(text, HasSubstr("headgate_batch_seconds_count{front=\"http\"} 7\n"));
  EXPECT_THAT(text, HasSubstr("headgate_batch_seconds_bucket{front=\"http\",le=\"+Inf\"} 7\n"));
}

TEST(MetricFamilies, AnyBytesOfALabelAreValidJson) {
  MetricFamilies families;
  const std::string hostile("\"\\\0\n\x1b\x7f</script>\xc3\x28\xed\xa0\x80\xff", 21);
  families.Append(Metric::kDecisions, {"edge", hostile, "allowed"}, 1);
  const json series = SeriesOf(families, Metric::kDecisions);
  const std::string shown = series[0]["labels"]["rule"];
  EXPECT_THAT(shown, ::testing::StartsWith(std::string("\"\\\0\n\x1b\x7f</script>", 15)));
  EXPECT_THAT(shown, ::testing::EndsWith("\xef\xbf\xbd"));
}

TEST(Metrics, HasTheSameSeriesAsTextAndAsJson) {
  Metrics metrics({});
  metrics.AddFront("http");
  metrics.OnOwnLimits(0, limiter::Outcome::kDenied, 5);
  metrics.AddCollector([](Sink& sink) { sink.Set(Metric::kUptime, {}, 2s); });
  const std::string text = metrics.Render();
  EXPECT_THAT(text, HasSubstr("headgate_uptime_seconds 2\n"));
  const json document = json::parse(metrics.RenderJson());
  for (const json& metric : document["metrics"]) {
    EXPECT_THAT(text, HasSubstr("# HELP " + metric["name"].get<std::string>() + " "));
    if (metric["name"] == "headgate_decisions_total") {
      EXPECT_EQ(metric["series"][0]["value"], 5);
    }
  }
  EXPECT_GT(document["metrics"].size(), 4u);
}

}  // namespace metric_families_test
}  // namespace headgate::observe
