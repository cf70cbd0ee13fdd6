// The charges of a request by limits with a cost by size (rule/size_cost.h). The size is known
// when the request has ended; then the charge is corrected.
//
//   Check ──▶ Response::sized: the reserve is taken
//   the request ends with n bytes ──▶ less than reserved: Checker::Correct gives the rest back
//                                     more: Correct takes the rest; what is missing is owed
//                                     (size_debts.h)
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/algorithm/limit.h"
#include "headgate/base/hash.h"
#include "headgate/base/time.h"
#include "headgate/limiter/settled.h"
#include "headgate/rule/descriptor.h"
#include "headgate/rule/size_cost.h"

namespace headgate::limiter {

// A request has taken this from one limit.
struct SizeTake {
  uint32_t descriptor = 0;   // of the request
  uint32_t limit_index = 0;  // in its rule; those of a roll-out in shadow follow
  base::Hash128 key;         // of the bucket
  rule::SizeCost cost{};
  algorithm::Limit limit;
  algorithm::Cost taken = 0;
  base::Instant window_end{0};  // of a window: the end of the one that was taken from
};

// A descriptor that outlives its request.
class KeptDescriptor {
 public:
  KeptDescriptor(std::string_view domain, const rule::Descriptor& descriptor);
  KeptDescriptor(const KeptDescriptor&) = delete;

  std::string_view domain() const { return domain_; }
  std::span<const rule::Entry> entries() const { return entries_; }

 private:
  std::string domain_;
  std::string texts_;
  std::vector<rule::Entry> entries_;
};

// A limit of a kept descriptor.
struct SizedLimit {
  std::shared_ptr<const KeptDescriptor> descriptor;
  uint32_t limit_index = 0;
  base::Hash128 key;
};

// One limit's charge for one request, until it is corrected for the last time.
class SizeCharge {
 public:
  SizeCharge(SizedLimit place, const SizeTake& take, base::Instant now)
      : place_(std::move(place)), take_(take), still_taken_(take.taken), corrected_at_(now) {}

  const SizedLimit& place() const { return place_; }
  rule::SizeCost::Of of() const { return take_.cost.of; }

  // Whether this many bytes cost more.
  bool IsLessThan(uint64_t bytes) const { return take_.cost.UnitsOf(bytes) > take_.taken; }

  // The work that makes the charge that of `bytes`. The charge counts it as done.
  struct Correction {
    algorithm::Cost missing = 0;  // to take
    algorithm::Cost surplus = 0;  // taken or owed in excess
    // The part of `surplus` that may go back to the bucket. The rest has come back by itself; to
    // give it back again would let through more than the limit.
    algorithm::Cost returnable = 0;
  };
  Correction CorrectTo(uint64_t bytes, base::Instant now);

 private:
  SizedLimit place_;
  SizeTake take_;
  // The part of what was taken that the bucket surely still lacks.
  algorithm::Cost still_taken_;
  base::Instant corrected_at_;
};

// The answer of Checker::Correct.
struct Corrected {
  bool waiting = false;  // not decided yet: call again when the Pending is ready
  // False if no such limit is in force any more. Nothing has changed then.
  bool known = false;
  algorithm::Cost asked = 0;  // at most the limit's capacity
  Settled settled{};
};

}  // namespace headgate::limiter
