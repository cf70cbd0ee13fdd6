// Properties of a pool under random traffic: storms, idle clients that come back, new names, pauses
// and settings of every kind. Integers only; a seed repeats a run.
#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "headgate/algorithm/fair_share_rig.h"

namespace headgate::algorithm {
namespace fair_share_properties_test {

using base::Duration;
using base::Instant;
using std::chrono::seconds;

constexpr Duration kCycle = seconds(10);

// The clients that come and the settings that change during a run.
struct Kind {
  bool clients_change = true;  // new names appear, and clients leave
  bool capacity_changes = true;
  bool probes = true;  // requests that are sent anyway
  bool pauses = true;  // of several cycles
  bool keeps_before = false;
  bool makes_way = true;  // new names replace silent clients
  std::optional<Reclaim> reclaim{};
  std::optional<OnNewClient> on_new_client{};
};

class Traffic {
 public:
  Traffic(uint64_t seed, const Kind& kind)
      : kind_(kind), random_(seed), options_(AnyOptions()), pool_(MakePool(options_)) {
    const size_t count = 2 + Below(6);
    for (size_t i = 0; i < count; ++i) AddClient();
    if (kind_.clients_change) return;
    for (size_t i = 0; i < count; ++i) Ask(i, 1);
  }

  // Lets time pass and sends one request.
  void Step() {
    now_ += Duration(static_cast<int64_t>(Below(static_cast<uint64_t>(kCycle.count()) / 20)));
    if (kind_.pauses && Below(300) == 0) now_ += kCycle * static_cast<int64_t>(Below(4));
    if (Below(15) == 0) appetites_[Below(appetites_.size())] = AnyAppetite();
    if (kind_.clients_change && names_.size() < 26 && Below(60) == 0) AddClient();
    BeginStep();
    if (kind_.capacity_changes && Below(60) == 0) pool_.SetCapacity(1 + Below(80), now_);
    const size_t client = Below(names_.size());
    if (appetites_[client] == 0) return;
    Ask(client, 1 + Below(appetites_[client]));
  }

  // ---- The last request. `decision` is empty if none was made in this step.

  std::optional<Decision> decision{};
  FairShareRequest request{};
  // Just before it, with all cycles ended that were over; only with `keeps_before`.
  std::optional<FairSharePool> before{};
  Instant now() const { return now_; }

  // ---- Records of the test's own

  // The demand of each client in the last cycle, by its name.
  const std::map<std::string, uint64_t>& asked_last() const { return asked_last_; }
  uint64_t admitted() const { return admitted_; }            // in this cycle
  uint64_t capacity_most() const { return capacity_most_; }  // in this cycle, so far
  // Since a cycle last ended for another reason than a reclaim.
  uint64_t admitted_since_full() const { return admitted_since_full_; }

  const FairSharePool& pool() const { return pool_; }
  const FairShareOptions& options() const { return options_; }
  uint64_t Weights() const {
    uint64_t weights = 0;
    for (size_t i = 0; i < pool_.client_count(); ++i) weights += pool_.client(i).figures.weight;
    return weights;
  }

 private:
  uint64_t Below(uint64_t bound) { return random_() % bound; }

  FairShareOptions AnyOptions() {
    const auto denominator = static_cast<uint32_t>(1 + Below(10));
    return {
        .capacity = 1 + Below(80),
        .cycle = kCycle,
        .reservation = {static_cast<uint32_t>(Below(denominator + 1)), denominator},
        .on_new_client = kind_.on_new_client.value_or(static_cast<OnNewClient>(Below(2))),
        .reclaim = kind_.reclaim.value_or(static_cast<Reclaim>(Below(2))),
        .minimum_cycle = Duration(static_cast<int64_t>(Below(4)) * kCycle.count() / 8),
        .leave_after_cycles = kind_.clients_change ? static_cast<uint32_t>(Below(4)) : uint32_t{0},
        .clients_max = static_cast<uint32_t>(8 + Below(10)) + (kind_.makes_way ? 0 : 26)};
  }

  // Nothing, a little, or a storm.
  uint64_t AnyAppetite() { return Below(3) * (Below(4) == 0 ? 8 : 1); }

  void AddClient() {
    names_.push_back(std::string(1, static_cast<char>('a' + names_.size())));
    appetites_.push_back(AnyAppetite());
    weights_.push_back(static_cast<uint32_t>(1 + Below(3)));
  }

  void BeginStep() {
    decision.reset();
    pool_.Advance(now_);
    NoticeCycle();
    if (kind_.keeps_before) before = pool_;
  }

  void Ask(size_t client, Cost cost) {
    request = {.client = names_[client],
               .cost = cost,
               .weight = weights_[client],
               .takes = Below(10) != 0};
    NoticeCycle();  // SetCapacity divides
    decision = pool_.Decide(request, now_);
    NoticeCycle();
    asked_[names_[client]] += cost;
    if (decision->allowed && request.takes) {
      admitted_ += cost;
      admitted_since_full_ += cost;
    } else if (!decision->allowed && kind_.probes && Below(4) == 0) {
      pool_.CountSentAnyway(names_[client], cost);
    }
  }

