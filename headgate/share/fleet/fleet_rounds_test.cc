// Instances that share one pool, in virtual time: the shares are those of one pool that sees all
// requests, and the fleet never admits more than the capacity in a cycle.
#include "headgate/share/fleet/fleet_rounds.h"

#include <chrono>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "headgate/share/fleet/fleet_rig.h"

namespace headgate::share::fleet {
namespace fleet_rounds_test {

using algorithm::FairShareOptions;
using base::Duration;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Amounts = std::map<std::string, uint64_t>;

constexpr Duration kCycle = seconds(10);

ShareOptions FourShareForty() {
  return {.pool = {.capacity = 40, .cycle = kCycle, .reservation = {1, 10}}};
}

// Requests of a part of a cycle, spread over its time and unevenly over the instances.
class Load {
 public:
  Load(FleetRig& rig, uint64_t seed, size_t instances)
      : rig_(rig), random_(seed), last_(instances) {}

  void Send(const Amounts& demands, Duration from, Duration until) {
    for (const auto& [client, demand] : demands) {
      for (uint64_t i = 0; i < demand; ++i) {
        const auto span = static_cast<uint64_t>((until - from).count());
        rig_.Send(from + Duration(static_cast<int64_t>(random_() % span)), Place(), client);
      }
    }
  }
  uint64_t Below(uint64_t end) { return random_() % end; }

 private:
  // Two thirds at the first instance, and so on.
  size_t Place() {
    size_t place = 0;
    while (place + 1 < last_ && Below(3) == 0) ++place;
    return place;
  }

