// Quiet, obedient and greedy clients share a pool with the default settings of a sidecar.
#include <chrono>
#include <string>
#include <vector>

#include "headgate/share/crowd_rig.h"

namespace headgate::share {
namespace share_crowd_test {

using base::Duration;
using std::chrono::milliseconds;
using std::chrono::seconds;

using Members = std::vector<CrowdMember>;

ShareOptions Defaults(uint64_t capacity, Duration cycle = seconds(10)) {
  return {.pool = {.capacity = capacity, .cycle = cycle, .reservation = {1, 10}}};
}

Counted Sum(const CrowdRig::Cycles& cycles, size_t from, size_t end) {
  Counted sum;
  for (size_t i = from; i < end; ++i) {
    sum.asked += cycles[i].asked;
    sum.passed += cycles[i].passed;
  }
  return sum;
}

// All names are known to the pool, and begin in the same moment.
std::vector<CrowdRig::Cycles> RunCrowd(const ShareOptions& options, const Members& members,
                                       size_t cycles, uint64_t seed = 1) {
  const auto pool = *SharePool::Make(options);
  return CrowdRig(*pool, options.pool.cycle, members, seed).Run(cycles);
}

// ---- Quiet clients beside a storm

// The refused requests of the quiet clients, in thousandths of those that they sent. One client in
// `clients` is a storm of ten times the capacity, the others ask for `percent` of an even share.
// With a silence, the others ask in that many cycles and then not in as many. In the first cycle
// the storm comes before the others.
uint64_t RefusedPerMille(uint64_t even, size_t clients, uint64_t percent, size_t cycles,
                         double storm = 10, int silence = 0) {
  const uint64_t capacity = even * clients;
  Members members;
  for (size_t i = 1; i < clients; ++i) {
    members.push_back({.name = "quiet" + std::to_string(i),
                       .temper = silence > 0 ? Temper::kComesAndGoes : Temper::kQuiet,
                       .per_second = static_cast<double>(even * percent) / 1000,
                       .silence = silence});
  }
  members.push_back({.name = "storm",
                     .temper = Temper::kStorm,
                     .per_second = storm * static_cast<double>(capacity) / 10});
  Counted quiet, all;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const auto counted = RunCrowd(Defaults(capacity), members, cycles, seed);
    for (size_t i = 0; i < counted.size(); ++i) {
      const Counted sum = Sum(counted[i], 1, cycles);
      if (i + 1 < counted.size()) {
        quiet.asked += sum.asked;
        quiet.passed += sum.passed;
      }
      all.passed += sum.passed;
    }
  }
  EXPECT_GE(all.passed * 100, 85 * 3 * capacity * (cycles - 1)) << "the storm has what is left";

