#include "headgate/store/breaker.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace headgate::store {
namespace breaker_test {

using namespace std::chrono_literals;
using Pass = Breaker::Pass;
using State = Breaker::State;
using Outcome = Breaker::Outcome;

base::BootTime At(base::Duration d) { return base::BootTime{0} + 1h + d; }

constexpr BreakerOptions kExact = {.no_progress = 0s, .jitter_percent = 0};

void Fail(Breaker& breaker, int times, base::BootTime now) {
  for (int i = 0; i < times; ++i) breaker.Finish(breaker.Ask(now), Outcome::kFailure, now);
}

TEST(Breaker, OpensAfterFiveFailuresInARow) {
  Breaker breaker(kExact, 1);
  Fail(breaker, 4, At(0s));
  breaker.Finish(breaker.Ask(At(0s)), Outcome::kSuccess, At(0s));
  Fail(breaker, 4, At(0s));
  EXPECT_EQ(breaker.Ask(At(0s)), Pass::kCall);
  Fail(breaker, 1, At(0s));
  EXPECT_EQ(breaker.Ask(At(0s)), Pass::kRefused);
  EXPECT_EQ(breaker.opened(), 1u);
}

TEST(Breaker, ABurstOfFailuresIsNoOutage) {
  Breaker breaker({}, 1);
  Fail(breaker, 1000, At(0s));
  Fail(breaker, 1000, At(249ms));
  EXPECT_EQ(breaker.state(), State::kClosed);
  Fail(breaker, 1, At(250ms));
  EXPECT_EQ(breaker.state(), State::kOpen);
}

TEST(Breaker, StaysClosedWhileAnythingIsAnswered) {
  Breaker breaker({}, 1);
  for (base::Duration at = 0ms; at < 20s; at += 10ms) {
    Fail(breaker, 50, At(at));
    if (at % 200ms == 0ms) breaker.Finish(breaker.Ask(At(at)), Outcome::kSuccess, At(at));
  }
  EXPECT_EQ(breaker.opened(), 0u);
}

TEST(Breaker, APauseOfATenthOfEachSecondIsNoOutage) {
  Breaker breaker({}, 1);
  for (base::Duration at = 0ms; at < 20s; at += 10ms) {
    const bool stalls = at % 1s < 100ms;
    breaker.Finish(breaker.Ask(At(at)), stalls ? Outcome::kFailure : Outcome::kSuccess, At(at));
  }
  EXPECT_EQ(breaker.opened(), 0u);
}

TEST(Breaker, TheTimeBetweenBurstsIsNoOutage) {
  Breaker breaker({}, 1);
  for (base::Duration at = 0s; at < 20s; at += 1s) {
    std::vector<Pass> burst;
    for (int i = 0; i < 100; ++i) burst.push_back(breaker.Ask(At(at)));
    for (const Pass pass : burst) breaker.Finish(pass, Outcome::kNoAnswer, At(at + 10ms));
  }
  EXPECT_EQ(breaker.opened(), 0u) << "20 times 10 ms without an answer are less than 250 ms";
}

TEST(Breaker, OpensAfterAQuarterOfASecondInWhichCallsWaitedInVainHoweverFewTheyAre) {
  Breaker breaker({}, 1);
  // One call a second waits for 50 ms.
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(breaker.state(), State::kClosed) << i;
    const Pass pass = breaker.Ask(At(i * 1s));
    breaker.Finish(pass, Outcome::kNoAnswer, At(i * 1s + 50ms));
  }
  EXPECT_EQ(breaker.state(), State::kOpen);
}

TEST(Breaker, ALateAnswerIsAnAnswer) {
  Breaker breaker(kExact, 1);
  Fail(breaker, 4, At(0s));
  breaker.OnLateAnswer(At(1ms));
  Fail(breaker, 4, At(2ms));
  EXPECT_EQ(breaker.state(), State::kClosed);
  Fail(breaker, 1, At(2ms));
  EXPECT_EQ(breaker.state(), State::kOpen);
  breaker.OnLateAnswer(At(3ms));
  EXPECT_EQ(breaker.Ask(At(3ms)), Pass::kProbe) << "it works again";
}

TEST(Breaker, StaysOpenForHalfASecondDoublingToFive) {
  Breaker breaker(kExact, 1);
  Fail(breaker, 5, At(0s));
  base::BootTime now = At(0s);
  for (const base::Duration open : {500ms, 1000ms, 2000ms, 4000ms, 5000ms, 5000ms}) {
    EXPECT_EQ(breaker.open_until() - now, open);
    EXPECT_EQ(breaker.Ask(now + open - 1ns), Pass::kRefused);
    now += open;
    ASSERT_EQ(breaker.Ask(now), Pass::kProbe);
    EXPECT_EQ(breaker.Ask(now), Pass::kRefused) << "one probe at a time";
    breaker.Finish(Pass::kProbe, Outcome::kFailure, now);
  }
  ASSERT_EQ(breaker.Ask(now + 5s), Pass::kProbe);
  breaker.Finish(Pass::kProbe, Outcome::kSuccess, now + 5s);
  EXPECT_EQ(breaker.state(), State::kClosed);
  Fail(breaker, 5, now + 5s);
  EXPECT_EQ(breaker.open_until() - (now + 5s), 500ms)
      << "starts at the first wait again once it was closed";
}

TEST(Breaker, ProbesAtOnceWhereThereIsASignOfLife) {
  Breaker breaker(kExact, 1);
  breaker.ProbeSoon(At(0s));
  Fail(breaker, 5, At(0s));
  breaker.ProbeSoon(At(100ms));
  EXPECT_EQ(breaker.Ask(At(100ms)), Pass::kProbe);
  breaker.ProbeSoon(At(100ms));
  EXPECT_EQ(breaker.Ask(At(100ms)), Pass::kRefused) << "and one at a time";
}

