#include "headgate/proxy/metrics.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace headgate::proxy {
namespace metrics_test {

// The demands that were reported, by the label of the client.
class Demands final : public observe::Sink {
 public:
  void Set(observe::Metric metric, std::initializer_list<std::string_view> labels,
           uint64_t value) override {
    if (metric != observe::Metric::kShareDemand) return;
    EXPECT_TRUE(by_client.emplace(*labels.begin(), value).second)
        << "two clients have the label " << *labels.begin();
  }
  void Set(observe::Metric, std::initializer_list<std::string_view>, base::Duration) override {}
  void Set(observe::Metric, std::initializer_list<std::string_view>,
           const observe::HistogramValue&) override {}

  std::map<std::string, uint64_t> by_client;
};

std::map<std::string, uint64_t> DemandsOf(const std::map<std::string, uint64_t>& clients) {
  share::PoolSnapshot snapshot;
  for (const auto& [name, demand] : clients)
    snapshot.clients.push_back({.name = name, .figures = {.demand = demand}});
  Demands demands;
  share::ClientSeries series(kClientSeriesMax);
  CollectShare(snapshot, series, demands);
  return demands.by_client;
}

TEST(SidecarMetrics, ClientsBeyondTheBoundAreSummedUnderANameThatNoneCanHave) {
  std::map<std::string, uint64_t> clients = {{"other", 1000}};
  for (size_t i = 1; i <= kClientSeriesMax + 2; ++i) clients["client" + std::to_string(i)] = i;
  const auto demands = DemandsOf(clients);
  EXPECT_EQ(demands.size(), kClientSeriesMax + 1);
  EXPECT_EQ(demands.at("other"), 1000u);
  EXPECT_EQ(demands.at(""), 1u + 2u + 3u) << "the smallest";
  EXPECT_FALSE(DemandsOf({{"ann", 1}}).contains(""));
}

TEST(SidecarMetrics, EachClientHasALabelOfItsOwn) {
  const auto demands = DemandsOf({{"a\xff", 1},
                                  {"a\\xff", 2},
                                  {"a\\x5cxff", 3},
                                  {"a\\\xff", 4},
                                  {"a\\\\xff", 5},
                                  {"CORP\\ann", 6},
                                  {"zo\xc3\xab", 7}});
  EXPECT_EQ(demands.size(), 7u);
  EXPECT_EQ(demands.at("a\\xff"), 1u);
  EXPECT_EQ(demands.at("a\\x5cxff"), 2u);
  EXPECT_EQ(demands.at("CORP\\ann"), 6u) << "as it is";
  EXPECT_EQ(demands.at("zo\xc3\xab"), 7u);
}

// Collects the values reported for the client "ann".
class OfClients final : public observe::Sink {
 public:
  void Set(observe::Metric metric, std::initializer_list<std::string_view> labels,
           uint64_t value) override {
    if (labels.size() == 1 && *labels.begin() == "ann") values[metric] = value;
  }
  void Set(observe::Metric, std::initializer_list<std::string_view>, base::Duration) override {}
  void Set(observe::Metric, std::initializer_list<std::string_view>,
           const observe::HistogramValue&) override {}

  std::map<observe::Metric, uint64_t> values;
};

TEST(SidecarMetrics, ThereAreNoSharesUntilACapacityIsFound) {
  using observe::Metric;
  share::PoolSnapshot snapshot;
  snapshot.clients.push_back(
      {.name = "ann", .figures = {.demand = 7, .capacity = 4, .borrowed = 2, .lent = 1}});
  share::PoolSnapshot found = snapshot;
  found.capacity = 40;
  share::ClientSeries series(kClientSeriesMax);
  OfClients before;
  CollectShare(snapshot, series, before);
  EXPECT_EQ(before.values, (std::map<Metric, uint64_t>{{Metric::kShareDemand, 7}}));
  OfClients after;
  CollectShare(found, series, after);
  EXPECT_EQ(after.values, (std::map<Metric, uint64_t>{{Metric::kShareDemand, 7},
                                                      {Metric::kShareCapacity, 4},
                                                      {Metric::kShareBorrowed, 2},
                                                      {Metric::kShareLent, 1}}));
}

}  // namespace metrics_test
}  // namespace headgate::proxy
