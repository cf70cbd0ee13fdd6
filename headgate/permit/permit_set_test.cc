#include "headgate/permit/permit_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "headgate/base/random.h"

namespace headgate::permit {
namespace permit_set_test {

using base::Duration;
using base::Instant;
using namespace std::chrono_literals;
using Kind = Ask::Kind;
using Outcome = Answer::Outcome;

constexpr Instant kStart = Instant::FromNanos(1'790'000'000'000'000'000);

Id IdOf(uint64_t number) { return {.low = number, .high = 7}; }

Ask Acquire(uint64_t id, uint32_t max, Duration ttl = 30s) {
  return {.kind = Kind::kAcquire, .id = IdOf(id), .max = max, .ttl = ttl};
}
Ask Release(uint64_t id) { return {.kind = Kind::kRelease, .id = IdOf(id)}; }
Ask Look(uint32_t max) { return {.kind = Kind::kPeek, .max = max}; }

TEST(PermitSet, GrantsUntilItIsFullAndAgainAfterARelease) {
  PermitSet permits;
  EXPECT_EQ(permits.Do(Acquire(1, 2), kStart), (Answer{.outcome = Outcome::kGranted,
                                                       .in_flight = 1,
                                                       .first_end_after = 30s,
                                                       .last_end_after = 30s}));
  EXPECT_EQ(permits.Do(Acquire(2, 2), kStart + 10s).outcome, Outcome::kGranted);
  EXPECT_EQ(permits.Do(Acquire(3, 2), kStart + 11s), (Answer{.outcome = Outcome::kFull,
                                                             .in_flight = 2,
                                                             .first_end_after = 19s,
                                                             .last_end_after = 29s}));
  EXPECT_EQ(permits.Do(Release(1), kStart + 12s).outcome, Outcome::kReleased);
  EXPECT_EQ(permits.Do(Acquire(3, 2), kStart + 12s).outcome, Outcome::kGranted);
}

TEST(PermitSet, ReleasesAPermitOnce) {
  PermitSet permits;
  permits.Do(Acquire(1, 2), kStart);
  EXPECT_EQ(permits.Do(Release(1), kStart).outcome, Outcome::kReleased);
  EXPECT_EQ(permits.Do(Release(1), kStart).outcome, Outcome::kUnknown);
  EXPECT_EQ(permits.Do(Release(9), kStart).outcome, Outcome::kUnknown);
  EXPECT_TRUE(permits.empty());
}

TEST(PermitSet, APermitThatNobodyReleasesEndsAfterItsTtlAndNotBefore) {
  PermitSet permits;
  permits.Do(Acquire(1, 1, 30s), kStart);
  EXPECT_EQ(permits.Do(Acquire(2, 1), kStart + 30s - 1ns).outcome, Outcome::kFull);
  const Answer answer = permits.Do(Acquire(2, 1), kStart + 30s);
  EXPECT_EQ(answer.outcome, Outcome::kGranted);
  EXPECT_EQ(answer.expired, 1);
  EXPECT_EQ(answer.in_flight, 1);
  EXPECT_EQ(permits.Do(Release(1), kStart + 30s).outcome, Outcome::kUnknown);
}

TEST(PermitSet, TheSameIdHoldsOnePermitAndRenewsItsEnd) {
  PermitSet permits;
  permits.Do(Acquire(1, 1, 30s), kStart);
  EXPECT_EQ(permits.Do(Acquire(1, 1, 30s), kStart + 20s), (Answer{.outcome = Outcome::kHeld,
                                                                  .in_flight = 1,
                                                                  .first_end_after = 30s,
                                                                  .last_end_after = 30s}));
  // A message that was delayed does not shorten it.
  EXPECT_EQ(permits.Do(Acquire(1, 1, 5s), kStart + 21s).first_end_after, 29s);
  EXPECT_EQ(permits.Do(Release(1), kStart + 49s).outcome, Outcome::kReleased);
}

TEST(PermitSet, TheSameIdIsHeldAlsoIfTheLimitWasLoweredMeanwhile) {
  PermitSet permits;
  for (uint64_t id = 1; id <= 3; ++id) permits.Do(Acquire(id, 3), kStart);
  EXPECT_EQ(permits.Do(Acquire(2, 1), kStart).outcome, Outcome::kHeld);
  EXPECT_EQ(permits.Do(Acquire(4, 1), kStart).outcome, Outcome::kFull);
  permits.Do(Release(1), kStart);
  permits.Do(Release(2), kStart);
  EXPECT_EQ(permits.Do(Acquire(4, 1), kStart).outcome, Outcome::kFull);
  permits.Do(Release(3), kStart);
  EXPECT_EQ(permits.Do(Acquire(4, 1), kStart).outcome, Outcome::kGranted);
}

TEST(PermitSet, ALookTakesNothing) {
  PermitSet permits;
  EXPECT_EQ(permits.Do(Look(1), kStart).outcome, Outcome::kGranted);
  EXPECT_EQ(permits.Do(Look(1), kStart).in_flight, 0);
  permits.Do(Acquire(1, 1), kStart);
  EXPECT_EQ(permits.Do(Look(1), kStart).outcome, Outcome::kFull);
  EXPECT_EQ(permits.Do(Look(0), kStart + 1h).outcome, Outcome::kFull);
}

TEST(PermitSet, ClearReleasesAll) {
  PermitSet permits;
  for (uint64_t id = 1; id <= 3; ++id) permits.Do(Acquire(id, 3), kStart);
  EXPECT_EQ(permits.Do({.kind = Kind::kClear}, kStart),
            (Answer{.outcome = Outcome::kReleased, .in_flight = 0}));
  EXPECT_TRUE(permits.empty());
}

TEST(PermitSet, AnyTtlAndInstantIsSafe) {
  PermitSet permits;
  EXPECT_EQ(permits.Do(Acquire(1, 2, Duration::max()), base::kInstantMax).first_end_after, kTtlMax);
  EXPECT_EQ(permits.Do(Acquire(2, 2, -5s), Instant::FromNanos(-1)).outcome, Outcome::kGranted);
}

TEST(PermitSet, CountsThoseThatHaveNotEnded) {
  PermitSet permits;
  permits.Do(Acquire(1, 9, 10s), kStart);
  permits.Do(Acquire(2, 9, 20s), kStart);
  EXPECT_EQ(permits.CountAt(kStart), 2);
  EXPECT_EQ(permits.CountAt(kStart + 10s), 1);
  EXPECT_EQ(permits.CountAt(kStart + 20s), 0);
  EXPECT_EQ(permits.last_end(), kStart + 20s);
}

// The definition, kept as simply as possible: the end of each id.
class Model {
 public:
  Outcome Do(const Ask& ask, Instant now) {
    std::erase_if(ends_, [&](const auto& permit) { return permit.second <= now; });
    const auto held = ends_.find(ask.id.low);
    switch (ask.kind) {
      case Kind::kAcquire:
        if (held != ends_.end()) {
          held->second = std::max(held->second, now + ask.ttl);
          return Outcome::kHeld;
        }
        if (ends_.size() >= ask.max) return Outcome::kFull;
        ends_[ask.id.low] = now + ask.ttl;
        return Outcome::kGranted;
      case Kind::kRelease:
        return ends_.erase(ask.id.low) == 1 ? Outcome::kReleased : Outcome::kUnknown;
      case Kind::kPeek:
        return ends_.size() < ask.max ? Outcome::kGranted : Outcome::kFull;
      case Kind::kClear:
        return std::exchange(ends_, {}).empty() ? Outcome::kUnknown : Outcome::kReleased;
    }
    return Outcome::kFull;
  }
  size_t size() const { return ends_.size(); }

 private:
  std::map<uint64_t, Instant> ends_;
};

TEST(PermitSet, DoesWhatTheModelDoes) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    base::Random random(seed);
    PermitSet permits;
    Model model;
    Instant now = kStart;
    const auto max = static_cast<uint32_t>(1 + random.Below(5));
    for (int step = 0; step < 400; ++step) {
      now += Duration(static_cast<int64_t>(random.Below(3'000'000'000)));
      const Ask ask{
          .kind = random.Below(20) == 0 ? Kind::kClear : static_cast<Kind>(random.Below(3)),
          .id = IdOf(random.Below(8)),
          .max = max,
          .ttl = Duration(static_cast<int64_t>(1 + random.Below(9'000'000'000)))};
      const Outcome expected = model.Do(ask, now);
      const Answer answer = permits.Do(ask, now);
      ASSERT_EQ(answer.outcome, expected) << "seed " << seed << ", step " << step;
      ASSERT_EQ(answer.in_flight, model.size()) << "seed " << seed << ", step " << step;
      ASSERT_LE(answer.in_flight, max);
    }
  }
}

}  // namespace permit_set_test
}  // namespace headgate::permit
