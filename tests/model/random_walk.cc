#include "tests/model/random_walk.h"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "headgate/base/check.h"

namespace headgate::model {
namespace {

using algorithm::Algorithm;
using algorithm::Align;
using algorithm::BucketState;
using algorithm::Cost;
using algorithm::Decision;
using algorithm::Hit;
using algorithm::Limit;
using algorithm::LimitSpec;
using base::Instant;

constexpr uint64_t kAll = ~uint64_t{0};
constexpr uint64_t kSecond = 1'000'000'000;

// A HitLog that keeps data of its own in the state's `edge`, as a store may, and detects any other
// writer.
class EdgeHitLog final : public algorithm::HitLog {
 public:
  explicit EdgeHitLog(uint64_t& edge) : edge_(edge) {}

  bool empty() const override { return Hits().empty(); }
  size_t size() const override { return Hits().size(); }
  Hit Oldest() const override { return Hits().Oldest(); }
  Hit Newest() const override { return Hits().Newest(); }
  void DropOldest() override {
    Hits().DropOldest();
    edge_ = hits_.size();
  }
  void ReduceNewest(uint32_t cost) override {
    Hits().ReduceNewest(cost);
    edge_ = hits_.size();
  }
  uint32_t ReduceAt(Instant at, uint64_t cost) override {
    const uint32_t reduced = Hits().ReduceAt(at, cost);
    edge_ = hits_.size();
    return reduced;
  }
  bool Append(Hit hit) override {
    Hits().Append(hit);
    edge_ = hits_.size();
    return true;
  }
  void ForEach(Visitor visit) const override { Hits().ForEach(visit); }

 private:
  const testing::DequeHitLog& Hits() const {
    HEADGATE_CHECK(edge_ == hits_.size());
    return hits_;
  }
  testing::DequeHitLog& Hits() {
    HEADGATE_CHECK(edge_ == hits_.size());
    return hits_;
  }

