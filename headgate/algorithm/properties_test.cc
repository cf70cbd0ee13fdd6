// The eight promises that every algorithm keeps, checked for random limits in random states.
#include "headgate/algorithm/properties.h"

#include <fmt/format.h>

namespace headgate::algorithm {
namespace properties_test {

using base::Duration;
using base::Instant;

constexpr uint64_t kRuns = 2000;

class Algorithms : public ::testing::TestWithParam<Kind> {
 protected:
  // Calls `body` with a random bucket, once per seed, until one fails; the failure reports its
  // seed.
  template <typename Body>
  void ForAllBuckets(const Body& body) {
    for (uint64_t seed = 1; seed <= kRuns && !HasFailure(); ++seed) {
      Random random(seed);
      Bucket bucket = AnyBucket(GetParam(), random);
      SCOPED_TRACE(fmt::format("seed {}: {} per {}ns, burst {}", seed, bucket.limit.spec().requests,
                               bucket.limit.spec().period.count(), bucket.limit.capacity()));
      body(random, bucket);
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Of, Algorithms, ::testing::ValuesIn(kKinds),
                         [](const auto& test) { return std::string(test.param.name); });

// ---- 1. Bound

TEST_P(Algorithms, NeverAdmitMoreThanTheirBoundInAnyInterval) {
  struct Admission {
    Instant at;
    Cost cost;
  };
  for (uint64_t seed = 1; seed <= kRuns / 10 && !HasFailure(); ++seed) {
    Random random(seed);
    Bucket bucket(AnyLimit(GetParam(), random));
    std::vector<Admission> admissions;
    for (int step = 0; step < 200; ++step) {
      bucket.Wait(AnyWait(bucket.limit, random));
      Cost cost = Between(random, 1, 3);
      if (random() % 8 == 0) cost = std::max<Cost>(1, bucket.Peek().remaining);
      if (bucket.Ask(cost).allowed) admissions.push_back({bucket.now, cost});
    }
    for (size_t first = 0; first < admissions.size(); ++first) {
      uint64_t admitted = 0;
      for (size_t last = first; last < admissions.size(); ++last) {
        admitted += admissions[last].cost;
        const Duration length = admissions[last].at - admissions[first].at;
        ASSERT_LE(admitted, Bound(bucket.limit, length))
            << "seed " << seed << ", in " << length.count() << "ns";
      }
    }
  }
}

TEST(Queue, LetsRequestsGoNoFasterThanOnePerInterval) {
  for (uint64_t seed = 1; seed <= kRuns / 10; ++seed) {
    Random random(seed);
    Bucket bucket(AnyLimit({"queue", {.algorithm = Algorithm::kLeakyBucketQueue}}, random));
    Instant next_start{0};
    for (int step = 0; step < 200; ++step) {
      bucket.Wait(AnyWait(bucket.limit, random));
      const Cost cost = Between(random, 1, 3);
      const Decision decision = bucket.Ask(cost);
      if (!decision.allowed) continue;
      const Instant start = bucket.now + decision.wait;
      // Both times are rounded up to a nanosecond, which may make them appear one nanosecond
      // closer.
      ASSERT_GE(start + Duration(1), next_start) << "seed " << seed;
      ASSERT_LE(
          base::WideMul(static_cast<uint64_t>(decision.wait.count()), bucket.limit.requests()),
          base::WideMul(bucket.limit.capacity(), bucket.limit.period()) + bucket.limit.requests())
          << "seed " << seed << ": waits longer than a full queue";
      next_start =
          start +
          Duration(static_cast<int64_t>(cost * bucket.limit.period() / bucket.limit.requests()));
    }
  }
}

// ---- 2. Split-invariance

TEST_P(Algorithms, AreNotMovedByBeingLookedAtInBetween) {
  ForAllBuckets([](Random& random, Bucket& bucket) {
    Bucket looked_at = bucket;
    for (int step = 0; step < 10; ++step) {
      const Duration whole = AnyWait(bucket.limit, random) + Duration(random() % 5);
      Duration waited(0);
      while (waited < whole) {
        const auto left = static_cast<uint64_t>((whole - waited).count());
        const Duration part(
            static_cast<int64_t>(Between(random, 1, std::max<uint64_t>(1, left / 3))));
        looked_at.Wait(part);
        looked_at.Peek();
        waited += part;
      }
      bucket.Wait(whole);
      const Cost cost = random() % 4;
      ASSERT_EQ(looked_at.Ask(cost), bucket.Ask(cost));
    }
  });
}

TEST_P(Algorithms, LoseNothingWhenAdvancedOneNanosecondAtATime) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    Random random(seed);
    LimitSpec spec = AnySpec(GetParam(), random);
    spec.period = Duration(Between(random, 1, 997));
    Bucket bucket(*Limit::Make(spec));
    bucket.Ask(LargestCost(bucket.limit));
    Bucket by_steps = bucket;
    for (int ns = 1; ns <= 3000; ++ns) {
      by_steps.Wait(Duration(1));
      by_steps.Peek();
    }
    bucket.Wait(Duration(3000));
    ASSERT_EQ(by_steps.Peek(), bucket.Peek()) << "seed " << seed;
  }
}

// ---- 3. Honest retry

TEST_P(Algorithms, AdmitAfterRetryAfterAndNotOneNanosecondEarlier) {
  ForAllBuckets([](Random& random, Bucket& bucket) {
    const Cost cost = Between(random, 1, LargestCost(bucket.limit));
    const Decision decision = bucket.Ask(cost);
    if (decision.allowed) {
      ASSERT_EQ(decision.retry_after, Duration(0));
      return;
    }
    ASSERT_GT(decision.retry_after, Duration(0));
    Bucket then = bucket, earlier = bucket;
    then.Wait(decision.retry_after);
    ASSERT_TRUE(then.Ask(cost).allowed);
    earlier.Wait(decision.retry_after - Duration(1));
    ASSERT_FALSE(earlier.Ask(cost).allowed);
  });
}

TEST_P(Algorithms, AreAsIfNeverUsedAfterResetAfter) {
  ForAllBuckets([](Random&, Bucket& bucket) {
    const Decision decision = bucket.Peek();
    bucket.Wait(decision.reset_after);
    Bucket fresh(bucket.limit);
    fresh.now = bucket.now;
    ASSERT_EQ(bucket.Peek().remaining, fresh.Peek().remaining);
    ASSERT_EQ(bucket.Ask(LargestCost(bucket.limit)), fresh.Ask(LargestCost(bucket.limit)));
    ASSERT_EQ(bucket.Ask(1), fresh.Ask(1));
  });
}

TEST_P(Algorithms, AdmitAsManySingleRequestsAsTheySayRemain) {
  ForAllBuckets([](Random&, Bucket& bucket) {
    for (uint64_t remaining = bucket.Peek().remaining; remaining > 0; --remaining) {
      const Decision decision = bucket.Ask(1);
      ASSERT_TRUE(decision.allowed);
      ASSERT_EQ(decision.remaining, remaining - 1);
    }
    ASSERT_FALSE(bucket.Ask(1).allowed);
  });
}

// ---- 4. Monotone

TEST_P(Algorithms, AreNeverEasierForMoreNorHarderLater) {
  ForAllBuckets([](Random& random, Bucket& bucket) {
    const Cost cost = Between(random, 1, LargestCost(bucket.limit));
    const Cost less = Between(random, 1, cost);
    Bucket asked = bucket, asked_less = bucket, asked_later = bucket;
    const Decision decision = asked.Ask(cost);
    const Decision decision_less = asked_less.Ask(less);
    ASSERT_LE(decision_less.retry_after, decision.retry_after);
    const Duration later = AnyWait(bucket.limit, random);
    asked_later.Wait(later);
    ASSERT_GE(asked_later.Peek().remaining, bucket.Peek().remaining);
    const Decision decision_later = asked_later.Ask(cost);
    ASSERT_GE(decision_later.allowed, decision.allowed);
    // With count_denied, a later denied request may be counted in a later window.
    if (bucket.limit.spec().count_denied) return;
    ASSERT_LE(decision_later.retry_after, std::max(Duration(0), decision.retry_after - later));
  });
}

// ---- 5. Refund

TEST_P(Algorithms, TakeARefundAsIfTheRequestHadNotBeen) {
  ForAllBuckets([](Random& random, Bucket& bucket) {
    const Decision before = bucket.Peek();
    const Cost cost = Between(random, 1, LargestCost(bucket.limit));
    const BucketState state_before = bucket.state;
    const bool allowed = bucket.Ask(cost).allowed;
    const BucketState state_after = bucket.state;
    const auto refunded = Refund(bucket.limit, bucket.state, bucket.hits, cost, bucket.now);
    if (IsQueue(bucket.limit)) {
      ASSERT_EQ(refunded.status().code(), absl::StatusCode::kFailedPrecondition);
      ASSERT_EQ(bucket.state, state_after);
      return;
    }
    ASSERT_TRUE(refunded.ok());
    if (!allowed && !bucket.limit.spec().count_denied) return;
    ASSERT_EQ(refunded->remaining, before.remaining);
    if (bucket.limit.spec().align == Align::kEpoch) {
      ASSERT_EQ(refunded->reset_after, before.reset_after);
    }
    if (bucket.limit.algorithm() == Algorithm::kSlidingWindowCounter) {
      ASSERT_EQ(bucket.state, state_before);
    }
  });
}

TEST_P(Algorithms, GiveBackAtMostWhatIsConsumed) {
  ForAllBuckets([](Random& random, Bucket& bucket) {
    if (IsQueue(bucket.limit)) return;
    const uint64_t before = bucket.Peek().remaining;
    const Cost cost = random() % 3 == 0 ? random() : random() % 50;
    const auto refunded = Refund(bucket.limit, bucket.state, bucket.hits, cost, bucket.now);
    ASSERT_TRUE(refunded.ok());
    ASSERT_GE(refunded->remaining, before);
    ASSERT_LE(refunded->remaining, bucket.limit.capacity());
    ASSERT_LE(refunded->remaining - before, cost);
  });
}

TEST_P(Algorithms, UndoATakeAtOnceAsIfItHadNotBeen) {
  ForAllBuckets([](Random& random, Bucket& bucket) {
    if (IsQueue(bucket.limit)) return;
    const Decision before = bucket.Peek();
    const Cost cost = Between(random, 1, LargestCost(bucket.limit));
    if (!bucket.Ask(cost).allowed) return;
    const Decision undone = bucket.Undo(cost, bucket.now);
    ASSERT_EQ(undone.remaining, before.remaining);
    // The window that the take has opened stays open.
    if (bucket.limit.spec().align == Align::kEpoch) {
      ASSERT_EQ(undone, before);
    }
  });
}

// The requests of others are charged meanwhile, so that it is the same with and without the take. A
// window that begins with its first hit has another end without the take.
TEST_P(Algorithms, NeverUndoMoreThanATakeHasTaken) {
  if (GetParam().spec.align == Align::kFirstHit) return;
  ForAllBuckets([](Random& random, Bucket& bucket) {
    if (IsQueue(bucket.limit)) return;
    Bucket without = bucket;
    const Cost cost = Between(random, 1, 2 * LargestCost(bucket.limit));
    const Instant taken_at = bucket.now;
    if (random() % 2 == 0) {
      bucket.Charge(cost);
    } else if (!bucket.Ask(cost).allowed) {
      return;
    }
    for (uint64_t left = random() % 4; left > 0; --left) {
      const Cost others = random() % 3;
      for (Bucket* each : {&bucket, &without}) each->Charge(others);
      const Duration wait = AnyWait(bucket.limit, random);
      for (Bucket* each : {&bucket, &without}) each->Wait(wait);
    }
    const uint64_t untouched = bucket.Peek().remaining;
    const Decision undone = bucket.Undo(cost, taken_at);
    ASSERT_LE(undone.remaining, std::max(untouched, without.Peek().remaining));
    ASSERT_GE(undone.remaining, untouched);
  });
}

// The clock was set back: it does not show how much has been refilled since.
TEST_P(Algorithms, UndoTheWholeOfATakeThatLiesAhead) {
  if (!IsTokenBucket(GetParam().spec.algorithm)) return;
  ForAllBuckets([](Random& random, Bucket& bucket) {
    const Cost cost = Between(random, 1, LargestCost(bucket.limit));
    const uint64_t before = bucket.Peek().remaining;
    if (!bucket.Ask(cost).allowed) return;
    const Instant ahead = base::Clamp(bucket.now + std::chrono::hours(1));
    ASSERT_EQ(bucket.Undo(cost, ahead).remaining, before);
  });
}

TEST_P(Algorithms, UndoNothingInAWindowThatHasBegunSince) {
  if (!IsWindow(GetParam().spec.algorithm)) return;
  ForAllBuckets([](Random& random, Bucket& bucket) {
    const Instant taken_at = bucket.now;
    const Cost cost = Between(random, 1, LargestCost(bucket.limit));
    bucket.Charge(cost);
    // Two windows later nothing of it is left.
    bucket.Wait(2 * TimeToFull(bucket.limit));
    bucket.Charge(cost);
    const Decision before = bucket.Peek();
    ASSERT_EQ(bucket.Undo(cost, taken_at), before);
  });
}

// ---- Charges

TEST_P(Algorithms, TakeAChargeLikeARequestThatFits) {
  ForAllBuckets([](Random& random, Bucket& bucket) {
    Bucket asked = bucket;
    const Cost cost = Between(random, 0, LargestCost(bucket.limit));
    if (!asked.Ask(cost).allowed) return;
    ASSERT_EQ(bucket.Charge(cost), asked.Peek());
  });
}

TEST_P(Algorithms, AreOverdrawnOnceMoreIsChargedThanRemains) {
  ForAllBuckets([](Random& random, Bucket& bucket) {
    const Decision before = bucket.Peek();
    const Cost cost = Between(random, 0, 2 * LargestCost(bucket.limit));
    const Decision charged = bucket.Charge(cost);
    ASSERT_TRUE(charged.allowed);
    ASSERT_EQ(charged.overdrawn, before.overdrawn || cost > before.remaining);
    ASSERT_EQ(charged.remaining, cost < before.remaining ? before.remaining - cost : 0);
  });
}

TEST_P(Algorithms, ThatMayBeOverdrawnAdmitAnyCostUntilTheyAre) {
  if (GetParam().spec.algorithm == Algorithm::kLeakyBucketQueue) return;
  ForAllBuckets([](Random& random, Bucket& bucket) {
    LimitSpec spec = bucket.limit.spec();
    spec.overdraw = true;
    bucket.limit = *Limit::Make(spec);
    Bucket charged = bucket;
    const Decision before = bucket.Peek();
    const Cost cost = Between(random, 1, 3 * bucket.limit.capacity());
    const Decision decision = bucket.Ask(cost);
    ASSERT_EQ(decision.allowed, !before.overdrawn);
    if (decision.allowed) {
      ASSERT_EQ(decision, charged.Charge(cost)) << "it is charged whether or not it fits";
      return;
    }
    // The next one waits until it is paid.
    ASSERT_FALSE(decision.never_fits());
    Bucket earlier = bucket;
    bucket.Wait(decision.retry_after);
    ASSERT_TRUE(bucket.Ask(cost).allowed);
    earlier.Wait(decision.retry_after - Duration(1));
    ASSERT_FALSE(earlier.Ask(cost).allowed);
  });
}

TEST_P(Algorithms, DoNotOverflowByCharges) {
  ForAllBuckets([](Random&, Bucket& bucket) {
    for (const Cost cost : {~Cost{0}, ~Cost{0}, Cost{1}}) bucket.Charge(cost);
    const Decision denied = bucket.Ask(1);
    ASSERT_FALSE(denied.allowed);
    ASSERT_GT(denied.retry_after, Duration(0));
    ASSERT_LT(denied.retry_after, kNever);
    ASSERT_TRUE(denied.overdrawn);
  });
}

// ---- 6. Clock backwards, clock far forwards

TEST_P(Algorithms, CountAnEarlierTimeAsTheLatestSeen) {
  ForAllBuckets([](Random& random, Bucket& bucket) {
    bucket.Peek();
    Bucket earlier = bucket;
    for (int step = 0; step < 5; ++step) {
      earlier.now = base::Clamp(bucket.now - Duration(random() >> Between(random, 2, 63)));
      const Cost cost = random() % 4;
      ASSERT_EQ(earlier.Ask(cost), bucket.Ask(cost));
    }
  });
}

TEST_P(Algorithms, AreFreshFarInTheFutureAndStayThere) {
  ForAllBuckets([](Random& random, Bucket& bucket) {
    bucket.now = base::kInstantMax;
    Bucket fresh(bucket.limit);
    fresh.now = base::kInstantMax;
    for (int step = 0; step < 5; ++step) {
      const Cost cost = Between(random, 0, LargestCost(bucket.limit));
      ASSERT_EQ(bucket.Ask(cost), fresh.Ask(cost));
    }
  });
}

TEST_P(Algorithms, DoNotOverflowAtTheirLargestNumbers) {
  LimitSpec spec = GetParam().spec;
  const bool is_bucket = IsBucket(spec.algorithm);
  spec.requests = spec.algorithm == Algorithm::kSlidingWindowLog ? kLogRequestsMax : 0xffff'ffff;
  spec.period = is_bucket ? base::kDurationMax : Duration(int64_t{1} << 60);
  if (is_bucket) spec.burst = 0xffff'fffe;
  Bucket bucket(*Limit::Make(spec));
  bucket.now = base::kInstantMax;
  const Decision first = bucket.Ask(LargestCost(bucket.limit));
  EXPECT_TRUE(first.allowed);
  EXPECT_GT(first.reset_after, Duration(0));
  EXPECT_GE(FreshAt(bucket.limit, bucket.state, bucket.hits), base::kInstantMax);
  const Decision second = bucket.Ask(1);
  EXPECT_FALSE(second.allowed);
  EXPECT_GT(second.retry_after, Duration(0));
  EXPECT_LT(second.retry_after, kNever);
  EXPECT_EQ(bucket.Ask(~Cost{0}).retry_after, kNever);
}

// ---- 7. Never fits

TEST_P(Algorithms, TellWhatNeverFitsFromWhatDoesNotFitNow) {
  ForAllBuckets([](Random& random, Bucket& bucket) {
    const Cost largest = LargestCost(bucket.limit);
    Bucket asked = bucket;
    ASSERT_FALSE(asked.Ask(Between(random, 1, largest)).never_fits());
    asked = bucket;
    const Cost too_much = random() % 2 == 0 ? largest + 1 : largest + 1 + random() / 2;
    const Decision never = asked.Ask(too_much);
    ASSERT_FALSE(never.allowed);
    ASSERT_TRUE(never.never_fits());
    Bucket fresh(bucket.limit);
    ASSERT_TRUE(fresh.Ask(largest).allowed);
  });
}

TEST_P(Algorithms, ALimitOfNoRequestsDeniesEverythingExceptPeeks) {
  LimitSpec spec = GetParam().spec;
  spec.period = std::chrono::seconds(1);
  Bucket bucket(*Limit::Make(spec));
  for (int step = 0; step < 3; ++step) {
    const Decision denied = bucket.Ask(1);
    EXPECT_FALSE(denied.allowed);
    EXPECT_TRUE(denied.never_fits());
    EXPECT_EQ(denied.remaining, 0u);
    const Decision looked = bucket.Peek();
    EXPECT_TRUE(looked.allowed);
    EXPECT_EQ(looked.remaining, 0u);
    EXPECT_EQ(looked.retry_after, Duration(0));
    bucket.Wait(std::chrono::hours(24 * 366));
  }
}

// ---- 8. Rule change

TEST_P(Algorithms, MintNothingOnTheWayToAnotherLimitAndBack) {
  ForAllBuckets([&](Random& random, Bucket& bucket) {
    const Decision before = bucket.Peek();
    const Limit home = bucket.limit;
    for (uint64_t left = Between(random, 1, 4); left > 0; --left) {
      LimitSpec spec = AnySpec(GetParam(), random);
      spec.period = home.spec().period;
      if (random() % 8 == 0) spec.requests = 0;
      bucket.Become(*Limit::Make(spec));
    }
    bucket.Become(home);
    ASSERT_LE(bucket.Peek().remaining, before.remaining);
  });
}

TEST_P(Algorithms, GiveABucketOfAnotherKindAtMostWhatWasLeft) {
  ForAllBuckets([](Random& random, Bucket& bucket) {
    const uint64_t before = bucket.Peek().remaining;
    const Kind& other = kKinds[random() % kKinds.size()];
    const Limit to = AnyLimit(other, random);
    const bool kept =
        to.algorithm() == bucket.limit.algorithm() && to.period() == bucket.limit.period();
    if (kept) return;
    if (bucket.FreshAt() <= bucket.now) {
      bucket.Become(to);
      Bucket unused(to);
      unused.now = bucket.now;
      ASSERT_EQ(bucket.Peek(), unused.Peek());
      return;
    }
    bucket.Become(to);
    ASSERT_LE(bucket.Peek().remaining, std::min(before, LargestCost(to)));
  });
}

TEST_P(Algorithms, LeaveAnEmptyBucketEmptyWhenALimitIsLoweredAndRaisedAgain) {
  LimitSpec spec = GetParam().spec;
  spec.requests = 100;
  spec.period = std::chrono::seconds(20);
  const Limit hundred = *Limit::Make(spec);
  for (const uint64_t lower : {uint64_t{10}, uint64_t{0}}) {
    spec.requests = lower;
    Bucket bucket(hundred);
    ASSERT_TRUE(bucket.Ask(LargestCost(hundred)).allowed);
    bucket.Become(*Limit::Make(spec));
    EXPECT_FALSE(bucket.Ask(1).allowed);
    EXPECT_GT(bucket.FreshAt(), bucket.now) << "must not be forgotten by its store";
    bucket.Become(hundred);
    EXPECT_EQ(bucket.Peek().remaining, 0u);
    EXPECT_FALSE(bucket.Ask(1).allowed);
  }
}

}  // namespace properties_test
}  // namespace headgate::algorithm
