#include "headgate/algorithm/fair_share.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <random>

#include <nlohmann/json.hpp>

#include "tests/source_dir.h"

namespace headgate::algorithm {
namespace fair_share_test {

using nlohmann::json;
using ::testing::ElementsAre;

using Random = std::mt19937_64;

json Vectors(const std::string& name) {
  std::ifstream in(SourceDir() / "tests/vectors" / name);
  return json::parse(in);
}

// Read the file's decimal 0.1 as exactly a tenth.
Ratio RatioOf(const json& value) {
  return {static_cast<uint32_t>(std::lround(value.get<double>() * 1000)), 1000};
}

// The capacities of one division in a file of vectors. `credits` are by name, from the last one.
json DivideAs(const json& demand, uint64_t capacity, Ratio reservation, Lending lending,
              std::map<std::string, FairCredit>& credits) {
  std::vector<std::string> names;
  for (const auto& item : demand.items()) names.push_back(item.key());
  std::vector<ClientDemand> clients;
  for (const std::string& name : names) {
    clients.push_back(
        {.name = name, .demand = demand[name].get<uint64_t>(), .credit = credits[name]});
  }
  std::vector<FairCredit> next;
  const auto capacities = Divide(capacity, reservation, clients, lending, &next);
  json divided = json::object();
  for (size_t i = 0; i < names.size(); ++i) {
    divided[names[i]] = capacities[i];
    credits[names[i]] = next[i];
  }
  return divided;
}

TEST(FairShare, EveryVectorIsAnsweredWithoutOneDifference) {
  int cycles_run = 0;
  for (const auto& [name, lending] :
       std::map<std::string, Lending>{{"fair_share.json", Lending::kProportional},
                                      {"fair_share_max_min.json", Lending::kMaxMin}}) {
    const json vectors = Vectors(name);
    for (const json& cycle : vectors.at("cycles")) {
      SCOPED_TRACE(cycle.dump());
      std::map<std::string, FairCredit> credits;
      EXPECT_EQ(DivideAs(cycle.at("demand"), cycle.at("capacity").get<uint64_t>(),
                         RatioOf(cycle.at("reservation")), lending, credits),
                cycle.at("capacity_next"));
      ++cycles_run;
    }
  }
  EXPECT_GE(cycles_run, 103);
}

TEST(FairShare, EveryVectorOfACrowdIsAnsweredWithoutOneDifference) {
  int cycles_run = 0;
  const json vectors = Vectors("fair_share_carried.json");
  for (const json& sequence : vectors.at("sequences")) {
    std::map<std::string, FairCredit> credits;
    for (const json& cycle : sequence.at("cycles")) {
      SCOPED_TRACE(cycle.dump());
      EXPECT_EQ(DivideAs(cycle.at("demand"), sequence.at("capacity").get<uint64_t>(),
                         RatioOf(sequence.at("reservation")), Lending::kProportional, credits),
                cycle.at("capacity_next"));
      ++cycles_run;
    }
  }
  EXPECT_GE(cycles_run, 140);
}

TEST(FairShare, MoreClientsThanUnitsTakeTurns) {
  std::map<std::string, FairCredit> credits;
  std::map<std::string, uint64_t> sums;
  json demand;
  for (int i = 0; i < 11; ++i) demand["client " + std::to_string(i)] = 3;
  for (int cycle = 0; cycle < 11; ++cycle) {
    const json capacities = DivideAs(demand, 10, {1, 10}, Lending::kProportional, credits);
    for (const auto& item : capacities.items()) sums[item.key()] += item.value().get<uint64_t>();
  }
  for (const auto& [name, sum] : sums) EXPECT_EQ(sum, 10u) << name;
}

TEST(FairShare, ADemandCountsAtMostAsTheCapacity) {
  const std::vector<ClientDemand> storm{{"A", 0}, {"B", 20}, {"C", 1000}, {"D", 0}};
  // A and D leave 9 each. B lacks 10 and C, who can have 40 at most, 30.
  EXPECT_THAT(Divide(40, {1, 10}, storm), ElementsAre(1, 15, 23, 1));
  EXPECT_THAT(Divide(40, {1, 10}, storm, Lending::kMaxMin), ElementsAre(1, 19, 19, 1));
}

TEST(FairShare, EqualLoansEndAtWhatAClientLacks) {
  const std::vector<ClientDemand> clients{{"A", 0}, {"B", 12}, {"C", 30}, {"D", 1000}};
  EXPECT_THAT(Divide(40, {}, clients, Lending::kMaxMin), ElementsAre(0, 12, 14, 14));
  // A leaves 10. B lacks 2 and takes it. The other 8 go to weights of 3 and 1 by 6 and 2.
  const std::vector<ClientDemand> weighted{{"A", 0, 1}, {"B", 12, 1}, {"C", 60, 3}, {"D", 60, 1}};
  EXPECT_THAT(Divide(60, {}, weighted, Lending::kMaxMin), ElementsAre(0, 12, 36, 12));
}

constexpr Ratio kTenth{1, 10};

TEST(FairShare, TheWorkedExampleOfFourClientsSharingForty) {
  EXPECT_THAT(
      Divide(40, kTenth, std::vector<ClientDemand>{{"A", 2}, {"B", 15}, {"C", 10}, {"D", 10}}),
      ElementsAre(5, 15, 10, 10))
      << "A gives 8, B takes 5 of it, and A gets the other 3 back";
  EXPECT_THAT(
      Divide(40, kTenth, std::vector<ClientDemand>{{"A", 3}, {"B", 15}, {"C", 50}, {"D", 10}}),
      ElementsAre(3, 11, 16, 10))
      << "A gives 7; of that B, who lacks 5, takes 1, and C, who lacks 30, takes 6";
  EXPECT_THAT(
      Divide(40, kTenth, std::vector<ClientDemand>{{"A", 0}, {"B", 15}, {"C", 50}, {"D", 5}}),
      ElementsAre(1, 12, 22, 5))
      << "A keeps its reservation of 1";
}

TEST(FairShare, NoClientsHaveNothingAndOneHasAll) {
  EXPECT_THAT(Divide(40, kTenth, {}), ElementsAre());
  EXPECT_THAT(Divide(40, kTenth, std::vector<ClientDemand>{{"A", 0}}), ElementsAre(40));
  EXPECT_THAT(Divide(40, kTenth, std::vector<ClientDemand>{{"A", 1000}}), ElementsAre(40));
}

TEST(FairShare, TheLastWholeOneGoesToTheNameThatSortsFirst) {
  EXPECT_THAT(Divide(10, {}, std::vector<ClientDemand>{{"c"}, {"a"}, {"b"}}), ElementsAre(3, 4, 3));
  EXPECT_THAT(Divide(11, {}, std::vector<ClientDemand>{{"c"}, {"a"}, {"b"}}), ElementsAre(3, 4, 4));
}

TEST(FairShare, FollowsWeights) {
  const std::vector<ClientDemand> busy{{"A", 100, 3}, {"B", 100, 1}};
  EXPECT_THAT(Divide(40, {}, busy), ElementsAre(30, 10)) << "both lack something, so nobody gives";
  const std::vector<ClientDemand> idle{{"A", 0, 3}, {"B", 35, 1}};
  EXPECT_THAT(Divide(40, {}, idle), ElementsAre(5, 35));
  EXPECT_THAT(Divide(40, {1, 2}, idle), ElementsAre(15, 25)) << "A keeps half of its 30";
}

TEST(FairShare, ANewClientCountsAsIfItHadAskedForAnEvenShare) {
  EXPECT_THAT(Divide(40, {}, std::vector<ClientDemand>{{"A", 0}, {"B", 100}, {"C", 0}, {"new"}}),
              ElementsAre(0, 30, 0, 10));
}

TEST(FairShare, DoesNotOverflowAtItsBounds) {
  std::vector<std::string> names(kFairClientsMax);
  std::vector<ClientDemand> clients(kFairClientsMax);
  for (size_t i = 0; i < clients.size(); ++i) {
    names[i] = std::to_string(i);
    clients[i] = {
        .name = names[i], .demand = i == 0 ? 0 : kFairCapacityMax, .weight = kFairWeightMax};
  }
  const Ratio reservation{999, kFairRatioDenominatorMax};
  const auto capacities = Divide(kFairCapacityMax, reservation, clients);
  EXPECT_EQ(std::accumulate(capacities.begin(), capacities.end(), uint64_t{0}), kFairCapacityMax);
  // D = 2^20 − 1/4096. The idle client keeps 0.999 of it, 1047527.42, and its remainder 0.42 is the
  // largest of all.
  EXPECT_EQ(capacities[0], 1'047'528u);
  EXPECT_GE(capacities[1], uint64_t{1} << 20);
  clients[0].demand = kFairCapacityMax;
  for (size_t i = 1; i < clients.size(); ++i) clients[i].demand = 0;
  const auto reversed = Divide(kFairCapacityMax, {0, kFairRatioDenominatorMax}, clients);
  EXPECT_EQ(reversed[0], kFairCapacityMax);
  EXPECT_EQ(reversed[1], 0u);
}

// ---- Properties for all inputs

struct Pool {
  uint64_t capacity = 0;
  Ratio reservation{};
  std::vector<ClientDemand> clients{};
  uint64_t weights = 0;
};

Pool AnyPool(Random& random) {
  static constexpr std::string_view kNames[] = {"ada", "bob", "cy",  "dee", "eve",
                                                "fay", "gus", "hal", "ivy"};
  Pool pool{.capacity = random() % (uint64_t{1} << (random() % 33))};
  const auto denominator = static_cast<uint32_t>(1 + random() % kFairRatioDenominatorMax);
  pool.reservation = {static_cast<uint32_t>(random() % (denominator + 1)), denominator};
  const size_t count = 1 + random() % std::size(kNames);
  for (size_t i = 0; i < count; ++i) {
    ClientDemand client{
        .name = kNames[i],
        .weight = static_cast<uint32_t>(random() % 2 ? 1 : 1 + random() % kFairWeightMax)};
    if (random() % 8 != 0)
      client.demand = random() % (1 + std::min(kFairCapacityMax, pool.capacity >> random() % 8));
    pool.clients.push_back(client);
    pool.weights += client.weight;
  }
  std::shuffle(pool.clients.begin(), pool.clients.end(), random);
  return pool;
}

template <typename Body>
void ForAllPools(const Body& body) {
  for (uint64_t seed = 1; seed <= 20'000 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Pool pool = AnyPool(random);
    body(pool, Divide(pool.capacity, pool.reservation, pool.clients));
  }
}

TEST(FairShareForAll, SharesSumToTheCapacity) {
  ForAllPools([](const Pool& pool, const std::vector<uint64_t>& shares) {
    EXPECT_EQ(std::accumulate(shares.begin(), shares.end(), uint64_t{0}), pool.capacity);
  });
}

TEST(FairShareForAll, EverybodyKeepsItsReservation) {
  ForAllPools([](const Pool& pool, const std::vector<uint64_t>& shares) {
    for (size_t i = 0; i < shares.size(); ++i) {
      const uint64_t reserved = pool.capacity * pool.clients[i].weight *
                                pool.reservation.numerator /
                                (pool.weights * pool.reservation.denominator);
      EXPECT_GE(shares[i], reserved) << pool.clients[i].name;
    }
  });
}

TEST(FairShareForAll, EachUserGetsItsDemandUpToAnEvenShare) {
  ForAllPools([](const Pool& pool, const std::vector<uint64_t>& shares) {
    for (size_t i = 0; i < shares.size(); ++i) {
      const uint64_t even = pool.capacity * pool.clients[i].weight / pool.weights;
      EXPECT_GE(shares[i], std::min(even, pool.clients[i].demand.value_or(even)))
          << pool.clients[i].name;
    }
  });
}

TEST(FairShareForAll, NobodyIsGivenWhatItDoesNotWantWhileAnotherLacks) {
  ForAllPools([](const Pool& pool, const std::vector<uint64_t>& shares) {
    bool somebody_lacks = false, somebody_has_more = false;
    for (size_t i = 0; i < shares.size(); ++i) {
      // The difference is larger than rounding and a reservation explain.
      const uint64_t even = pool.capacity * pool.clients[i].weight / pool.weights + 1;
      const uint64_t reserved =
          even * pool.reservation.numerator / pool.reservation.denominator + 1;
      const uint64_t demand = pool.clients[i].demand.value_or(even);
      somebody_lacks |= shares[i] + 1 < demand;
      somebody_has_more |= shares[i] > std::max(demand, reserved) + 1;
    }
    EXPECT_FALSE(somebody_lacks && somebody_has_more);
  });
}

TEST(FairShareForAll, TheOrderOfTheClientsDoesNotMatter) {
  ForAllPools([](const Pool& pool, const std::vector<uint64_t>& shares) {
    std::map<std::string_view, uint64_t> by_name;
    for (size_t i = 0; i < shares.size(); ++i) by_name[pool.clients[i].name] = shares[i];
    Pool sorted = pool;
    std::sort(sorted.clients.begin(), sorted.clients.end(),
              [](auto& a, auto& b) { return a.name < b.name; });
    const auto shares_sorted = Divide(sorted.capacity, sorted.reservation, sorted.clients);
    for (size_t i = 0; i < shares_sorted.size(); ++i)
      EXPECT_EQ(shares_sorted[i], by_name[sorted.clients[i].name]);
  });
}

TEST(FairShareForAll, OnlyTheProportionOfWeightsMatters) {
  ForAllPools([](const Pool& pool, const std::vector<uint64_t>& shares) {
    Pool doubled = pool;
    for (ClientDemand& client : doubled.clients) {
      if (client.weight > kFairWeightMax / 2) return;
      client.weight *= 2;
    }
    EXPECT_EQ(Divide(doubled.capacity, doubled.reservation, doubled.clients), shares);
  });
}

}  // namespace fair_share_test
}  // namespace headgate::algorithm