TEST(Breaker, LacksAProbeOnlyWhileNobodyAsks) {
  Breaker breaker(kExact, 1);
  EXPECT_FALSE(breaker.LacksProbe(1s, At(100s))) << "it is closed";
  Fail(breaker, 5, At(0s));
  EXPECT_FALSE(breaker.LacksProbe(1s, At(1499ms)));
  EXPECT_TRUE(breaker.LacksProbe(1s, At(1500ms)));
  ASSERT_EQ(breaker.Ask(At(1500ms)), Pass::kProbe);
  EXPECT_FALSE(breaker.LacksProbe(1s, At(1500ms))) << "the probe is in flight";
  breaker.Finish(Pass::kProbe, Outcome::kNeither, At(1600ms));
  EXPECT_TRUE(breaker.LacksProbe(1s, At(1600ms)));
}

TEST(Breaker, SpreadsItsProbes) {
  const BreakerOptions options{.no_progress = 0s};
  std::vector<base::BootTime> until;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Breaker breaker(options, seed);
    Fail(breaker, 5, At(0s));
    until.push_back(breaker.open_until());
    EXPECT_GE(breaker.open_until(), At(375ms));
    EXPECT_LE(breaker.open_until(), At(625ms));
  }
  const auto [least, most] = std::minmax_element(until.begin(), until.end());
  EXPECT_GT(*most - *least, 150ms);
}

// A model that keeps every event. All short sequences are compared with it. Two failures open it.
struct Model {
  State state = State::kClosed;
  int failed_in_row = 0;
  int opened_in_row = 0;
  bool probing = false;
  base::BootTime open_until{0};

  Pass Ask(base::BootTime now) {
    if (state == State::kClosed) return Pass::kCall;
    if (probing || (state == State::kOpen && now < open_until)) return Pass::kRefused;
    state = State::kHalfOpen;
    probing = true;
    return Pass::kProbe;
  }
  void Finish(Pass pass, Outcome outcome, base::BootTime now) {
    if (pass == Pass::kProbe) {
      probing = false;
      if (outcome == Outcome::kSuccess) *this = {};
      if (outcome == Outcome::kFailure) Open(now);
    } else if (state == State::kClosed && outcome == Outcome::kSuccess) {
      failed_in_row = 0;
    } else if (state == State::kClosed && outcome == Outcome::kFailure && ++failed_in_row == 2) {
      Open(now);
    }
  }
  void Open(base::BootTime now) {
    state = State::kOpen;
    open_until = now + std::min<base::Duration>(100ms * (1 << opened_in_row++), 200ms);
  }
};

TEST(Breaker, AllEventSequencesUpToLength8) {
  // a: ask; s, f, n: the oldest open call succeeds, fails, or says nothing; t: 100 ms pass.
  constexpr std::string_view kEvents = "asfnt";
  constexpr BreakerOptions kOptions = {.failures_in_row = 2,
                                       .no_progress = 0s,
                                       .open_min = 100ms,
                                       .open_max = 200ms,
                                       .jitter_percent = 0};
  uint64_t sequences = 0, opened = 0, probed = 0;
  for (int length = 1, count = 5; length <= 8; ++length, count *= 5) {
    for (int number = 0; number < count; ++number) {
      std::string sequence;
      for (int i = 0, rest = number; i < length; ++i, rest /= 5)
        sequence += kEvents[static_cast<size_t>(rest % 5)];
      Breaker breaker(kOptions, 1);
      Model model;
      std::vector<Pass> under_way;
      base::BootTime now = At(0s);
      ++sequences;
      for (const char event : sequence) {
        if (event == 't') {
          now += 100ms;
        } else if (event == 'a') {
          const Pass pass = breaker.Ask(now);
          ASSERT_EQ(pass, model.Ask(now)) << sequence;
          if (pass != Pass::kRefused) under_way.push_back(pass);
          if (pass == Pass::kProbe) ++probed;
        } else if (!under_way.empty()) {
          const Outcome outcome = event == 's'   ? Outcome::kSuccess
                                  : event == 'f' ? Outcome::kFailure
                                                 : Outcome::kNeither;
          breaker.Finish(under_way.front(), outcome, now);
          model.Finish(under_way.front(), outcome, now);
          under_way.erase(under_way.begin());
        }
        ASSERT_EQ(breaker.state(), model.state) << sequence;
        ASSERT_LE(std::count(under_way.begin(), under_way.end(), Pass::kProbe), 1) << sequence;
      }
      opened += breaker.opened();
    }
  }
  EXPECT_EQ(sequences, 488'280u);  // 5 + 25 + … + 5^8
  EXPECT_GT(opened, 1000u);
  EXPECT_GT(probed, 100u);
}

// A recovered store is used again within 10 s, no matter when during the pause it recovered.
TEST(Breaker, LeavesAStoreAloneForFarLessThanTenSeconds) {
  Breaker breaker({.no_progress = 0s}, 7);
  base::BootTime now{0};
  for (int i = 0; i < 1000; ++i) {
    const Breaker::Pass pass = breaker.Ask(now);
    ASSERT_NE(pass, Breaker::Pass::kRefused);
    breaker.Finish(pass, Breaker::Outcome::kFailure, now);
    if (breaker.state() != Breaker::State::kOpen) continue;
    EXPECT_LE(breaker.open_until() - now, 6250ms);
    now = breaker.open_until();
  }
}

}  // namespace breaker_test
}  // namespace headgate::store
