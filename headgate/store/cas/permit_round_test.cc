#include "headgate/store/cas/permit_round.h"

#include <gtest/gtest.h>

#include <deque>

#include "headgate/base/random.h"
#include "headgate/store/cas/fleet_rig.h"

namespace headgate::store::cas {
namespace permit_round_test {

using base::BootTime;
using base::Duration;
using base::Instant;
using permit::Ask;
using permit::Id;
using permit::PermitSet;
using namespace std::chrono_literals;
using Kind = Ask::Kind;
using Outcome = permit::Answer::Outcome;

constexpr Instant kStart = Instant::FromNanos(1'790'000'000'000'000'000);

Ask Acquire(uint64_t id, uint32_t max, Duration ttl = 30s) {
  return {.kind = Kind::kAcquire, .id = {.low = id, .high = 1}, .max = max, .ttl = ttl};
}
Ask Release(uint64_t id) { return {.kind = Kind::kRelease, .id = {.low = id, .high = 1}}; }

TEST(PermitRound, BytesAreReadAsTheyWereWritten) {
  PermitRound round("", kStart);
  for (uint64_t id = 1; id <= 3; ++id) round.Answer(Acquire(id, 5, id * 10s));
  ASSERT_TRUE(round.has_changed());
  const std::string bytes = round.bytes();
  EXPECT_EQ(bytes.size(), 1 + 4 + 3 * 24u);
  EXPECT_EQ(round.expires_at(), kStart + 30s);
  const auto parsed = ParsePermits(bytes);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->permits().size(), 3u);
  std::string again;
  AppendPermits(*parsed, again);
  EXPECT_EQ(again, bytes);
}

TEST(PermitRound, WhatIsNotPermitsIsRefused) {
  PermitRound round("", kStart);
  round.Answer(Acquire(1, 5));
  const std::string good = round.bytes();
  ASSERT_TRUE(ParsePermits(good));
  EXPECT_FALSE(ParsePermits(""));
  EXPECT_FALSE(ParsePermits(good.substr(1)));
  EXPECT_FALSE(ParsePermits(good + "x"));
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(ParsePermits(good.substr(0, size)));
  std::string other_version = good;
  other_version[0] = 2;
  EXPECT_FALSE(ParsePermits(other_version));
  std::string many = good;
  many[1] = '\x7f';
  EXPECT_FALSE(ParsePermits(many));
  std::string far = good;
  far[good.size() - 8] = '\x7f';
  EXPECT_FALSE(ParsePermits(far));
}

TEST(PermitRound, OnlyChangesHaveToBeWritten) {
  PermitRound first("", kStart);
  EXPECT_EQ(first.Answer({.kind = Kind::kPeek, .max = 1}).outcome, Outcome::kGranted);
  EXPECT_EQ(first.Answer(Release(1)).outcome, Outcome::kUnknown);
  EXPECT_FALSE(first.has_changed());
  EXPECT_EQ(first.Answer(Acquire(1, 1)).outcome, Outcome::kGranted);
  EXPECT_TRUE(first.has_changed());

  PermitRound second(first.bytes(), kStart);
  EXPECT_EQ(second.Answer(Acquire(2, 1)).outcome, Outcome::kFull);
  EXPECT_FALSE(second.has_changed());
  EXPECT_EQ(second.Answer(Release(1)).outcome, Outcome::kReleased);
  EXPECT_TRUE(second.has_changed());
  EXPECT_EQ(second.bytes(), "");
  EXPECT_EQ(second.expires_at(), kStart);
}

TEST(PermitRound, UnreadableBytesCountAsNoPermitsAndAreReplaced) {
  PermitRound looks(std::nullopt, kStart);
  looks.Answer({.kind = Kind::kPeek, .max = 1});
  EXPECT_FALSE(looks.has_changed());
  PermitRound takes("not permits", kStart);
  EXPECT_EQ(takes.Answer(Acquire(1, 1)).outcome, Outcome::kGranted);
  EXPECT_TRUE(takes.has_replaced_corrupt());
  PermitRound clears(std::nullopt, kStart);
  clears.Answer({.kind = Kind::kClear});
  EXPECT_TRUE(clears.has_changed());
}

// Three instances over a service that loses races and answers, is slow, and is away. Holders count
// the life of a permit from before they asked for it, as a request does.
class Fleet {
 public:
  static constexpr uint32_t kMax = 4;
  static constexpr Duration kTtl = 2s;
  static constexpr size_t kInstances = 3;

