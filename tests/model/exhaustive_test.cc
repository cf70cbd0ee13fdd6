// All small cases: every sequence of a few requests, waits and refunds under every small limit.
// Each answer is compared with the reference model, and the times that it promises are checked to
// the nanosecond.
#include <array>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "headgate/algorithm/decide.h"
#include "headgate/testing/deque_hit_log.h"
#include "tests/model/random_walk.h"
#include "tests/model/reference_model.h"

namespace headgate::model {
namespace exhaustive_test {

using algorithm::Algorithm;
using algorithm::Align;
using algorithm::BucketState;
using algorithm::Decision;
using algorithm::Limit;
using algorithm::LimitSpec;
using base::Instant;

struct Move {
  enum What { kAsk, kRefund } what;
  uint64_t cost;
  int64_t wait_ns;
};

// Every cost from 0 to one that never fits: at once, one nanosecond later, later still, and once
// with the clock set back.
constexpr std::array kBroad{
    Move{Move::kAsk, 0, 0},  Move{Move::kAsk, 0, 3},    Move{Move::kAsk, 1, 0},
    Move{Move::kAsk, 1, 1},  Move{Move::kAsk, 1, 3},    Move{Move::kAsk, 2, 0},
    Move{Move::kAsk, 2, 1},  Move{Move::kAsk, 3, 0},    Move{Move::kAsk, 3, 2},
    Move{Move::kAsk, 1, -2}, Move{Move::kRefund, 1, 0}, Move{Move::kRefund, 2, 1},
};
constexpr std::array kDeep{
    Move{Move::kAsk, 1, 0},
    Move{Move::kAsk, 1, 1},
    Move{Move::kAsk, 2, 1},
    Move{Move::kRefund, 1, 0},
};

// A bucket that is cheap to copy: only a log needs space for hits.
struct Kernel {
  explicit Kernel(const LimitSpec& spec) : limit(*Limit::Make(spec)) {
    if (spec.algorithm == Algorithm::kSlidingWindowLog) log.emplace();
  }

  algorithm::HitLog& hits() {
    static testing::DequeHitLog none(0);
    return log ? *log : none;
  }
  Decision Ask(uint64_t cost, int64_t at) {
    return Decide(limit, state, hits(), cost, Instant::FromNanos(at));
  }

  Limit limit;
  BucketState state{};
  std::optional<testing::DequeHitLog> log{};
};

struct Pair {
  explicit Pair(const LimitSpec& spec) : kernel(spec), model(spec) {}

  Kernel kernel;
  ReferenceBucket model;
  int64_t now = 7;
};

// At each nanosecond before retry_after the request is denied; at retry_after it is allowed.
void TryRetry(const Kernel& kernel, int64_t now, uint64_t cost, const Decision& decision) {
  if (decision.allowed || decision.never_fits()) return;
  for (int64_t wait = 0; wait <= decision.retry_after.count(); ++wait) {
    Kernel later = kernel;
    const bool allowed = later.Ask(cost, std::max(now, kernel.state.seen.ns) + wait).allowed;
    ASSERT_EQ(allowed, wait == decision.retry_after.count()) << "after " << wait << "ns";
  }
}

// Exactly `remaining` single requests pass.
void TryRemaining(const Kernel& kernel, int64_t now, const Decision& decision) {
  Kernel singles = kernel;
  uint64_t passed = 0;
  while (singles.Ask(1, now).allowed) ++passed;
  ASSERT_EQ(passed, decision.remaining);
}

class Enumeration {
 public:
  Enumeration(std::span<const Move> moves, int depth) : moves_(moves), depth_(depth) {}

  void Run(const LimitSpec& spec) {
    SCOPED_TRACE(Describe(spec));
    Visit(Pair(spec), 0);
  }
  uint64_t visited() const { return visited_; }

