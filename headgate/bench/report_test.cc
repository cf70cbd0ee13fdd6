#include "headgate/bench/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace headgate::bench {
namespace report_test {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

Report Hundred() {
  Report report{.server = "127.0.0.1:8080",
                .rate_asked = 200,
                .connections = 3,
                .duration = 1s,
                .counts = {.asked = 200, .allowed = 90, .denied = 9}};
  report.counts.AddError("401", "this request needs the login of a user");
  for (int i = 1; i <= 100; ++i) report.latencies.Add(i * 1ms);
  return report;
}

TEST(Report, TextShowsAchievedAgainstAskedAndTheLatencies) {
  const std::string text = AsText(Hundred());
  EXPECT_THAT(text, HasSubstr("open loop of CL.THROTTLE over 127.0.0.1:8080, 3 connections\n"));
  EXPECT_THAT(text, HasSubstr("answered   100/s of 200/s asked (50.0 %)\n"));
  EXPECT_THAT(text, HasSubstr("allowed    90\ndenied     9\nerrors     1\n"
                              "      401    1\n"
                              "  the first error is 401: this request needs the login of a user\n"
                              "\n"));
  EXPECT_THAT(text, HasSubstr("       90 %  90."));
  EXPECT_THAT(text, HasSubstr("largest    100.00ms\n"));
  EXPECT_THAT(text, Not(HasSubstr("99.9 %"))) << "100 latencies do not tell it";
}

TEST(LoadCounts, CountErrorsByKindAndKeepTheFirst) {
  LoadCounts counts;
  counts.AddError("NOAUTH", "NOAUTH Authentication required.");
  counts.AddError("NOAUTH", "NOAUTH Authentication required.");
  EXPECT_EQ(counts.first_error, "NOAUTH Authentication required.");
  for (int kind = 100; kind < 200; ++kind) counts.AddError(std::to_string(kind), "no");
  EXPECT_EQ(counts.errors, 102u);
  EXPECT_EQ(counts.errors_by_kind["NOAUTH"], 2u);
  EXPECT_EQ(counts.errors_by_kind.size(), LoadCounts::kErrorKindsMax);
  EXPECT_EQ(counts.errors_by_kind["other"], 82u);
}

TEST(Report, JsonHasTheSameNumbers) {
  const auto json = nlohmann::json::parse(AsJson(Hundred()));
  EXPECT_EQ(json["loop"], "open");
  EXPECT_EQ(json["rate"], 100);
  EXPECT_EQ(json["rate_asked"], 200);
  EXPECT_NEAR(json["latency_ms"]["percentiles"]["50"], 50, 0.5);
  EXPECT_EQ(json["errors_by_kind"], nlohmann::json({{"401", 1}}));
  EXPECT_EQ(json["first_error"], "401: this request needs the login of a user");
  EXPECT_EQ(json["latency_ms"]["max"], 100);
  EXPECT_EQ(json["latency_ms"]["min"], 1);
}

TEST(Report, ThePlotHasALineForTheLatencies) {
  const std::string plot = AsPlot(Hundred());
  EXPECT_THAT(plot, ::testing::StartsWith("<svg "));
  EXPECT_THAT(plot, HasSubstr("<polyline"));
  EXPECT_THAT(plot, HasSubstr("100.00ms</text>"));
  EXPECT_THAT(plot, Not(HasSubstr("nan")));
  EXPECT_THAT(AsPlot(Report{}), Not(HasSubstr("nan"))) << "without any latency";
}

TEST(Report, ShowsLatenciesInUnitsThatPeopleRead) {
  EXPECT_EQ(ShowLatency(812us), "812us");
  EXPECT_EQ(ShowLatency(3410us), "3.41ms");
  EXPECT_EQ(ShowLatency(1200ms), "1.20s");
}

}  // namespace report_test
}  // namespace headgate::bench