  void NoticeCycle() {
    const uint64_t passed = pool_.cycle().number - cycle_;
    if (passed > 0) capacity_most_ = 0;
    capacity_most_ = std::max(capacity_most_, pool_.capacity());
    if (passed == 0) return;
    asked_last_ = passed == 1 ? asked_ : std::map<std::string, uint64_t>();
    asked_.clear();
    admitted_ = 0;
    cycle_ += passed;
    const uint64_t early = pool_.cycle().ends[static_cast<size_t>(CycleEnd::kReclaim)];
    if (early - early_ < passed) admitted_since_full_ = 0;
    early_ = early;
  }

  Kind kind_;
  std::mt19937_64 random_;
  FairShareOptions options_;
  FairSharePool pool_;
  Instant now_ = At(seconds(100));
  std::vector<std::string> names_;
  std::vector<uint64_t> appetites_;
  std::vector<uint32_t> weights_;
  std::map<std::string, uint64_t> asked_, asked_last_;
  uint64_t admitted_ = 0;
  uint64_t capacity_most_ = 0;
  uint64_t admitted_since_full_ = 0;
  uint64_t cycle_ = 1;
  uint64_t early_ = 0;
};

// Calls `check` after each step of many runs.
void ForAllTraffic(const Kind& kind, const std::function<void(const Traffic&)>& check) {
  for (uint64_t seed = 1; seed <= 60 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Traffic traffic(seed, kind);
    for (int step = 0; step < 600 && !::testing::Test::HasFailure(); ++step) {
      traffic.Step();
      check(traffic);
    }
  }
}

TEST(FairSharePoolForAll, CapacitiesSumToThatOfThePool) {
  ForAllTraffic({}, [](const Traffic& traffic) {
    const auto capacities = CapacitiesOf(traffic.pool());
    if (capacities.empty()) return;
    EXPECT_EQ(std::accumulate(capacities.begin(), capacities.end(), uint64_t{0}),
              traffic.pool().capacity());
  });
}

TEST(FairSharePoolForAll, NobodyIsBelowItsReservation) {
  ForAllTraffic({}, [](const Traffic& traffic) {
    const FairSharePool& pool = traffic.pool();
    const Ratio reservation = traffic.options().reservation;
    for (size_t i = 0; i < pool.client_count(); ++i) {
      const ClientView client = pool.client(i);
      EXPECT_GE(client.figures.capacity, pool.capacity() * client.figures.weight *
                                             reservation.numerator /
                                             (traffic.Weights() * reservation.denominator))
          << client.name;
    }
  });
}

// However the last cycle ended, and however often the shares have changed in this one.
TEST(FairSharePoolForAll, EachHasWhatItAskedForInTheLastCycleUpToAnEvenShare) {
  ForAllTraffic({.makes_way = false}, [](const Traffic& traffic) {
    const FairSharePool& pool = traffic.pool();
    for (size_t i = 0; i < pool.client_count(); ++i) {
      const ClientView client = pool.client(i);
      const auto asked = traffic.asked_last().find(std::string(client.name));
      if (asked == traffic.asked_last().end()) continue;
      const uint64_t even = pool.capacity() * client.figures.weight / traffic.Weights();
      EXPECT_GE(client.figures.capacity, std::min(asked->second, even)) << client.name;
    }
  });
}

TEST(FairSharePoolForAll, EachCycleAdmitsAtMostTheCapacity) {
  ForAllTraffic(
      {}, [](const Traffic& traffic) { EXPECT_LE(traffic.admitted(), traffic.capacity_most()); });
}

// Reclaims renew nobody's allowance: what is lent can be used twice, but not more.
TEST(FairSharePoolForAll, ReclaimsAdmitAtMostTwiceTheCapacityUntilTheCycleIsDue) {
  uint64_t most_percent = 0;
  const Kind kind{.clients_change = false, .capacity_changes = false, .reclaim = Reclaim::kAtOnce};
  ForAllTraffic(kind, [&](const Traffic& traffic) {
    const uint64_t capacity = traffic.pool().capacity();
    // Each share may be rounded up once more.
    EXPECT_LE(traffic.admitted_since_full(), 2 * capacity + traffic.pool().client_count());
    most_percent = std::max(most_percent, traffic.admitted_since_full() * 100 / capacity);
  });
  EXPECT_GT(most_percent, 130u) << "the runs should come near the bound";
}

TEST(FairSharePoolForAll, WithoutReclaimsTheCapacityIsTheBound) {
  ForAllTraffic({.reclaim = Reclaim::kNextCycle}, [](const Traffic& traffic) {
    EXPECT_LE(traffic.admitted_since_full(), traffic.capacity_most());
  });
}

// A client that is denied within its even share never waits longer than its answer said: for the
// end of the cycle, or, if its own is reclaimed at once, for the early end.
TEST(FairSharePoolForAll, AClientGetsItsEvenShareAfterTheWaitThatItWasTold) {
  uint64_t waits = 0;
  const Kind kind{.clients_change = false, .capacity_changes = false};
  ForAllTraffic(kind, [&](const Traffic& traffic) {
    if (!traffic.decision || traffic.decision->allowed || !traffic.request.takes) return;
    const FairSharePool& pool = traffic.pool();
    for (size_t i = 0; i < pool.client_count(); ++i) {
      const ClientView client = pool.client(i);
      const uint64_t even = pool.capacity() * client.figures.weight / traffic.Weights();
      if (client.name != traffic.request.client ||
          client.figures.used_now + traffic.request.cost > even)
        continue;
      ++waits;
      FairSharePool later = pool;
      EXPECT_TRUE(
          later.Decide(traffic.request, traffic.now() + traffic.decision->retry_after).allowed);
    }
  });
  EXPECT_GT(waits, 5u);
}

TEST(FairSharePoolForAll, NewNamesRenewNobodysAllowance) {
  const Kind kind{.keeps_before = true, .on_new_client = OnNewClient::kRedivide};
  ForAllTraffic(kind, [](const Traffic& traffic) {
    const FairSharePool& before = *traffic.before;
    const FairSharePool& pool = traffic.pool();
    if (pool.client_count() == before.client_count() || before.client_count() == 0) return;
    EXPECT_EQ(pool.cycle().number, before.cycle().number);
    EXPECT_EQ(pool.cycle().end, before.cycle().end);
    for (size_t i = 0; i < before.client_count(); ++i)
      EXPECT_EQ(pool.client(i).figures.used_now, before.client(i).figures.used_now)
          << pool.client(i).name;
  });
}

TEST(FairSharePoolForAll, ALoanIsOnOneSide) {
  ForAllTraffic({}, [](const Traffic& traffic) {
    const FairSharePool& pool = traffic.pool();
    uint64_t borrowed = 0, lent = 0;
    for (size_t i = 0; i < pool.client_count(); ++i) {
      const ClientView client = pool.client(i);
      EXPECT_TRUE(client.figures.borrowed == 0 || client.figures.lent == 0) << client.name;
      borrowed += client.figures.borrowed;
      lent += client.figures.lent;
    }
    // The two sums are equal, but for what rounding moves.
    EXPECT_LE(borrowed, lent + pool.client_count());
    EXPECT_LE(lent, borrowed + pool.client_count());
  });
}

// Two pools with the same traffic. The names of one are others, in the same order.
TEST(FairSharePoolForAll, OnlyTheOrderOfNamesMatters) {
  static constexpr std::array<std::string_view, 5> kNames = {"a", "b", "c", "d", "e"};
  static constexpr std::array<std::string_view, 5> kOthers = {"", "10", "9", "Zoe", "\xc3\xa9"};
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const FairShareOptions options{.capacity = 1 + random() % 60,
                                   .cycle = kCycle,
                                   .reservation = {1, 10},
                                   .reclaim = static_cast<Reclaim>(random() % 2)};
    FairSharePool pool = MakePool(options), renamed = MakePool(options);
    Instant now = At(seconds(0));
    for (int step = 0; step < 300; ++step) {
      now += Duration(static_cast<int64_t>(random() % 1'000'000'000));
      const size_t client = random() % kNames.size();
      const Cost cost = client == 0 ? random() % 30 : random() % 4;
      ASSERT_EQ(pool.Decide({.client = kNames[client], .cost = cost}, now),
                renamed.Decide({.client = kOthers[client], .cost = cost}, now));
    }
  }
}

// The order in which clients arrive matters in the cycle of their arrival at most.
TEST(FairSharePoolForAll, TiesDoNotDependOnTheOrderOfArrival) {
  std::vector<std::string> names = {"a", "b", "c", "d", "e", "f"};
  std::map<std::string, uint64_t> expected;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    std::mt19937_64 random(seed);
    FairSharePool pool = MakePool({.capacity = 100, .cycle = kCycle});
    for (const std::string& name : names) Ask(pool, name, name == "c" ? 90 : 7, At(seconds(0)));
    pool.Advance(At(kCycle));
    std::map<std::string, uint64_t> capacities;
    for (size_t i = 0; i < pool.client_count(); ++i)
      capacities[std::string(pool.client(i).name)] = pool.client(i).figures.capacity;
    if (expected.empty()) expected = capacities;
    ASSERT_EQ(capacities, expected) << "seed " << seed;
    std::shuffle(names.begin(), names.end(), random);
  }
}

}  // namespace fair_share_properties_test
}  // namespace headgate::algorithm
