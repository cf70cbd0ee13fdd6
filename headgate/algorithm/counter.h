// A counter: a number under a key, perhaps with an expiry, that INCREX changes. It has no limit of
// its own; each change says which values it allows.
//
//   change    by 1, at most 100, expires in 60 s unless it has an expiry
//   counter   none     → 1, expires in 60 s     (value 1, applied 1)
//             99       → 100                    (value 100, applied 1)
//             100      → 100                    (value 100, applied 0: refused)
//
// Pure, as decide.h. Values are exact decimals.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "headgate/algorithm/bucket.h"
#include "headgate/base/decimal.h"
#include "headgate/base/time.h"

namespace headgate::algorithm {

struct Counter {
  // Later than every expiry that a change can set.
  static constexpr base::Instant kNeverExpires = base::Instant::FromNanos(INT64_MAX - 1);

  base::Decimal value{};
  base::Instant expires_at = kNeverExpires;

  bool operator==(const Counter&) const = default;
};

// The longest time until an expiry, and the latest expiry since 1970: 146 years. An instant and
// this time fit into 63 bits.
inline constexpr std::chrono::milliseconds kCounterExpiryMax =
    std::chrono::floor<std::chrono::milliseconds>(base::kDurationMax) -
    std::chrono::milliseconds(1);

struct CounterExpiry {
  enum class Kind : uint8_t {
    kKeep,
    kRemove,
    kIn,  // `time` after now
    kAt,  // `time` after 1970; an expiry that is not later than now removes the counter
  };
  Kind kind = Kind::kKeep;
  std::chrono::milliseconds time{0};  // of a new expiry: 1 ms to kCounterExpiryMax
  bool only_if_none = false;          // an expiry that the counter has stays

  bool operator==(const CounterExpiry&) const = default;
};

struct CounterChange {
  // kInteger changes only a value that is an integer, kDecimal any value.
  enum class Kind : uint8_t { kInteger, kDecimal };
  Kind kind = Kind::kInteger;
  base::Decimal by = base::Decimal::Integer(1);
  // The allowed values, inclusive; least <= most.
  base::Decimal least = base::Decimal::Min();
  base::Decimal most = base::Decimal::Max();
  // Whether a value that is not allowed becomes the nearest one that is. If not, it is refused.
  bool saturates = false;
  CounterExpiry expiry{};
};

struct CounterAnswer {
  // Nothing has changed unless it is kApplied.
  enum class Outcome : uint8_t {
    kApplied,
    kRefused,          // the value would not be allowed
    kNotAnInteger,     // an integer change met a number that is not an integer
    kNotANumber,       // the key holds another value; only in a shared store
    kAppliedOverflow,  // the applied part needs more than 64 bits
    kTooManyDigits,    // the value needs more than 64 bits, although it is in range
    kWrongType,        // the key holds a bucket
  };
  Outcome outcome = Outcome::kApplied;
  base::Decimal value{};    // after the change; only if it was applied or refused
  base::Decimal applied{};  // how much was added

  bool operator==(const CounterAnswer&) const = default;
};

// Changes the counter, or creates or removes it. A missing counter counts as 0, and so does one
// that has expired.
CounterAnswer Increment(const CounterChange& change, std::optional<Counter>& counter,
                        base::Instant now);

// ---- A counter in the place of a bucket

// Stores a counter as the state of a token bucket that is full when the counter expires: `edge` is
// the expiry, `seen` the units of the value, and `count` its scale. So the store may forget the
// counter from its expiry on, as it does with a fresh bucket (FreshAt may return one nanosecond
// more).
BucketState StateOf(const Counter& counter);
Counter CounterOf(const BucketState& state);

}  // namespace headgate::algorithm
