// Clients that want the same get the same, whatever their temper and however large the pool is.
#include <chrono>
#include <string>
#include <vector>

#include "headgate/share/crowd_rig.h"

namespace headgate::share {
namespace share_pairs_test {

using enum Temper;
using std::chrono::seconds;

constexpr base::Duration kCycle = seconds(10);
// Cycles until a pool knows its clients.
constexpr size_t kCyclesToLearn = 2;
constexpr size_t kCycles = 8;
constexpr uint64_t kCapacities[] = {40, 400, 4000, 40'000};

const char* WordOf(Temper temper) {
  switch (temper) {
    case kQuiet:
      return "random";
    case kStorm:
      return "storm";
    case kObedient:
      return "Retry-After";
    case kObeysRemaining:
      return "r";
    case kAtTheBeginning:
      return "batch at the beginning";
    case kAtOneTime:
      return "batch late";
    case kFirstHalf:
      return "first half";
    case kSecondHalf:
      return "second half";
    default:
      return "other";
  }
}

// A client that wants twice the even share or more.
CrowdMember Wanting(Temper temper, uint64_t capacity, uint64_t clients, size_t number) {
  const auto whole = static_cast<double>(capacity), cycle = 10.0;
  CrowdMember member{.name = "B" + std::to_string(number), .temper = temper};
  switch (temper) {
    case kQuiet:
      member.per_second = 2 * whole / static_cast<double>(clients) / cycle;
      break;
    case kAtOneTime:
      member.phase = 70;
      [[fallthrough]];
    case kAtTheBeginning:
      member.per_second = 2 * whole / static_cast<double>(clients);
      break;
    default:
      member.per_second = std::max(2 * whole / cycle, 500.0);
  }
  return member;
}

struct Outcome {
  uint64_t passed = 0;  // by all, after the cycles to learn
  // The least that a client has of what it is due, in percent. In each cycle it is due as much as
  // the one that has most, but no more than it has asked for, unless it stops when it is told to.
  uint64_t least_percent = 100;
  std::string text;
};

struct Crowd {
  uint64_t capacity = 0;
  std::vector<Temper> tempers;
  int phase = 0;  // of the first one, in percent of a cycle
  size_t cycles = kCycles;
  size_t silent = 2;  // clients that are silent after their first request
};

Outcome Observe(const Crowd& crowd) {
  const std::vector<Temper>& tempers = crowd.tempers;
  std::vector<CrowdMember> members;
  for (size_t i = 0; i < tempers.size(); ++i) {
    members.push_back(Wanting(tempers[i], crowd.capacity, tempers.size() + crowd.silent, i));
    if (i == 0 && crowd.phase > 0) members.back().phase = crowd.phase;
  }
  for (size_t i = 0; i < crowd.silent; ++i)
    members.push_back({.name = "silent" + std::to_string(i), .temper = kOnce});
  const auto pool = *SharePool::Make(
      {.pool = {.capacity = crowd.capacity, .cycle = kCycle, .reservation = {1, 10}}});
  const auto counted = CrowdRig(*pool, kCycle, members, 1).Run(crowd.cycles);

  Outcome outcome{.text = std::to_string(crowd.capacity) + ", from " + std::to_string(crowd.phase) +
                          " %"};
  for (size_t i = 0; i < tempers.size(); ++i) {
    const bool stops = tempers[i] == kObedient || tempers[i] == kObeysRemaining;
    uint64_t passed = 0, due = 0;
    outcome.text += std::string("\n  ") + WordOf(tempers[i]) + ":";
    for (size_t cycle = 0; cycle < crowd.cycles; ++cycle) {
      uint64_t most = 0;
      for (size_t j = 0; j < tempers.size(); ++j) most = std::max(most, counted[j][cycle].passed);
      const Counted& own = counted[i][cycle];
      outcome.text += " " + std::to_string(own.passed) + "/" + std::to_string(own.asked);
      if (cycle < kCyclesToLearn) continue;
      passed += own.passed;
      due += stops ? most : std::min(most, own.asked);
    }
    outcome.passed += passed;
    outcome.least_percent = std::min(outcome.least_percent, passed * 100 / due);
  }
  return outcome;
}

void ExpectTheSame(const Crowd& crowd, uint64_t used_percent) {
  const Outcome outcome = Observe(crowd);
  EXPECT_GE(outcome.least_percent, 90u) << outcome.text;
  EXPECT_GE(outcome.passed * 100, (crowd.cycles - kCyclesToLearn) * crowd.capacity * used_percent)
      << outcome.text;
}

TEST(SharePairs, TwoThatWantTheSameGetTheSame) {
  const Temper tempers[] = {kObedient, kObeysRemaining, kStorm, kQuiet};
  for (const uint64_t capacity : kCapacities) {
    for (const Temper one : tempers) {
      for (const Temper other : tempers) {
        if (capacity > 400 && one > other) continue;
        ExpectTheSame({.capacity = capacity, .tempers = {one, other}}, 85);
      }
    }
  }
}

// One of them makes its first request in the course of a cycle, and an obedient one looks at
// another time than the other.
TEST(SharePairs, TheMomentOfTheFirstRequestDoesNotMatter) {
  for (const int phase : {13, 50, 95}) {
    for (const Temper one : {kObedient, kObeysRemaining, kStorm}) {
      for (const Temper other : {kObedient, kObeysRemaining, kStorm}) {
        for (const uint64_t capacity : {40u, 400u})
          ExpectTheSame({.capacity = capacity, .tempers = {one, other}, .phase = phase}, 85);
      }
    }
  }
}

// It has all of its part at its first look in some cycles, and is told to wait for the next one.
TEST(SharePairs, AClientThatWaitsForTheEndOfTheCycleGetsTheSame) {
  for (const int phase : {0, 13, 37, 95}) {
    ExpectTheSame({.capacity = 40,
                   .tempers = {kObeysRemaining, kStorm, kStorm},
                   .phase = phase,
                   .cycles = 14},
                  85);
  }
}

TEST(SharePairs, OneAtTheBeginningAndOneLateGetTheSame) {
  for (const uint64_t capacity : kCapacities) {
    ExpectTheSame({.capacity = capacity, .tempers = {kFirstHalf, kSecondHalf}}, 80);
    ExpectTheSame({.capacity = capacity, .tempers = {kSecondHalf, kFirstHalf}}, 80);
    ExpectTheSame({.capacity = capacity, .tempers = {kAtTheBeginning, kAtOneTime}}, 25);
  }
}

TEST(SharePairs, ThreeAndEightGetTheSame) {
  const std::vector<Temper> crowds[] = {
      {kObedient, kStorm, kObeysRemaining},
      {kObedient, kObedient, kObedient},
      {kObedient, kQuiet, kStorm},
      {kObedient, kStorm, kObeysRemaining, kQuiet, kStorm, kObedient, kObeysRemaining, kQuiet}};
  for (const uint64_t capacity : kCapacities) {
    for (const std::vector<Temper>& tempers : crowds)
      ExpectTheSame({.capacity = capacity, .tempers = tempers}, 80);
  }
}

TEST(SharePairs, OneAloneHasThePool) {
  for (const uint64_t capacity : kCapacities) {
    for (const Temper temper : {kObedient, kObeysRemaining, kStorm}) {
      const Outcome outcome = Observe({.capacity = capacity, .tempers = {temper}, .silent = 3});
      EXPECT_GE(outcome.passed * 10, (kCycles - kCyclesToLearn) * capacity * 9) << outcome.text;
    }
  }
}

// Three others asked at random times for five cycles, and are silent for five.
TEST(SharePairs, OneIsAloneWhenTheOthersHaveFallenSilent) {
  for (const uint64_t capacity : kCapacities) {
    for (const int percent : {30, 80}) {
      for (const Temper temper : {kObedient, kObeysRemaining, kStorm}) {
        std::vector<CrowdMember> members = {Wanting(temper, capacity, 4, 0)};
        for (int i = 0; i < 3; ++i) {
          members.push_back({.name = "quiet" + std::to_string(i),
                             .temper = kComesAndGoes,
                             .per_second = static_cast<double>(capacity) / 4 * percent / 1000});
        }
        const auto pool = *SharePool::Make(
            {.pool = {.capacity = capacity, .cycle = kCycle, .reservation = {1, 10}}});
        const auto counted = CrowdRig(*pool, kCycle, members, 1).Run(10);
        for (size_t cycle = 5 + kCyclesToLearn; cycle < 10; ++cycle) {
          EXPECT_GE(counted[0][cycle].passed * 10, capacity * 9)
              << WordOf(temper) << ", others at " << percent << " % of " << capacity;
        }
      }
    }
  }
}

}  // namespace share_pairs_test
}  // namespace headgate::share