  FleetRig& rig_;
  std::mt19937_64 random_;
  const size_t last_;
};

// Clients A to D are known from the first moment of the cycle on, as in the worked example.
void Introduce(FleetRig& rig) {
  for (size_t i = 0; i < 4; ++i) rig.Send({}, i % 3, std::string(1, static_cast<char>('A' + i)));
}

uint64_t SumOf(const Amounts& amounts) {
  return std::accumulate(amounts.begin(), amounts.end(), uint64_t{0},
                         [](uint64_t sum, const auto& entry) { return sum + entry.second; });
}

TEST(FleetRounds, TheWorkedExampleSpreadOverThreeInstances) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    FleetRig rig(3, FourShareForty(), seed);
    rig.service.faults.delay_max = milliseconds(2);
    Load load(rig, seed, 3);
    Introduce(rig);
    load.Send({{"A", 1}, {"B", 14}, {"C", 9}, {"D", 9}}, milliseconds(500), milliseconds(4'500));
    rig.Run(milliseconds(9'990));
    EXPECT_EQ(rig.Capacities(), (Amounts{{"A", 10}, {"B", 10}, {"C", 10}, {"D", 10}}));
    EXPECT_EQ(rig.TakeAdmitted(), (Amounts{{"A", 2}, {"B", 10}, {"C", 10}, {"D", 10}}));

    rig.Run(milliseconds(110));
    EXPECT_EQ(rig.Capacities(), (Amounts{{"A", 5}, {"B", 15}, {"C", 10}, {"D", 10}}));
    load.Send({{"A", 3}, {"B", 15}, {"C", 50}, {"D", 10}}, milliseconds(0), milliseconds(4'500));
    rig.Run(kCycle);
    EXPECT_EQ(rig.TakeAdmitted(), (Amounts{{"A", 3}, {"B", 15}, {"C", 10}, {"D", 10}}));

    EXPECT_EQ(rig.Capacities(), (Amounts{{"A", 3}, {"B", 11}, {"C", 16}, {"D", 10}}));
    load.Send({{"B", 15}, {"C", 50}, {"D", 5}}, milliseconds(0), milliseconds(4'500));
    rig.Run(kCycle);
    EXPECT_EQ(rig.TakeAdmitted(), (Amounts{{"B", 11}, {"C", 16}, {"D", 5}}));
    EXPECT_EQ(rig.Capacities(), (Amounts{{"A", 1}, {"B", 12}, {"C", 22}, {"D", 5}}));
    EXPECT_EQ(rig.Early(), 0u) << "seed " << seed;
  }
}

// Three clients ask for half of an even share at random times, and one for four times the capacity.
// The same rule as in one process (share_crowd_test.cc).
TEST(FleetRounds, QuietClientsAreHardlyRefusedBesideAStorm) {
  ShareOptions options = FourShareForty();
  options.pool.capacity = 400;
  FleetRig rig(3, options);
  rig.service.faults.delay_max = milliseconds(1);
  std::mt19937_64 random(1);
  constexpr uint64_t kCycles = 10;
  uint64_t sent = 0;
  for (uint64_t i = 0; i < kCycles * 3 * 50; ++i, ++sent) {
    const auto at = Duration(static_cast<int64_t>(random() % (kCycles * 10'000'000'000)));
    rig.Send(at, random() % 3, "quiet" + std::to_string(i % 3));
  }
  for (uint64_t i = 0; i < kCycles * 1600; ++i)
    rig.Send(std::chrono::microseconds(i * 6250), i % 3, "storm");
  rig.Run(kCycle * kCycles);
  Amounts admitted = rig.TakeAdmitted();
  const uint64_t storm = std::exchange(admitted["storm"], 0);
  EXPECT_LE((sent - SumOf(admitted)) * 100, sent);
  EXPECT_GE(SumOf(admitted) + storm, 360 * kCycles);
}

// B asks for more than the capacity all the time, and the others are silent.
TEST(FleetRounds, AnActiveClientAloneHasThePoolWithinTwoCycles) {
  FleetRig rig(3, FourShareForty());
  rig.service.faults.delay_max = milliseconds(1);
  Introduce(rig);
  for (int i = 0; i < 200; ++i) {
    for (int j = 0; j < 5; ++j)
      rig.Send(milliseconds(10 + 100 * i), static_cast<size_t>(i % 3), "B");
  }
  rig.Run(kCycle);
  rig.TakeAdmitted();
  rig.Run(kCycle);
  EXPECT_GE(rig.TakeAdmitted()["B"], 36u);
}

// The definition, for the summed demands.
Amounts DividedBy(const Amounts& demands) {
  std::vector<algorithm::ClientDemand> clients;
  for (const auto& [name, demand] : demands) clients.push_back({.name = name, .demand = demand});
  const std::vector<uint64_t> shares = algorithm::Divide(40, {1, 10}, clients);
  Amounts capacities;
  for (size_t i = 0; i < clients.size(); ++i) capacities.emplace(clients[i].name, shares[i]);
  return capacities;
}

TEST(FleetRounds, SharesFollowTheSummedDemandsOfCycles) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    ShareOptions options = FourShareForty();
    options.pool.leave_after_cycles = 0;
    FleetRig rig(3, options, seed);
    rig.service.faults = {.lost_race = 5, .delay_max = milliseconds(3)};
    Load load(rig, seed, 3);
    Introduce(rig);
    rig.Run(milliseconds(100));
    Amounts demands{{"A", 1}, {"B", 1}, {"C", 1}, {"D", 1}};
    for (int cycle = 1; cycle <= 12; ++cycle) {
      for (auto& [name, demand] : demands) demand = cycle == 1 ? 0 : load.Below(60);
      // Also in the last moments of the cycle, which are reported when it has ended.
      load.Send(demands, milliseconds(0), milliseconds(9'895));
      if (cycle == 1) {
        for (auto& [name, demand] : demands) demand = 1;
      }
      rig.Run(kCycle);
      EXPECT_EQ(rig.Capacities(), DividedBy(demands)) << "seed " << seed << ", cycle " << cycle;
    }
  }
}

// Refusals of the last moments are reported when the cycle has ended.
TEST(FleetRounds, DemandsOfTheLastMomentsCountForTheirCycle) {
  FleetRig rig(3, FourShareForty());
  rig.service.faults.delay_max = milliseconds(1);
  rig.Send({}, 0, "A");
  rig.Send({}, 1, "B");
  rig.Send({}, 2, "C");
  for (int i = 0; i < 30; ++i) rig.Send(seconds(5), 1, "B");
  for (int i = 0; i < 14; ++i) rig.Send(seconds(5), 2, "C");
  for (int i = 0; i < 30; ++i) rig.Send(milliseconds(9'960 + i), 1, "B");
  for (int i = 0; i < 20; ++i) rig.Send(milliseconds(9'970 + i), 2, "C");
  rig.Run(milliseconds(10'200));
  EXPECT_EQ(rig.Capacities(), DividedBy({{"A", 1}, {"B", 61}, {"C", 35}}));
}

TEST(FleetRounds, AFleetNeverAdmitsMoreThanTheCapacityInACycle) {
  for (uint64_t seed = 1; seed <= 16; ++seed) {
    ShareOptions options = FourShareForty();
    options.pool.reclaim = static_cast<algorithm::Reclaim>(seed % 2);
    options.pool.on_new_client = static_cast<algorithm::OnNewClient>(seed / 2 % 2);
    options.pool.leave_after_cycles = 3;
    const size_t instances = 2 + seed % 3;
    FleetRig rig(instances, options, seed, {.alone_after = seconds(1'000'000)},
                 {milliseconds(7), milliseconds(-9)});
    rig.service.faults = {.lost_race = 5,
                          .lost_answer = 3,
                          .lost_write = 3,
                          .late_write = 3,
                          .throttled = 2,
                          .unavailable = 2,
                          .delay_max = milliseconds(20)};
    Load load(rig, seed, instances);
    for (int cycle = 0; cycle < 10; ++cycle) {
      Amounts demands;
      for (const auto* name : {"A", "B", "C", "D", "E", "F"})
        demands[name] = load.Below(3) == 0 ? 0 : load.Below(40);
      load.Send(demands, milliseconds(0), kCycle);
      if (load.Below(8) == 0) rig.Run(kCycle);
      rig.Run(kCycle);
    }
    uint64_t admitted = 0;
    for (const auto& [cycle, sum] : rig.admitted_in) {
      EXPECT_LE(sum, 40u) << "seed " << seed << ", cycle " << cycle;
      admitted += sum;
    }
    EXPECT_GT(admitted, 150u) << "seed " << seed;
  }
}

TEST(FleetRounds, WhatOneInstanceLeavesAnotherCanUse) {
  FleetRig rig(3, FourShareForty());
  rig.service.faults.delay_max = milliseconds(2);
  Load load(rig, 1, 3);
  // All of B's requests come to the last instance.
  for (size_t i = 0; i < 4; ++i) rig.Send({}, 0, std::string(1, static_cast<char>('A' + i)));
  for (int i = 0; i < 30; ++i) rig.Send(milliseconds(100 * i + 200), 2, "B");
  rig.Run(kCycle);
  EXPECT_EQ(rig.TakeAdmitted(), (Amounts{{"A", 1}, {"B", 10}, {"C", 1}, {"D", 1}}));
  EXPECT_EQ(rig.Early(), 0u);
}

TEST(FleetRounds, AreNotTooManyAndNoneWithoutRequests) {
  ShareOptions options = FourShareForty();
  options.pool.capacity = 1'000'000;
  FleetRig rig(3, options);
  rig.service.faults.delay_max = milliseconds(1);
  for (int i = 0; i < 3000; ++i) rig.Send(milliseconds(i), static_cast<size_t>(i % 3), "A");
  rig.Run(seconds(3));
  EXPECT_LT(rig.service.puts, 3u * kFleetRoundsPerSecond);
  EXPECT_EQ(SumOf(rig.TakeAdmitted()), 3000u);
  rig.Run(seconds(9));
  uint64_t puts = rig.service.puts;
  rig.Run(seconds(60));
  EXPECT_LE(rig.service.puts, puts + 3 * 8) << "a look in each cycle, and lost races";
  rig.Run(seconds(120));
  puts = rig.service.puts;
  rig.Run(seconds(1000));
  EXPECT_EQ(rig.service.puts, puts) << "the client has left";
}

TEST(FleetRounds, TakeAheadOfRequestsIfThereIsPlenty) {
  ShareOptions options = FourShareForty();
  options.pool.capacity = 1'000'000;
  FleetRig rig(3, options);
  rig.service.faults.delay_max = milliseconds(1);
  for (int i = 0; i < 6000; ++i) rig.Send(milliseconds(i / 2), static_cast<size_t>(i % 3), "A");
  rig.Run(seconds(4));
  uint64_t waited = 0;
  for (size_t i = 0; i < 3; ++i) waited += rig[i].pool->figures().waited;
  EXPECT_LT(waited, 600u) << "a tenth";
  EXPECT_EQ(SumOf(rig.TakeAdmitted()), 6000u);
}

TEST(FleetRounds, PartsOfADeadInstanceAreLostUntilTheCycleEnds) {
  ShareOptions options = FourShareForty();
  options.pool.capacity = 400;
  options.pool.is_paced = false;
  FleetRig rig(3, options);
  rig.service.faults.delay_max = milliseconds(1);
  for (int i = 0; i < 40; ++i) rig.Send(milliseconds(2 * i), 0, "A");
  rig.Run(milliseconds(90));
  rig[0].is_dead = true;
  const uint64_t before = SumOf(rig.TakeAdmitted());
  for (int i = 0; i < 600; ++i) rig.Send(milliseconds(10 * i), 1 + static_cast<size_t>(i % 2), "A");
  rig.Run(milliseconds(9'890));
  const uint64_t after = SumOf(rig.TakeAdmitted());
  EXPECT_LE(before + after, 400u);
  EXPECT_GT(before + after, 350u);
  for (int i = 0; i < 600; ++i)
    rig.Send(milliseconds(100 + 10 * i), 1 + static_cast<size_t>(i % 2), "A");
  rig.Run(milliseconds(9'900));
  EXPECT_EQ(SumOf(rig.TakeAdmitted()), 400u);
}

// Parts that expire unspent, and requests that are denied while another instance holds a part.
TEST(FleetRounds, LittleOfTheCapacityIsLostUnderOverload) {
  for (const uint64_t capacity : {40u, 400u, 1'000u}) {
    ShareOptions options = FourShareForty();
    options.pool.capacity = capacity;
    FleetRig rig(3, options, capacity);
    rig.service.faults.delay_max = milliseconds(2);
    Load load(rig, capacity, 3);
    Introduce(rig);
    rig.Run(milliseconds(100));
    for (int cycle = 1; cycle <= 5; ++cycle) {
      for (const auto* name : {"A", "B", "C", "D"})
        load.Send({{name, capacity / 2}}, milliseconds(0), kCycle);
      rig.Run(kCycle);
    }
    // Without the first and the last cycle, which the load does not fill.
    for (uint64_t cycle = 2; cycle <= 5; ++cycle) {
      EXPECT_GE(rig.admitted_in[cycle], capacity * 99 / 100) << capacity << ", cycle " << cycle;
      EXPECT_LE(rig.admitted_in[cycle], capacity);
    }
    EXPECT_EQ(rig.Early(), 0u);
  }
}

// ---- Without the store

TEST(FleetRounds, WithoutTheStoreAnInstanceHasItsPartOfTheCapacity) {
  FleetRig rig(2, FourShareForty());
  rig.service.faults.delay_max = milliseconds(1);
  rig.Send({}, 0, "A");
  rig.Send({}, 1, "A");
  rig.Run(seconds(1));
  EXPECT_EQ(SumOf(rig.TakeAdmitted()), 2u);
  rig.service.faults.unavailable = 100;
  for (int i = 0; i < 3000; ++i) rig.Send(milliseconds(10 * i), 0, "A");
  rig.Run(seconds(1));
  EXPECT_THAT(rig[0].alone_changes, ElementsAre(true));
  EXPECT_THAT(rig[1].alone_changes, IsEmpty()) << "nobody asks it";
  const uint64_t first = SumOf(rig.TakeAdmitted());
  EXPECT_LE(first, 20u);
  rig.Run(seconds(19));
  EXPECT_LE(SumOf(rig.TakeAdmitted()) + first, 60u) << "three cycles of its own at most";
  EXPECT_GE(first, 10u);
  rig.service.faults.unavailable = 0;
  rig.Run(seconds(1));
  EXPECT_THAT(rig[0].alone_changes, ElementsAre(true, false));
  EXPECT_EQ(rig[0].rounds->counters().went_alone.value(), 1u);
}

TEST(FleetRounds, TheStoreComesBackWithoutAFreshAllowance) {
  FleetRig rig(1, FourShareForty());
  rig.service.faults.delay_max = milliseconds(1);
  rig.Send({}, 0, "A");
  rig.Run(milliseconds(100));
  rig.service.faults.unavailable = 100;
  rig.Run(seconds(12));
  // The cycle in the store has ended. The instance's own begins with its first request.
  for (int i = 0; i < 2000; ++i) rig.Send(milliseconds(i), 0, "A");
  rig.TakeAdmitted();
  rig.Run(seconds(2));
  EXPECT_EQ(SumOf(rig.TakeAdmitted()), 40u) << "its own pool";
  rig.service.faults.unavailable = 0;
  for (int i = 0; i < 2000; ++i) rig.Send(milliseconds(i), 0, "A");
  rig.Run(seconds(4));
  EXPECT_FALSE(rig[0].pool->is_alone());
  EXPECT_EQ(SumOf(rig.TakeAdmitted()), 0u) << "the new cycle has been charged";
  rig.Run(seconds(8));
  rig.Send({}, 0, "A");
  rig.Run(seconds(1));
  EXPECT_EQ(SumOf(rig.TakeAdmitted()), 1u);
}

TEST(FleetRounds, AShortOutageIsNoticedByNobodyWhoHasAPart) {
  ShareOptions options = FourShareForty();
  options.pool.capacity = 100'000;
  FleetRig rig(1, options);
  rig.service.faults.delay_max = milliseconds(1);
  for (int i = 0; i < 1000; ++i) rig.Send(milliseconds(i), 0, "A");
  rig.Run(milliseconds(500));
  rig.service.faults.unavailable = 100;
  rig.Run(milliseconds(100));
  rig.service.faults.unavailable = 0;
  rig.Run(milliseconds(1000));
  EXPECT_EQ(SumOf(rig.TakeAdmitted()), 1000u);
  EXPECT_THAT(rig[0].alone_changes, IsEmpty());
}

// ---- Values and settings

TEST(FleetRounds, AForeignValueIsReplacedAndCounted) {
  FleetRig rig(1, FourShareForty());
  rig.service.values[ValueName("default")] = {.bytes = "something else", .version = {}};
  rig.Send({}, 0, "A");
  rig.Run(seconds(1));
  EXPECT_EQ(SumOf(rig.TakeAdmitted()), 1u);
  EXPECT_THAT(rig[0].replaced, ElementsAre(Unusable::kCorrupt));
  EXPECT_EQ(rig[0].rounds->counters().replaced_corrupt.value(), 1u);
  EXPECT_EQ(rig.Capacities(), (Amounts{{"A", 40}}));
}

TEST(FleetRounds, AValueOfTheFutureIsReplacedAndCounted) {
  FleetRig rig(1, FourShareForty());
  auto pool = *algorithm::FairSharePool::Make(FourShareForty().pool);
  pool.AddDemand({.client = "Z"}, rig.now() + seconds(100));
  store::cas::Envelope envelope{.generation = 5};
  rig.service.values[ValueName("default")] = {.bytes = Write(pool, envelope), .version = {}};
  rig.Send({}, 0, "A");
  rig.Run(seconds(1));
  EXPECT_THAT(rig[0].replaced, ElementsAre(Unusable::kAhead));
  EXPECT_EQ(rig.Capacities(), (Amounts{{"A", 40}}));
}

TEST(FleetRounds, TheSettingsOfWhoStartsLastApplyFromTheNextCycle) {
  FleetRig rig(2, FourShareForty());
  rig.Send({}, 0, "A");
  rig.Send(milliseconds(10), 1, "A");
  rig.Run(seconds(1));
  EXPECT_THAT(rig[0].heard, IsEmpty());
  ShareOptions other = FourShareForty();
  other.pool.capacity = 60;
  other.pool.cycle = seconds(5);
  rig.Add(other);
  rig.Send({}, 2, "A");
  rig.Send(milliseconds(100), 0, "A");
  rig.Run(seconds(1));
  ASSERT_EQ(rig[2].heard.size(), 1u);
  EXPECT_TRUE(rig[2].heard[0].second) << "it has replaced them";
  ASSERT_EQ(rig[0].heard.size(), 1u);
  EXPECT_FALSE(rig[0].heard[0].second);
  EXPECT_EQ(rig[0].heard[0].first.capacity, 60u);
  EXPECT_EQ(rig.Capacities(), (Amounts{{"A", 40}}));
  rig.Run(seconds(9));
  rig.Send({}, 0, "A");
  rig.Run(seconds(1));
  EXPECT_EQ(rig.Capacities(), (Amounts{{"A", 60}}));
  EXPECT_EQ(rig.Stored().options().cycle, seconds(5));
  EXPECT_EQ(rig[0].heard.size(), 1u) << "told once";
}

TEST(FleetRounds, PassthroughLetsEverythingThroughAndCountsWhatWouldHaveBeenRefused) {
  ShareOptions options = FourShareForty();
  options.mode = Mode::kPassthrough;
  FleetRig rig(2, options);
  rig.service.faults.delay_max = milliseconds(2);
  for (int i = 0; i < 100; ++i) rig.Send(milliseconds(20 * i), static_cast<size_t>(i % 2), "A");
  rig.Run(seconds(4));
  EXPECT_EQ(SumOf(rig.TakeAdmitted()), 100u);
  uint64_t allowed = 0, rejected = 0, counted_only = 0;
  for (size_t i = 0; i < 2; ++i) {
    PoolSnapshot snapshot;
    rig[i].pool->TakeSnapshot(rig.now(), snapshot);
    allowed += snapshot.counts.allowed;
    rejected += snapshot.counts.rejected;
    counted_only += snapshot.counted_only;
  }
  EXPECT_EQ(allowed, 40u);
  EXPECT_EQ(rejected, 60u);
  EXPECT_EQ(counted_only, 60u);
}

// Counters must not go back, or monitoring takes it for a restart.
TEST(FleetRounds, CountsTheCyclesThatEndAlsoAfterAnOutageAndALoss) {
  FleetRig rig(1, FourShareForty());
  const auto ended = [&rig] {
    PoolSnapshot snapshot;
    rig[0].pool->TakeSnapshot(rig.now(), snapshot);
    return snapshot.cycle.ends[0];
  };
  const auto ask_for = [&rig](Duration time) {
    for (Duration at{}; at < time; at += milliseconds(500)) rig.Send(at, 0, "A");
    rig.Run(time);
  };
  ask_for(seconds(35));
  EXPECT_EQ(ended(), 3u);
  rig.service.faults.unavailable = 100;
  ask_for(seconds(12));
  EXPECT_TRUE(rig[0].pool->figures().is_alone);
  EXPECT_EQ(ended(), 3u);
  rig.service.faults.unavailable = 0;
  ask_for(seconds(10));
  EXPECT_FALSE(rig[0].pool->figures().is_alone);
  EXPECT_EQ(ended(), 5u);
  rig.service.values.clear();
  ask_for(seconds(20));
  EXPECT_GE(ended(), 6u);
  const uint64_t before = ended();
  FleetRig::Instance& late = rig.Add(FourShareForty());
  rig.Send({}, 1, "B");
  ask_for(seconds(10));
  PoolSnapshot snapshot;
  late.pool->TakeSnapshot(rig.now(), snapshot);
  EXPECT_LE(snapshot.cycle.ends[0], 1u) << "an instance counts what it has seen";
  EXPECT_EQ(ended(), before + 1);
}

TEST(FleetRounds, CountsTheClientsThatLeaveInItsRounds) {
  ShareOptions options = FourShareForty();
  options.pool.leave_after_cycles = 2;
  FleetRig rig(2, options);
  rig.Send({}, 0, "A");
  rig.Send({}, 1, "B");
  for (int i = 0; i < 100; ++i) rig.Send(milliseconds(500 * i), static_cast<size_t>(i % 2), "C");
  rig.Run(seconds(50));
  uint64_t left = 0;
  for (size_t i = 0; i < 2; ++i) {
    PoolSnapshot snapshot;
    rig[i].pool->TakeSnapshot(rig.now(), snapshot);
    left += snapshot.clients_left;
  }
  EXPECT_EQ(left, 2u);
}

}  // namespace fleet_rounds_test
}  // namespace headgate::share::fleet