  uint64_t& edge_;
  testing::DequeHitLog hits_;
};

algorithm::BlockLengths AnyBlock(Random& random) {
  using Lengths = algorithm::BlockLengths;
  Lengths lengths;
  for (uint64_t left = Between(random, 1, Lengths::kMost); left > 0; --left) {
    const auto seconds =
        static_cast<uint32_t>(OneIn(random, 4) ? 1 + AnySize(random, 24) : Between(random, 1, 20));
    lengths.Add(Lengths::Seconds(seconds));
  }
  return lengths;
}

LimitSpec AnySpec(Random& random, Algorithm algorithm) {
  LimitSpec spec{.algorithm = algorithm};
  uint64_t period = 1;
  switch (random() % 9) {
    case 0:  // whole intervals, small
      spec.requests = Between(random, 1, 20);
      period = spec.requests * Between(random, 1, 1000);
      break;
    case 1: {  // numbers that people would write
      constexpr std::array<uint64_t, 7> kRequests{1, 3, 5, 10, 60, 100, 1000};
      constexpr std::array<uint64_t, 5> kPeriods{1, 20, 60, 3600, 86400};
      spec.requests = kRequests[random() % kRequests.size()];
      period = kPeriods[random() % kPeriods.size()] * kSecond;
      break;
    }
    case 2:  // odd intervals
      spec.requests = Between(random, 1, 1000);
      period = Between(random, 1, 10 * kSecond);
      break;
    case 3:  // a few nanoseconds
      spec.requests = Between(random, 1, 10);
      period = Between(random, 1, 20);
      break;
    case 4:  // more than one request per nanosecond
      spec.requests = AnySize(random, 32);
      period = AnySize(random, 20);
      break;
    case 5:  // the largest number of requests
      spec.requests = (uint64_t{1} << 32) - Between(random, 1, 1000);
      period = AnySize(random, 62);
      break;
    case 6: {  // many, with a period that has a common divisor
      const uint64_t scale = uint64_t{1} << Between(random, 1, 31);
      spec.requests = scale * AnySize(random, 32);
      period = scale * AnySize(random, 30);
      break;
    }
    case 7:  // the longest periods
      spec.requests = Between(random, 1, 100);
      period = (uint64_t{1} << (IsBucket(algorithm) ? 62 : 60)) - AnySize(random, 60);
      break;
    case 8:
      spec.requests = AnySize(random, 40);
      period = AnySize(random, 62);
      break;
  }
  spec.period = base::Duration(static_cast<int64_t>(period));
  if (IsBucket(algorithm)) {
    constexpr std::array<uint64_t, 4> kBits{1, 5, 20, 62};
    if (!OneIn(random, 3)) spec.burst = AnySize(random, kBits[random() % kBits.size()]);
  }
  if (algorithm == Algorithm::kFixedWindow)
    spec.align = static_cast<Align>(std::min<uint64_t>(3, random() % 6));
  if (algorithm == Algorithm::kFixedWindow || algorithm == Algorithm::kSlidingWindowCounter) {
    spec.count_denied = OneIn(random, 4);
  }
  if (algorithm != Algorithm::kLeakyBucketQueue) spec.overdraw = OneIn(random, 6);
  if (OneIn(random, 3) && !spec.count_denied && !spec.overdraw) spec.block = AnyBlock(random);
  if (algorithm == Algorithm::kSlidingWindowLog && spec.requests > algorithm::kLogRequestsMax) {
    spec.requests = algorithm::kLogRequestsMax - AnySize(random, 10);
  }
  if (OneIn(random, 50)) spec.requests = 0;
  return spec;
}

enum class Telling : uint8_t { kNothing, kEachStep };

class Walk {
 public:
  Walk(Random& random, const LimitSpec& spec, Telling telling)
      : random_(random),
        telling_(telling),
        limit_(*Limit::Make(spec)),
        hits_(state_.edge),
        model_(spec) {
    now_ = static_cast<int64_t>(OneIn(random_, 4) ? 1 + AnySize(random_, 61)
                                                  : 1'790'000'000 * kSecond + AnySize(random_, 50));
    Note("{} at {}", Describe(spec), now_);
  }

  // One step; returns false if the two differ.
  bool Step() {
    now_ = NextTime();
    const Instant now = Instant::FromNanos(now_);
    const uint64_t what = random_() % 100;
    if (what < 4) {
      const LimitSpec to = RandomChange(random_, limit_.spec());
      Note("change to {} at {}", Describe(to), now_);
      const Limit limit = *Limit::Make(to);
      Change(limit_, limit, state_, hits_, remembered_until_, now);
      model_.Change(to, now_);
      limit_ = limit;
      return Compare(Decide(limit_, state_, hits_, 0, now), model_.Decide(0, now_));
    }
    if (what < 5) {
      Note("reset at {}", now_);
      Forget();
      model_.Reset();
      return Compare(Decide(limit_, state_, hits_, 0, now), model_.Decide(0, now_));
    }
    const Cost cost = NextCost();
    if (what < 15) {
      Note("refund {} at {}", cost, now_);
      const auto refunded = Refund(limit_, state_, hits_, cost, now);
      if (IsQueue(limit_.algorithm())) return !refunded.ok() || Differ("a queue accepted a refund");
      return refunded.ok() ? Compare(*refunded, model_.Refund(cost, now_)) : Differ("no refund");
    }
    if (what < 20) {
      const Cost charged = std::min(cost, 4 * limit_.capacity());
      Note("charge {} at {}", charged, now_);
      return Compare(Charge(limit_, state_, hits_, charged, now), model_.Charge(charged, now_));
    }
    if (what < 28 && !IsQueue(limit_.algorithm())) {
      const int64_t taken_at = OneIn(random_, 8) ? NextTime() : earlier_[random_() % 4];
      // More than one capacity may take longer than the time that a bucket can owe.
      const Cost undone = std::min(cost, limit_.capacity());
      Note("undo {} of {} at {}", undone, taken_at, now_);
      return Compare(*Undo(limit_, state_, hits_, undone, Instant::FromNanos(taken_at), now),
                     model_.Undo(undone, taken_at, now_));
    }
    earlier_[random_() % 4] = now_;
    Note("cost {} at {}", cost, now_);
    return Compare(Decide(limit_, state_, hits_, cost, now), model_.Decide(cost, now_));
  }

  const std::string& story() const { return story_; }
  bool at_the_end_of_time() const { return now_ >= base::kInstantMax.ns; }

 private:
  bool Compare(const Decision& kernel, const Decision& model) {
    last_ = model;
    if (kernel != model) {
      return Differ(fmt::format("kernel: {}\nmodel:  {}", Describe(kernel), Describe(model)));
    }
    const Instant now = std::max(Instant::FromNanos(now_), state_.seen);
    const bool fresh = std::max<Instant>({FreshAt(limit_, state_, hits_), remembered_until_,
                                          MattersUntil(limit_, state_)}) <= now;
    if (fresh != model_.AsIfNeverUsed(now_)) return Differ("one looks unused, the other does not");
    if (fresh && OneIn(random_, 2)) {
      // From here on no answer shows whether a store has deleted the bucket; only its latest time
      // is lost.
      Note("forgotten");
      Forget();
      earliest_ = now.ns;
    }
    return true;
  }

  void Forget() {
    Reset(limit_, state_, hits_);
    remembered_until_ = {};
  }

  bool Differ(const std::string& how) {
    story_ += how;
    return false;
  }

  template <typename... Args>
  void Note(fmt::format_string<Args...> format, Args&&... args) {
    if (telling_ == Telling::kNothing) return;
    if (story_.size() > 20'000) story_ = "...\n";
    fmt::format_to(std::back_inserter(story_), format, std::forward<Args>(args)...);
    story_ += '\n';
  }

  int64_t NextTime() {
    const int64_t step = RandomTimeStep(random_, limit_.spec(), last_, now_, /*back_bits=*/62);
    // Not 0: a bucket that was only peeked at, at time 0, looks like an unused one.
    return std::max<int64_t>(earliest_,
                             base::Clamp(Instant::FromNanos(now_) + base::Duration(step)).ns);
  }

  Cost NextCost() {
    switch (random_() % 16) {
      case 0:
      case 1:
        return 0;
      case 2:
      case 3:
        return Between(random_, 2, 5);
      case 4:
        return last_.remaining;
      case 5:
        return last_.remaining + 1;
      case 6:
        return limit_.capacity() + random_() % 4 - 1;  // for 0: the largest cost
      case 7:
        return Between(random_, 0, limit_.capacity());
      case 8:
        return OneIn(random_, 4) ? kAll - random_() % 3 : AnySize(random_, 64);
      case 9:
        return last_.remaining / 2;
      default:
        return 1;
    }
  }

  Random& random_;
  const Telling telling_;
  Limit limit_;
  BucketState state_;
  EdgeHitLog hits_;
  std::array<int64_t, 4> earlier_{};  // times of some requests
  algorithm::RememberedUntil remembered_until_{};
  ReferenceBucket model_;
  int64_t now_;
  int64_t earliest_ = 1;  // the largest step back in time
  Decision last_;
  std::string story_;
};

}  // namespace

LimitSpec RandomSpec(Random& random, Algorithm algorithm) {
  for (;;) {
    const LimitSpec spec = AnySpec(random, algorithm);
    if (Limit::Make(spec).ok()) return spec;
  }
}

LimitSpec RandomChange(Random& random, const LimitSpec& spec) {
  for (;;) {
    LimitSpec to = spec;
    const uint64_t what = random() % 32;
    if (what == 0) {
      to = RandomSpec(random, static_cast<Algorithm>(random() % 6));
    } else if (what == 1) {
      to = RandomSpec(random, spec.algorithm);
    } else if (what == 2) {
      to.requests = 0;
    } else if (what == 3) {
      to.count_denied = !to.count_denied;
    } else if (what < 7) {
      to.block = OneIn(random, 3) ? algorithm::BlockLengths{} : AnyBlock(random);
    } else {
      const LimitSpec other = RandomSpec(random, spec.algorithm);
      to.burst = other.burst;
      switch (what % 4) {
        case 0:
          break;
        case 1:
          to.requests = spec.requests * Between(random, 2, 10);
          break;
        case 2:
          to.requests = Between(random, 1, 2 * (spec.requests % (uint64_t{1} << 32)) + 1);
          break;
        case 3:
          to.requests = other.requests;
          break;
      }
    }
    const bool has_no_interval = IsQueue(to.algorithm) && to.requests == 0;
    const bool kept = to.algorithm == spec.algorithm && to.period == spec.period;
    if (Limit::Make(to).ok() && (kept || !has_no_interval)) return to;
  }
}

int64_t RandomTimeStep(Random& random, const LimitSpec& spec, const Decision& last, int64_t now,
                       uint64_t back_bits) {
  const auto period = static_cast<uint64_t>(std::max<int64_t>(1, spec.period.count()));
  const auto beside = [&] { return static_cast<int64_t>(Between(random, 0, 2)) - 1; };
  int64_t step = 0;
  switch (random() % 16) {
    case 0:
    case 1:
    case 2:
    case 3:
      break;
    case 4:
      step = 1;
      break;
    case 5:
    case 6:
    case 7:
      if (!last.never_fits()) step = last.retry_after.count() + beside();
      break;
    case 8:
      step = last.reset_after.count() + beside();
      break;
    case 9:
    case 10:
      step = static_cast<int64_t>(period / std::max<uint64_t>(1, spec.requests)) + beside();
      break;
    case 11:
      step = static_cast<int64_t>(Between(random, 0, std::min(period, uint64_t{1} << 60)));
      break;
    case 12:
      step = static_cast<int64_t>(period - static_cast<uint64_t>(now) % period) + beside();
      break;
    case 13:
      step = -static_cast<int64_t>(AnySize(random, back_bits));
      break;
    case 14:
      step = static_cast<int64_t>(AnySize(random, 45));
      break;
    case 15:
      step = static_cast<int64_t>(AnySize(random, OneIn(random, 20) ? 62 : 57));
      break;
  }
  return std::min(step, base::kDurationMax.count());
}

static std::string DescribeBlock(const algorithm::BlockLengths& lengths) {
  std::string out = lengths.empty() ? "" : " block";
  for (size_t level = 0; level < lengths.size(); ++level)
    out += fmt::format(" {}s", lengths.seconds_at(level).count());
  return out;
}

std::string Describe(const LimitSpec& spec) {
  return fmt::format("{} {} per {}ns burst {} align {}{}", Name(spec.algorithm), spec.requests,
                     spec.period.count(), spec.burst ? fmt::to_string(*spec.burst) : "-",
                     static_cast<int>(spec.align), spec.count_denied ? " count_denied" : "") +
         (spec.overdraw ? " overdraw" : "") + DescribeBlock(spec.block);
}

std::string Describe(const Decision& decision) {
  return fmt::format("{} limit {} remaining {} retry {} reset {} wait {}{} blocked {}",
                     decision.allowed ? "allow" : "deny", decision.limit, decision.remaining,
                     decision.never_fits() ? "never" : fmt::to_string(decision.retry_after.count()),
                     decision.reset_after.count(), decision.wait.count(),
                     decision.overdrawn ? " overdrawn" : "", decision.blocked_for.count());
}

namespace {

// Describes the first difference; empty if there is none.
std::optional<std::string> FirstDifference(uint64_t seed, Algorithm algorithm, uint64_t steps,
                                           Telling telling) {
  Random random(seed);
  while (steps > 0) {
    Walk walk(random, RandomSpec(random, algorithm), telling);
    for (uint64_t left = std::min<uint64_t>(steps, Between(random, 1, 400)); left > 0;
         --left, --steps) {
      if (!walk.Step()) return walk.story();
      if (walk.at_the_end_of_time() && OneIn(random, 8)) break;
    }
  }
  return std::nullopt;
}

}  // namespace

std::string WalkAndCompare(uint64_t seed, Algorithm algorithm, uint64_t steps) {
  if (!FirstDifference(seed, algorithm, steps, Telling::kNothing)) return "";
  // Describing is slower than walking, so a failed walk is repeated to describe it.
  return fmt::format(
      "seed {}: {}", seed,
      FirstDifference(seed, algorithm, steps, Telling::kEachStep).value_or("not again"));
}

}  // namespace headgate::model
