// Random changes of one counter, at random times, and their answers by algorithm::Increment. For
// comparisons with the script that does the same in a shared store.
//
// Times are whole milliseconds, as in a Redis server.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "headgate/algorithm/counter.h"

namespace headgate::redis_host {

inline std::string Describe(const algorithm::CounterAnswer& answer) {
  return fmt::format("{}: {} ({})", static_cast<int>(answer.outcome), ToText(answer.value),
                     ToText(answer.applied));
}

inline std::string Describe(const algorithm::CounterChange& change) {
  return fmt::format("kind {} by {} least {} most {} saturates {} expiry {} {} ms only_if_none {}",
                     static_cast<int>(change.kind), ToText(change.by), ToText(change.least),
                     ToText(change.most), change.saturates, static_cast<int>(change.expiry.kind),
                     change.expiry.time.count(), change.expiry.only_if_none);
}

class CounterWalk {
 public:
  enum class Numbers : uint8_t {
    kSmall,    // a few digits
    kExtreme,  // near the bounds of 64 bits, with any number of decimals
  };

  CounterWalk(uint64_t seed, Numbers numbers) : random_(seed), numbers_(numbers) {}

  // The next change. The clock may have advanced.
  algorithm::CounterChange Next() {
    using Kind = algorithm::CounterExpiry::Kind;
    now_ = now_ + std::chrono::milliseconds(Below(40));
    algorithm::CounterChange change;
    if (OneIn(2)) change.kind = algorithm::CounterChange::Kind::kDecimal;
    change.by = Number(change.kind);
    if (OneIn(3)) change.least = Number(change.kind);
    if (OneIn(3)) change.most = Number(change.kind);
    if (change.least.wide() > change.most.wide()) std::swap(change.least, change.most);
    change.saturates = OneIn(2);
    change.expiry.kind = static_cast<Kind>(Below(4));
    if (change.expiry.kind == Kind::kIn)
      change.expiry.time = std::chrono::milliseconds(1 + Below(300));
    if (change.expiry.kind == Kind::kAt)
      change.expiry.time = std::chrono::milliseconds(now_.ns / 1'000'000 - 20 + Below(300));
    change.expiry.only_if_none = change.expiry.kind >= Kind::kIn && OneIn(2);
    return change;
  }

  algorithm::CounterAnswer Answer(const algorithm::CounterChange& change) {
    const auto answer = Increment(change, counter_, now_);
    if (counter_ && counter_->expires_at <= now_) counter_.reset();
    return answer;
  }

  const std::optional<algorithm::Counter>& counter() const { return counter_; }
  base::Instant now() const { return now_; }
  // Empty if there is no counter, or it has no expiry.
  std::optional<base::Duration> TimeToLive() const {
    if (!counter_ || counter_->expires_at == algorithm::Counter::kNeverExpires) return std::nullopt;
    return counter_->expires_at - now_;
  }

 private:
  int64_t Below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  bool OneIn(int64_t n) { return Below(n) == 0; }

  base::Decimal Number(algorithm::CounterChange::Kind kind) {
    const bool integer = kind == algorithm::CounterChange::Kind::kInteger;
    int64_t units = Below(41) - 20;
    auto scale = static_cast<uint32_t>(integer ? 0 : Below(3));
    if (numbers_ == Numbers::kExtreme) {
      units = static_cast<int64_t>(random_()) >> Below(64);
      if (OneIn(8)) units = OneIn(2) ? INT64_MAX - Below(3) : INT64_MIN + Below(3);
      if (!integer) scale = static_cast<uint32_t>(Below(18));
    }
    return *base::Decimal::FromWide((base::Decimal{.units = units, .scale = scale}).wide());
  }

  std::mt19937_64 random_;
  const Numbers numbers_;
  base::Instant now_ = base::Instant::FromNanos(1'790'000'000'000'000'000);
  std::optional<algorithm::Counter> counter_;
};

}  // namespace headgate::redis_host