  return ((quiet.asked - quiet.passed) * 1000 + quiet.asked / 2) / quiet.asked;
}

TEST(ShareCrowd, QuietClientsAreHardlyRefusedBesideAStorm) {
  for (const size_t clients : {2u, 4u, 10u}) {
    const size_t cycles = clients == 2 ? 300 : 100;
    EXPECT_LE(RefusedPerMille(10, clients, 10, cycles), 35u) << "of one request in a cycle";
    EXPECT_LE(RefusedPerMille(10, clients, 30, cycles), 10u) << clients << " clients";
    EXPECT_LE(RefusedPerMille(10, clients, 50, cycles), 10u) << clients << " clients";
    // 5.3 % of requests at random times come when their client has used an even share of 10.
    EXPECT_LE(RefusedPerMille(10, clients, 80, cycles), 60u) << clients << " clients";
  }
  for (const size_t clients : {2u, 4u}) {
    EXPECT_LE(RefusedPerMille(100, clients, 30, 40, 4), 10u) << clients << " clients";
    EXPECT_LE(RefusedPerMille(100, clients, 50, 40, 4), 10u) << clients << " clients";
    EXPECT_LE(RefusedPerMille(100, clients, 80, 40, 4), 60u) << clients << " clients";
  }
  EXPECT_LE(RefusedPerMille(1000, 4, 80, 20, 2), 10u);
}

TEST(ShareCrowd, QuietClientsThatComeBackAreHardlyRefused) {
  for (const int silence : {3, 5, 8}) {
    for (const uint64_t percent : {30u, 50u, 80u}) {
      const uint64_t most = percent == 80 ? 60 : 10;
      EXPECT_LE(RefusedPerMille(10, 4, percent, 100, 10, silence), most) << silence << " cycles";
      EXPECT_LE(RefusedPerMille(100, 4, percent, 40, 4, silence), most) << silence << " cycles";
      EXPECT_LE(RefusedPerMille(1000, 2, percent, 20, 2, silence), most) << silence << " cycles";
    }
  }
}

// A client asks for its even share at the same time of each cycle, beside a storm.
TEST(ShareCrowd, ABatchAtTheSameTimeOfEachCycleFindsItsOwn) {
  for (const int phase : {10, 30, 45, 55, 70, 80, 90, 95}) {
    for (const double batch : {5, 10}) {
      const auto counted = RunCrowd(
          Defaults(40),
          {{.name = "A", .temper = Temper::kAtOneTime, .per_second = batch, .phase = phase},
           {.name = "B", .temper = Temper::kAtOneTime, .per_second = batch, .phase = phase},
           {"C", Temper::kQuiet, 0.3},
           {"D", Temper::kStorm, 40}},
          30);
      const Counted a = Sum(counted[0], 4, 30);
      EXPECT_GE(a.passed * 100, a.asked * 98) << batch << " at " << phase << " %";
    }
  }
}

// ---- Idle shares

// Three clients that the pool knows are silent.
TEST(ShareCrowd, AnActiveClientAloneHasThePoolWithinTwoCycles) {
  for (const Duration cycle : {Duration(seconds(1)), Duration(seconds(2)), Duration(seconds(10))}) {
    for (const Temper temper : {Temper::kObedient, Temper::kObeysRemaining, Temper::kStorm}) {
      const auto counted = RunCrowd(
          Defaults(40, cycle),
          {{"A", Temper::kOnce}, {"C", Temper::kOnce}, {"D", Temper::kOnce}, {"B", temper, 500}},
          8);
      for (size_t i = 1; i < 8; ++i) {
        // In the third cycle at the latest. With a long cycle, in the second one.
        if (i == 1 && cycle < seconds(3)) continue;
        EXPECT_GE(counted[3][i].passed, 36u)
            << "cycle " << i << " of " << cycle / seconds(1) << " s";
        EXPECT_LE(counted[3][i].passed, 40u);
      }
    }
  }
}

TEST(ShareCrowd, ClientsThatWantTheSameGetTheSame) {
  using enum Temper;
  const std::pair<Temper, Temper> pairs[] = {{kObedient, kObedient},
                                             {kObedient, kStorm},
                                             {kObeysRemaining, kStorm},
                                             {kObeysRemaining, kObedient},
                                             {kStorm, kStorm}};
  for (const Duration cycle : {Duration(seconds(2)), Duration(seconds(3)), Duration(seconds(10))}) {
    for (const auto& [one, other] : pairs) {
      const auto counted =
          RunCrowd(Defaults(40, cycle),
                   {{"A", kOnce}, {"D", kOnce}, {"B", one, 500}, {"C", other, 500}}, 20);
      const uint64_t b = Sum(counted[2], 3, 20).passed, c = Sum(counted[3], 3, 20).passed;
      const std::string trace = std::to_string(static_cast<int>(one)) + " beside " +
                                std::to_string(static_cast<int>(other)) + ", " +
                                std::to_string(cycle / seconds(1)) + " s";
      EXPECT_GE(b * 10, c * 9) << trace;
      EXPECT_GE(c * 10, b * 9) << trace;
      EXPECT_GE(b + c, 17u * 36) << trace;
    }
  }
}

// B and C want 20 each, at random times, and C repeats what is refused at once, without an end.
TEST(ShareCrowd, AttemptsBeyondTheCapacityTakeNothing) {
  using enum Temper;
  for (const double attempts : {40, 1000}) {
    const auto counted = RunCrowd(
        Defaults(40), {{"A", kOnce}, {"D", kOnce}, {"B", kQuiet, 2}, {"C", kStorm, attempts}}, 40);
    const Counted b = Sum(counted[2], 2, 40);
    EXPECT_GE(b.passed * 10, b.asked * 8) << attempts;
  }
}

// The worked example, whose clients ask at the beginning of each cycle. They do not look at the
// answers, and come back when the next cycle begins. With a short cycle that is soon after they
// were told to.
TEST(ShareCrowd, ClientsThatAskAtTheBeginningGetTheirCapacities) {
  for (const Duration cycle : {Duration(seconds(1)), Duration(seconds(2)), Duration(seconds(10))}) {
    const auto pool = *SharePool::Make(Defaults(40, cycle));
    const auto ask = [&](const char* name, int count, base::Instant now) {
      uint64_t passed = 0;
      for (int i = 0; i < count; ++i) passed += pool->Admit(name, 1, now).admitted;
      return passed;
    };
    const auto at = [&](int number, int percent) {
      return base::Instant::FromNanos(0) + cycle * number + cycle * percent / 100;
    };
    for (const auto* name : {"A", "B", "C", "D"}) EXPECT_EQ(ask(name, 1, at(0, 0)), 1u);
    // Each asks before the middle of the cycle, in any order.
    EXPECT_EQ(ask("C", 9, at(0, 1)), 9u);
    EXPECT_EQ(ask("A", 1, at(0, 20)), 1u);
    EXPECT_EQ(ask("B", 14, at(0, 30)), 9u);
    EXPECT_EQ(ask("D", 9, at(0, 40)), 9u);
    EXPECT_EQ(ask("C", 50, at(1, 1)), 10u);
    EXPECT_EQ(ask("B", 15, at(1, 10)), 15u);
    EXPECT_EQ(ask("D", 10, at(1, 20)), 10u);
    EXPECT_EQ(ask("A", 3, at(1, 30)), 3u);
    EXPECT_EQ(ask("D", 5, at(2, 1)), 5u);
    EXPECT_EQ(ask("C", 50, at(2, 10)), 16u);
    EXPECT_EQ(ask("B", 15, at(2, 20)), 11u);
    EXPECT_EQ(ask("B", 30, at(3, 10)), 12u);
    EXPECT_EQ(ask("C", 50, at(3, 20)), 22u);
    EXPECT_EQ(ask("D", 5, at(3, 20)), 5u);
    EXPECT_EQ(ask("A", 5, at(3, 30)), 1u);
  }
}

// ---- The pace within a cycle

// A service that can do 790 per second gets twice that. The cycle has 7,900.
TEST(ShareCrowd, AStormComesAtTheRateOfThePool) {
  using enum Temper;
  for (const Members& members :
       {Members{{"storm", kStorm, 1580}}, Members{{"one", kStorm, 790}, {"other", kStorm, 790}},
        Members{{"quiet", kQuiet, 200}, {"storm", kStorm, 1380}}}) {
    const auto pool = *SharePool::Make(Defaults(7900));
    // Counts each second.
    const auto counted = CrowdRig(*pool, seconds(1), members, 1).Run(60);
    uint64_t sum = 0;
    for (size_t second = 0; second < 60; ++second) {
      uint64_t passed = 0;
      for (const CrowdRig::Cycles& client : counted) passed += client[second].passed;
      if (second >= 10) sum += passed;
      // An eighth of the capacity at once, when nobody had asked before.
      EXPECT_LE(passed, second < 2 ? 987u + 800 : 790u * 3 / 2) << "second " << second;
    }
    EXPECT_GE(sum, 7900u * 5 * 95 / 100);
  }
}

// Nobody asks for half of the cycle. The rest of the capacity may come at twice the rate at most.
TEST(ShareCrowd, APauseIsNoBurst) {
  const auto pool = *SharePool::Make(Defaults(7900));
  const auto at = [](Duration time) { return base::Instant::FromNanos(0) + time; };
  pool->Admit("A", 1, at(seconds(0)));
  uint64_t in_a_second = 0, in_all = 0;
  for (int ms = 5000; ms < 10'000; ++ms) {
    for (int i = 0; i < 4; ++i) {
      const bool passed = pool->Admit("A", 1, at(milliseconds(ms))).admitted;
      in_all += passed;
      in_a_second += passed && ms < 6000;
    }
  }
  EXPECT_LE(in_a_second, 987u + 2 * 790);
  EXPECT_GE(in_all, 7900u * 9 / 10);
}

// ---- More clients than units

TEST(ShareCrowd, MoreClientsThanUnitsTakeTurns) {
  Members members;
  for (int i = 0; i < 11; ++i)
    members.push_back({"client" + std::to_string(i), Temper::kAtTheBeginning, 3});
  const auto counted = RunCrowd(Defaults(10), members, 12);
  for (const CrowdRig::Cycles& client : counted) {
    const uint64_t passed = Sum(client, 1, 12).passed;
    EXPECT_GE(passed, 9u);
    EXPECT_LE(passed, 11u);
  }
}

// A hundred names were seen once, in the last cycle.
TEST(ShareCrowd, NamesThatAreGoneHoldNothing) {
  const auto pool = *SharePool::Make(Defaults(40));
  const auto at = [](Duration time) { return base::Instant::FromNanos(0) + time; };
  for (const auto* name : {"A", "B"}) pool->Admit(name, 1, at(seconds(0)));
  for (int i = 0; i < 100; ++i) pool->Admit("name" + std::to_string(i), 1, at(seconds(5)));
  uint64_t passed = 0;
  for (int i = 0; i < 100; ++i)
    passed += pool->Admit("A", 1, at(seconds(10) + milliseconds(i))).admitted;
  EXPECT_GE(passed, 30u);
}

}  // namespace share_crowd_test
}  // namespace headgate::share