 private:
  void Visit(const Pair& pair, int depth) {
    if (depth == depth_) return;
    for (const Move& move : moves_) {
      if (move.what == Move::kRefund &&
          pair.kernel.limit.algorithm() == Algorithm::kLeakyBucketQueue)
        continue;
      Pair next = pair;
      const Decision decision = Make(move, next);
      ++visited_;
      if (::testing::Test::HasFailure()) {
        ADD_FAILURE() << (move.what == Move::kAsk ? "ask " : "refund ") << move.cost << " at "
                      << next.now << ": " << Describe(decision);
        return;
      }
      Visit(next, depth + 1);
    }
  }

  Decision Make(const Move& move, Pair& pair) {
    Kernel& kernel = pair.kernel;
    pair.now += move.wait_ns;
    Decision decision, model;
    if (move.what == Move::kRefund) {
      decision = *Refund(kernel.limit, kernel.state, kernel.hits(), move.cost,
                         Instant::FromNanos(pair.now));
      model = pair.model.Refund(move.cost, pair.now);
    } else {
      decision = kernel.Ask(move.cost, pair.now);
      model = pair.model.Decide(move.cost, pair.now);
      TryRetry(kernel, pair.now, move.cost, decision);
      TryRemaining(kernel, pair.now, decision);
    }
    EXPECT_TRUE(decision == model) << "model: " << Describe(model);
    return decision;
  }

  std::span<const Move> moves_;
  int depth_;
  uint64_t visited_ = 0;
};

class Exhaustive : public ::testing::TestWithParam<LimitSpec> {
 protected:
  // Calls `visit` with every small limit of this kind.
  template <typename Visitor>
  void ForEveryLimit(const Visitor& visit) {
    const bool is_bucket = IsBucket(GetParam().algorithm);
    const uint64_t burst_least = GetParam().algorithm == Algorithm::kLeakyBucketQueue ? 0 : 1;
    for (const uint64_t requests : {1u, 2u, 3u}) {
      for (const int64_t period : {1, 2, 3, 5}) {
        for (uint64_t burst = burst_least; burst <= (is_bucket ? 2 : burst_least); ++burst) {
          LimitSpec spec = GetParam();
          spec.requests = requests;
          spec.period = base::Duration(period);
          if (is_bucket) spec.burst = burst;
          visit(spec);
          if (HasFailure()) return;
        }
      }
    }
  }
};

TEST_P(Exhaustive, AllSequencesOfFourMoves) {
  Enumeration enumeration(kBroad, 4);
  ForEveryLimit([&](const LimitSpec& spec) { enumeration.Run(spec); });
  EXPECT_GT(enumeration.visited(), 100'000u);
}

TEST_P(Exhaustive, AllSequencesOfSevenSmallMoves) {
  Enumeration enumeration(kDeep, 7);
  ForEveryLimit([&](const LimitSpec& spec) { enumeration.Run(spec); });
  EXPECT_GT(enumeration.visited(), 10'000u);
}

INSTANTIATE_TEST_SUITE_P(
    Of, Exhaustive,
    ::testing::Values(
        LimitSpec{.algorithm = Algorithm::kTokenBucket},
        LimitSpec{.algorithm = Algorithm::kLeakyBucketQueue},
        LimitSpec{.algorithm = Algorithm::kFixedWindow},
        LimitSpec{.algorithm = Algorithm::kFixedWindow, .align = Align::kFirstHit},
        LimitSpec{.algorithm = Algorithm::kFixedWindow, .count_denied = true},
        LimitSpec{
            .algorithm = Algorithm::kFixedWindow, .align = Align::kFirstHit, .count_denied = true},
        LimitSpec{.algorithm = Algorithm::kSlidingWindowCounter},
        LimitSpec{.algorithm = Algorithm::kSlidingWindowCounter, .count_denied = true},
        LimitSpec{.algorithm = Algorithm::kSlidingWindowLog}),
    [](const auto& test) {
      const LimitSpec& spec = test.param;
      return fmt::format("{}{}{}", Name(spec.algorithm),
                         spec.align == Align::kFirstHit ? "_first_hit" : "",
                         spec.count_denied ? "_count_denied" : "");
    });

}  // namespace exhaustive_test
}  // namespace headgate::model
