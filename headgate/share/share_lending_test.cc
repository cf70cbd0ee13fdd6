// The pool keeps shares for clients that are silent or ask for little. It lends them in time, and
// in equal parts.
#include <chrono>
#include <string>
#include <vector>

#include "headgate/share/crowd_rig.h"

namespace headgate::share {
namespace share_lending_test {

using enum Temper;
using std::chrono::seconds;

using Members = std::vector<CrowdMember>;

std::vector<CrowdRig::Cycles> RunCrowd(uint64_t capacity, const Members& members, size_t cycles,
                                       base::Duration cycle = seconds(10)) {
  const auto pool =
      *SharePool::Make({.pool = {.capacity = capacity, .cycle = cycle, .reservation = {1, 10}}});
  return CrowdRig(*pool, cycle, members, 1).Run(cycles);
}

// ---- Names that are gone

constexpr size_t kRound = 9;  // cycles
constexpr size_t kRounds = 10;

// Each of the ghosts storms late in one cycle of a round, and is silent for the others.
Members WithGhosts(CrowdMember member, uint64_t capacity, size_t ghosts) {
  Members members = {std::move(member)};
  for (size_t i = 0; i < ghosts; ++i) {
    members.push_back({.name = "ghost" + std::to_string(i),
                       .temper = kAtOneTime,
                       .per_second = static_cast<double>(capacity) * 0.45,
                       .phase = 90 + static_cast<int>(i % 10),
                       .every = kRound});
  }
  return members;
}

// Counts the first client, in the rounds after the first one, from this cycle of each on.
Counted SumOfRounds(const std::vector<CrowdRig::Cycles>& counted, size_t from) {
  Counted sum;
  for (size_t cycle = kRound; cycle < kRound * kRounds; ++cycle) {
    if (cycle % kRound < from) continue;
    sum.asked += counted[0][cycle].asked;
    sum.passed += counted[0][cycle].passed;
  }
  return sum;
}

uint64_t RefusedPerMille(const Counted& sum) { return (sum.asked - sum.passed) * 1000 / sum.asked; }

// A client asks for three quarters of the pool at random times.
TEST(ShareLending, LittleIsKeptForAStormThatIsGone) {
  for (const uint64_t capacity : {40u, 400u, 4000u}) {
    const CrowdMember random{
        .name = "random", .temper = kQuiet, .per_second = static_cast<double>(capacity) * 0.075};
    for (const size_t ghosts : {1u, 3u, 10u}) {
      const bool is_crowded = capacity == 40 && ghosts == 10;  // an even share is less than 4
      const auto counted =
          RunCrowd(capacity, WithGhosts(random, capacity, ghosts), kRound * kRounds);
      EXPECT_LE(RefusedPerMille(SumOfRounds(counted, 0)), is_crowded ? 300u : 90u)
          << capacity << ", " << ghosts << " ghosts";
      EXPECT_LE(RefusedPerMille(SumOfRounds(counted, 2)), is_crowded ? 250u : 50u)
          << capacity << ", " << ghosts << " ghosts, after the first silent cycle";
    }
  }
}

TEST(ShareLending, AClientHasThePoolOfAStormThatIsGone) {
  for (const uint64_t capacity : {40u, 400u, 4000u}) {
    for (const Temper temper : {kObedient, kObeysRemaining, kStorm}) {
      const CrowdMember member{.name = "A",
                               .temper = temper,
                               .per_second = std::max(100.0, static_cast<double>(capacity) / 5)};
      const auto counted = RunCrowd(capacity, WithGhosts(member, capacity, 3), kRound * kRounds);
      const uint64_t whole = capacity * (kRounds - 1);
      EXPECT_GE(SumOfRounds(counted, 0).passed * 100, whole * kRound * 83) << capacity;
      EXPECT_GE(SumOfRounds(counted, 3).passed * 100, whole * (kRound - 3) * 90) << capacity;
    }
  }
}

// ---- Quiet clients, and two that want the same

struct Pair {
  uint64_t least_percent = 0;  // of the one with less, in percent of the other
  uint64_t used_percent = 0;   // of the pool
  uint64_t refused = 0;        // of the quiet
  std::string text;
};

Pair Observe(uint64_t capacity, Temper temper, const Members& quiet,
             base::Duration cycle = seconds(10)) {
  constexpr size_t kCycles = 60, kCyclesToLearn = 4;
  const double storm =
      std::max(30.0, 2 * static_cast<double>(capacity) / static_cast<double>(cycle / seconds(1)));
  Members members = {{.name = "A", .temper = temper, .per_second = 200},
                     {.name = "storm", .temper = kStorm, .per_second = storm}};
  members.insert(members.end(), quiet.begin(), quiet.end());
  const auto counted = RunCrowd(capacity, members, kCycles, cycle);
  std::vector<Counted> sums(members.size());
  uint64_t passed = 0;
  for (size_t i = 0; i < members.size(); ++i) {
    for (size_t number = kCyclesToLearn; number < kCycles; ++number) {
      sums[i].asked += counted[i][number].asked;
      sums[i].passed += counted[i][number].passed;
    }
    passed += sums[i].passed;
  }
  Pair pair;
  const auto [less, more] = std::minmax(sums[0].passed, sums[1].passed);
  pair.least_percent = less * 100 / more;
  pair.used_percent = passed * 100 / (capacity * (kCycles - kCyclesToLearn));
  for (size_t i = 2; i < members.size(); ++i) pair.refused += sums[i].asked - sums[i].passed;
  const double cycles = kCycles - kCyclesToLearn;
  pair.text = std::to_string(capacity) + ": " +
              std::to_string(static_cast<double>(sums[0].passed) / cycles) + ", storm " +
              std::to_string(static_cast<double>(sums[1].passed) / cycles) + ", used " +
              std::to_string(pair.used_percent) + " %, refused " + std::to_string(pair.refused);
  return pair;
}

// Each asks for one in a cycle, at the same time.
Members AtOneTime(size_t count, int phase) {
  Members members;
  for (size_t i = 0; i < count; ++i) {
    members.push_back({.name = "late" + std::to_string(i),
                       .temper = kAtOneTime,
                       .per_second = 1,
                       .phase = phase + static_cast<int>(i)});
  }
  return members;
}

TEST(ShareLending, WhatIsKeptForLateRequestsIsLentInEqualParts) {
  for (const Temper temper : {kObedient, kObeysRemaining}) {
    for (const uint64_t capacity : {40u, 80u, 400u}) {
      for (const size_t count : {1u, 3u}) {
        for (const int phase : {10, 70, 95}) {
          const Pair pair = Observe(capacity, temper, AtOneTime(count, phase));
          // If they have asked before the end, a little more trickles after the last look.
          EXPECT_GE(pair.least_percent, capacity == 40 && phase == 70 ? 85u : 90u)
              << count << " at " << phase << " %, " << pair.text;
          EXPECT_GE(pair.used_percent, 94u) << count << " at " << phase << " %, " << pair.text;
          EXPECT_EQ(pair.refused, 0u) << count << " at " << phase << " %, " << pair.text;
        }
      }
    }
    const Pair pair = Observe(40, temper, AtOneTime(3, 95), seconds(2));
    EXPECT_GE(pair.least_percent, 90u) << pair.text;
    EXPECT_GE(pair.used_percent, 93u) << pair.text;
    EXPECT_EQ(pair.refused, 0u) << pair.text;
  }
}

// A part of the amount that is kept for requests at random times is lent after the last look of an
// obedient client. The smaller the numbers, the larger this part.
TEST(ShareLending, TwoBesideQuietClientsGetAboutTheSame) {
  for (const uint64_t capacity : {40u, 400u}) {
    for (const int percent : {10, 30, 50}) {
      Members quiet;
      for (int i = 0; i < 3; ++i) {
        quiet.push_back({.name = "quiet" + std::to_string(i),
                         .temper = kQuiet,
                         .per_second = static_cast<double>(capacity) / 5 * percent / 1000});
      }
      const Pair pair = Observe(capacity, kObedient, quiet);
      const uint64_t least = capacity == 400 ? 95 : percent == 10 ? 90 : percent == 30 ? 85 : 80;
      EXPECT_GE(pair.least_percent, least) << percent << " %, " << pair.text;
      EXPECT_GE(pair.used_percent, 93u) << percent << " %, " << pair.text;
      EXPECT_LE(pair.refused, 5u) << percent << " %, " << pair.text;
    }
  }
}

// The example of the documentation: three ask for 4 each in a cycle, at even times, and the fourth
// for all it can get.
TEST(ShareLending, TheExample) {
  const auto pool =
      *SharePool::Make({.pool = {.capacity = 40, .cycle = seconds(10), .reservation = {1, 10}}});
  const auto at = [](size_t cycle, int percent) {
    return base::Instant::FromNanos(0) + seconds(10) * cycle + seconds(10) * percent / 100;
  };
  const auto ask_for_all = [&](base::Instant now) {
    uint64_t passed = 0;
    for (int i = 0; i < 60; ++i) passed += pool->Admit("fourth", 1, now).admitted;
    return passed;
  };
  for (size_t cycle = 0; cycle < 9; ++cycle) {
    const uint64_t at_once = ask_for_all(at(cycle, 0));
    uint64_t in_the_middle = 0;
    for (const int percent : {12, 37, 50, 62, 87}) {
      if (percent == 50) {
        in_the_middle = ask_for_all(at(cycle, percent));
        continue;
      }
      for (const auto* name : {"A", "B", "C"}) {
        const bool passed = pool->Admit(name, 1, at(cycle, percent)).admitted;
        EXPECT_TRUE(passed || cycle == 0) << name << " in cycle " << cycle;  // nobody knew it then
      }
    }
    if (cycle == 8) {
      EXPECT_EQ(at_once, 19u);
      EXPECT_EQ(at_once + in_the_middle, 40u - 6 - 13);
    }
  }
}

}  // namespace share_lending_test
}  // namespace headgate::share