  explicit Fleet(uint64_t seed) : rig_(kInstances, seed), random_(seed) {
    rig_.service.faults = {.lost_race = 5,
                           .lost_answer = 5,
                           .lost_write = 5,
                           .late_write = 5,
                           .throttled = 3,
                           .unavailable = 3,
                           .delay_max = 20ms};
  }

  void Run(uint32_t requests) {
    for (uint32_t i = 0; i < requests; ++i) Schedule(Below(30s));
    rig_.Run([&] {
      most_ = std::max(most_, Held());
      return false;
    });
  }
  size_t most() const { return most_; }
  uint64_t granted() const { return granted_; }
  uint64_t refused() const { return refused_; }
  uint64_t forgotten() const { return forgotten_; }

 private:
  struct Holder {
    BootTime until;
    bool holds = false;
  };

  Duration Below(Duration end) {
    return Duration(static_cast<int64_t>(random_.Below(static_cast<uint64_t>(end.count()))));
  }
  BootTime Now() const { return rig_.clock.BootNow(); }
  size_t Held() const {
    size_t held = 0;
    for (const Holder& holder : holders_) held += holder.holds && Now() < holder.until ? 1u : 0u;
    return held;
  }
  void Send(size_t instance, const Ask& ask, SharedStore::PermitsDone done) {
    rig_.owner(instance).Ask("k",
                             std::make_unique<WaitingRequest>(ask, Now() + 200ms, std::move(done)));
  }

  void Schedule(Duration after) {
    rig_.service.After(after, [this] {
      const size_t index = holders_.size();
      holders_.push_back({.until = Now() + kTtl});
      const size_t instance = random_.Below(kInstances);
      Send(instance, Acquire(index, kMax, kTtl),
           [this, index, instance](const absl::StatusOr<permit::Answer>& answer) {
             if (!answer.ok()) return Send(instance, Release(index), [](const auto&) {});
             if (!answer->passes()) return void(++refused_);
             ++granted_;
             holders_[index].holds = true;
             if (random_.Below(10) == 0) return void(++forgotten_);
             rig_.service.After(Below(500ms), [this, index, instance] {
               holders_[index].holds = false;
               Send(instance, Release(index), [](const auto&) {});
             });
           });
    });
  }

  FleetRig rig_;
  base::Random random_;
  std::deque<Holder> holders_;
  size_t most_ = 0;
  uint64_t granted_ = 0;
  uint64_t refused_ = 0;
  uint64_t forgotten_ = 0;
};

TEST(PermitRound, InstancesNeverHoldMoreThanTheLimitTogether) {
  uint64_t refused = 0;
  size_t most = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Fleet fleet(seed);
    fleet.Run(400);
    ASSERT_LE(fleet.most(), Fleet::kMax) << "seed " << seed;
    // Permits that nobody releases come back, so most requests are served.
    EXPECT_GT(fleet.granted(), 100u) << "seed " << seed;
    EXPECT_GT(fleet.forgotten(), 0u) << "seed " << seed;
    refused += fleet.refused();
    most = std::max(most, fleet.most());
  }
  // The limit was reached, so it was what kept them back.
  EXPECT_EQ(most, Fleet::kMax);
  EXPECT_GT(refused, 0u);
}

TEST(PermitRound, ABucketAndPermitsOfOneNameAreToldApart) {
  FleetRig rig(1);
  std::optional<absl::StatusOr<permit::Answer>> permits;
  std::optional<SharedAnswer> bucket;
  rig.owner(0).Ask("k",
                   std::make_unique<WaitingRequest>(
                       Acquire(1, 1), rig.clock.BootNow() + 1s,
                       [&](const absl::StatusOr<permit::Answer>& answer) { permits = answer; }));
  rig.Ask(0, "k", {.name = "k", .limit = rig.Limit({.requests = 1, .period = 1s})}, 1s,
          [&](const SharedAnswer& answer) { bucket = answer; });
  rig.Run([&] { return permits && bucket; });
  ASSERT_TRUE(permits && bucket);
  EXPECT_EQ((*permits)->outcome, Outcome::kGranted);
  EXPECT_TRUE(absl::IsUnimplemented(bucket->status));
}

}  // namespace permit_round_test
}  // namespace headgate::store::cas
