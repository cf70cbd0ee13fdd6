#include "headgate/observe/series.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
#include <thread>

namespace headgate::observe {
namespace series_test {

using limiter::Outcome;

DetailLabel One(std::string_view key, std::string_view value) {
  DetailLabel label;
  label.steps[0] = {key, value};
  label.step_count = 1;
  return label;
}

std::string LabelOf(const SeriesTable& table, SeriesTable::Counter counter) {
  for (const auto& series : table.List()) {
    if (series.counter == counter) return series.name.domain + "/" + series.name.rule;
  }
  return "none";
}

TEST(SeriesTable, ARuleHasOneRowHoweverOftenItIsLoaded) {
  SeriesTable table({});
  const uint32_t row = table.AddRule("edge", "api_key");
  EXPECT_EQ(table.AddRule("edge", "api_key"), row);
  EXPECT_NE(table.AddRule("edge", "path"), row);
  EXPECT_NE(table.AddRule("inner", "api_key"), row);
}

TEST(SeriesTable, DomainAndLabelDoNotRunTogether) {
  SeriesTable table({});
  EXPECT_NE(table.AddRule("a", "bc"), table.AddRule("ab", "c"));
}

TEST(SeriesTable, ASeriesExistsFromItsFirstDecisionOn) {
  SeriesTable table({});
  const uint32_t row = table.AddRule("edge", "api_key");
  EXPECT_EQ(table.series_count(), 0u);
  const auto allowed = table.CounterOf(row, Outcome::kAllowed);
  EXPECT_EQ(table.CounterOf(row, Outcome::kAllowed), allowed);
  EXPECT_NE(table.CounterOf(row, Outcome::kDenied), allowed);
  EXPECT_EQ(table.series_count(), 2u);
  EXPECT_EQ(LabelOf(table, allowed), "edge/api_key");
}

TEST(SeriesTable, BeyondTheCapEverythingIsOther) {
  SeriesTable table({});
  for (uint32_t i = 0; i < SeriesTable::kSeriesMax; ++i) {
    const uint32_t row = table.AddRule("edge", fmt::format("rule{}", i));
    ASSERT_FALSE(SeriesTable::IsOther(table.CounterOf(row, Outcome::kAllowed)));
  }
  const uint32_t late = table.AddRule("edge", "late");
  const auto counter = table.CounterOf(late, Outcome::kAllowed);
  EXPECT_TRUE(SeriesTable::IsOther(counter));
  EXPECT_EQ(LabelOf(table, counter), "other/other");
  EXPECT_NE(counter, table.CounterOf(late, Outcome::kDenied));
  EXPECT_EQ(table.series_count(), SeriesTable::kSeriesMax);
  EXPECT_EQ(table.List().size(), SeriesTable::kCounterCount);
}

TEST(SeriesTable, RulesWithoutTrafficTakeNoSeries) {
  SeriesTable table({});
  uint32_t last = 0;
  for (uint32_t i = 0; i < 100'000; ++i) last = table.AddRule("edge", fmt::format("rule{}", i));
  EXPECT_FALSE(SeriesTable::IsOther(table.CounterOf(last, Outcome::kAllowed)));
}

TEST(SeriesTable, LabelsBeyondAllBoundsAreOther) {
  SeriesTable table({});
  for (uint32_t i = 0; i < SeriesTable::kRowsMax; ++i)
    table.AddRule("edge", fmt::format("rule{}", i));
  EXPECT_EQ(table.AddRule("edge", "late"), SeriesTable::kOtherRow);
  EXPECT_TRUE(SeriesTable::IsOther(table.CounterOf(SeriesTable::kOtherRow, Outcome::kAllowed)));
}

TEST(SeriesTable, OnlyDomainsWithRulesAreKnown) {
  SeriesTable table({});
  table.AddRule("edge", "api_key");
  const uint32_t row = table.DomainRow("edge");
  EXPECT_NE(row, SeriesTable::kOtherRow);
  EXPECT_EQ(LabelOf(table, table.CounterOf(row, Outcome::kNoRule)), "edge/");
  EXPECT_EQ(table.DomainRow("whatever a client sends"), SeriesTable::kOtherRow);
}

TEST(SeriesTable, ValuesOfClientsAreBoundedApartFromRules) {
  SeriesTable table({});
  for (uint32_t i = 0; i < SeriesTable::kDetailRowsMax; ++i) {
    ASSERT_TRUE(table.DetailRow("edge", One("api_key", fmt::format("k{}", i))).has_value());
  }
  EXPECT_FALSE(table.DetailRow("edge", One("api_key", "one more")).has_value());
  EXPECT_TRUE(table.DetailRow("edge", One("api_key", "k7")).has_value())
      << "what is known stays known";
  EXPECT_FALSE(
      SeriesTable::IsOther(table.CounterOf(table.AddRule("edge", "new rule"), Outcome::kAllowed)));
}

TEST(SeriesTable, KeyWithEmptyValueIsNotTheKeyAlone) {
  SeriesTable table({});
  DetailLabel key_alone = One("api_key", "");
  key_alone.steps[0].value.reset();
  const uint32_t with_value = *table.DetailRow("edge", One("api_key", ""));
  EXPECT_NE(*table.DetailRow("edge", key_alone), with_value);
  EXPECT_EQ(LabelOf(table, table.CounterOf(with_value, Outcome::kAllowed)), "edge/api_key_");
}

TEST(SeriesTable, LabelsArePrintableAndShort) {
  SeriesTable table({});
  const auto label_of = [&](std::string_view value) {
    return LabelOf(table,
                   table.CounterOf(*table.DetailRow("e", One("k", value)), Outcome::kAllowed));
  };
  EXPECT_EQ(label_of("a\nb\xff"), "e/k_a\\x0ab\\xff");
  const std::string room(126, 'v');
  EXPECT_EQ(label_of(room), fmt::format("e/k_{}", room));
  EXPECT_EQ(label_of(fmt::format("{}v", room)), fmt::format("e/k_{}…", room));
  EXPECT_EQ(label_of(fmt::format("{}ä", room.substr(1))), fmt::format("e/k_{}…", room.substr(1)))
      << "whole characters";
  EXPECT_EQ(label_of(std::string(1'000'000, 'v')), fmt::format("e/k_{}…", room));
}

TEST(SeriesTable, ThreadsAgreeOnEverySeries) {
  SeriesTable table({});
  constexpr uint32_t kRules = 200;
  std::vector<uint32_t> rows;
  for (uint32_t i = 0; i < kRules; ++i)
    rows.push_back(table.AddRule("edge", fmt::format("rule{}", i)));
  const auto work = [&](std::vector<uint32_t>& seen) {
    for (uint32_t i = 0; i < kRules; ++i) {
      seen.push_back(table.CounterOf(rows[i], Outcome::kAllowed));
      seen.push_back(*table.DetailRow("edge", One("k", fmt::format("v{}", i))));
    }
  };
  std::vector<uint32_t> a, b;
  std::thread thread([&] { work(a); });
  work(b);
  thread.join();
  EXPECT_EQ(a, b);
  EXPECT_EQ(table.series_count(), kRules);
}

TEST(SeriesTable, NoRuleIsNotARuleThatIsCalledNone) {
  SeriesTable table({});
  const uint32_t row = table.AddRule("edge", "none");
  EXPECT_NE(table.CounterOf(table.DomainRow("edge"), Outcome::kNoRule),
            table.CounterOf(row, Outcome::kNoRule));
  EXPECT_EQ(LabelOf(table, table.CounterOf(table.DomainRow("edge"), Outcome::kNoRule)), "edge/");
}

}  // namespace series_test
}  // namespace headgate::observe
