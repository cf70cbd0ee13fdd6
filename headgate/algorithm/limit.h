// A limit: an algorithm and its numbers, validated once. All values that a decision would need a
// division for are precomputed.
//
// Bounds, checked by Make; they exclude overflow in all algorithms:
//   requests  < 2^32 (if larger: after reduction by a common divisor with the period)
//   period    1 ns .. 2^62 ns
//   buckets   burst·period/requests, the time an empty bucket takes to fill, < 2^62 ns: 146 years
//             (a queue: including one interval more)
//   windows   requests < 2^32; period ≤ 2^60 ns, so that two periods fit
//   the log   requests ≤ kLogRequestsMax, because it keeps every hit
// Instants are below 2^62 (base::kInstantMax), so instant + span < 2^63 everywhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "headgate/algorithm/block.h"
#include "headgate/algorithm/decision.h"
#include "headgate/algorithm/traits.h"
#include "headgate/base/status.h"
#include "headgate/base/time.h"
#include "headgate/base/time_zone.h"
#include "headgate/base/wide.h"

namespace headgate::algorithm {

// When the windows of a fixed window begin.
enum class Align : uint8_t {
  kEpoch,
  kFirstHit,
  kCalendarMonth,
  kCalendarYear,
  kCalendarWeek,
  kCalendarDay
};

// Windows that follow the calendar. Months and years differ in length; weeks begin on Monday.
constexpr bool IsCalendar(Align align) { return align >= Align::kCalendarMonth; }
// The most hits that one log keeps: 100,000 hits take 1.6 MB for one key.
inline constexpr uint64_t kLogRequestsMax = 100'000;

// A limit as a person writes it. Two limits are equal if their specs are equal.
struct LimitSpec {
  Algorithm algorithm = Algorithm::kTokenBucket;
  uint64_t requests = 0;     // per period; 0 denies everything, forever
  base::Duration period{0};  // ignored by the calendar alignments, which define their own
  // Buckets only. Defaults to `requests`; 0 is allowed only for the queue.
  std::optional<uint64_t> burst{};
  Align align = Align::kEpoch;  // fixed windows only
  base::TimeZone zone{};        // calendar alignments only
  bool count_denied = false;    // fixed window and sliding counter only: denied requests count too
  // A request that does not fit is admitted nevertheless, unless the bucket is overdrawn already. A
  // queue cannot be overdrawn.
  bool overdraw = false;
  // After a denial the key stays denied for this long. It cannot be combined with count_denied or
  // overdraw, which handle excess requests in other ways.
  BlockLengths block{};

  bool operator==(const LimitSpec&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const LimitSpec& s) {
    return H::combine(std::move(h), s.algorithm, s.requests, s.period.count(), s.burst, s.align,
                      s.zone, s.count_denied, s.overdraw, s.block);
  }
};

// The length of the shortest window of a calendar alignment, and of the longest one.
base::Duration ShortestCalendarPeriod(const LimitSpec& spec);
base::Duration LongestCalendarPeriod(const LimitSpec& spec);

// The reason why a spec is not a valid limit.
struct LimitProblem {
  enum class About : uint8_t {
    kRequests,
    kPeriod,
    kBurst,
    kAlign,
    kTimeZone,
    kCountDenied,
    kOverdraw,
    kBlock
  };
  About about;          // the number or word to change
  std::string message;  // a message for the person who wrote it
};

// Immutable and cheap to copy.
class Limit {
 public:
  // InvalidArgument with the message of ProblemWith(spec).
  static absl::StatusOr<Limit> Make(const LimitSpec& spec);
  // Returns nothing if Make(spec) would succeed.
  static std::optional<LimitProblem> ProblemWith(const LimitSpec& spec);

  // A default-constructed limit denies everything.
  Limit() = default;

  const LimitSpec& spec() const { return spec_; }
  Algorithm algorithm() const { return spec_.algorithm; }
  // The value of Decision::limit: burst for the buckets, requests for the windows.
  uint64_t capacity() const { return capacity_; }
  bool denies_all() const { return spec_.requests == 0; }
  // Whether a denial begins a block (block.h).
  bool blocks() const { return !spec_.block.empty(); }

  // ---- For the algorithms. With N = requests and P = period, both after reduction:
  uint32_t requests() const { return requests_; }
  uint64_t period() const { return period_; }
  const base::Divider& period_divider() const { return period_divider_; }
  // One token, T = P/N, is interval + interval_fraction/N ns.
  uint64_t interval() const { return interval_; }
  uint32_t interval_fraction() const { return interval_fraction_; }
  // The full bucket, capacity·T, is span + span_fraction/N ns.
  uint64_t span() const { return span_; }
  uint32_t span_fraction() const { return span_fraction_; }
  // floor(2^64·N/P), at most 2^64 − 1; 0 if N > P.
  uint64_t rate_reciprocal() const { return rate_reciprocal_; }

 private:
  std::optional<LimitProblem> Set(const LimitSpec& spec);
  std::optional<LimitProblem> SetWindow(const LimitSpec& spec);
  std::optional<LimitProblem> SetBucket(const LimitSpec& spec);

  LimitSpec spec_;
  uint64_t capacity_ = 0;
  uint64_t period_ = 1;
  uint64_t interval_ = 0;
  uint64_t span_ = 0;
  uint64_t rate_reciprocal_ = 0;
  uint32_t requests_ = 0;
  uint32_t interval_fraction_ = 0;
  uint32_t span_fraction_ = 0;
  base::Divider period_divider_;
};

}  // namespace headgate::algorithm
