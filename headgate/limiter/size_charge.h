// The charges of a request by limits with a cost that is known only later (rule/size_cost.h): when
// the request has ended, or its answer has a status. Then the charge is corrected.
//
//   Check ──▶ Response::sized: the reserve is taken
//   the request ends with n bytes ──▶ less than taken: the surplus is undone
//                                     more: the rest is charged, whether or not the bucket has it
//
//   bucket 10 of 10, 1 per s; a response of 25 units, 1 of them reserved
//   ──▶ 24 are charged, the bucket is at −15 ──▶ every instance denies a request of 1 for 16 s
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
#include "headgate/limiter/request.h"
#include "headgate/limiter/settled.h"
#include "headgate/rule/size_cost.h"
#include "headgate/store/store.h"

namespace headgate::limiter {

// A request has taken this from one limit.
struct SizeTake {
  uint32_t descriptor = 0;   // of the request
  uint32_t limit_index = 0;  // in its rule; those of a roll-out in shadow follow
  base::Hash128 key{};       // of the bucket
  rule::SizeCost cost{};
  algorithm::Limit limit{};
  algorithm::Cost taken = 0;
  Settled settled{};  // how it was taken
};

// A step that brings a charge nearer to its size.
struct SizeStep {
  store::Operation operation = store::Operation::kCharge;  // or kUndo
  algorithm::Cost cost = 0;                                // 0: there is nothing to do
  // Only of an undo: how the cost was taken, and the time that the undo names.
  Settled taken{};
  base::Instant taken_at{0};
};

// One limit's charge for one request. It was taken in parts: the reserve, and what was charged
// later. The newest part is undone first.
class SizeCharge {
 public:
  // Older parts stay taken. Parts of a token bucket that one store gave count as one.
  static constexpr size_t kPartsMax = 4;

  // `request` has one descriptor.
  SizeCharge(std::shared_ptr<const KeptRequest> request, const SizeTake& take);

  // Its domain and descriptor.
  const Request& request() const { return request_->get(); }
  // The limit of the take was under this place of its rule, and its bucket has this key.
  uint32_t limit_index() const { return limit_index_; }
  const base::Hash128& key() const { return key_; }
  const algorithm::Limit& limit() const { return limit_; }
  const rule::SizeCost& cost() const { return cost_; }

  // Whether this many bytes cost more.
  bool IsLessThan(uint64_t bytes) const { return cost_.UnitsOf(bytes) > taken_; }

  // What to do next, until the charge is that of `bytes`.
  SizeStep StepTo(uint64_t bytes) const;
  // The step was done, or given up. `settled` is the answer to it.
  void OnStep(const SizeStep& step, const Settled& settled);

 private:
  struct Part {
    algorithm::Cost cost = 0;
    Settled settled{};
    // The refill of a bucket pays for this part from here on: what was taken before is paid first.
    base::Instant from{0};
  };

  void Add(algorithm::Cost cost, const Settled& settled);
  base::Duration RefillOf(algorithm::Cost cost) const;

  std::shared_ptr<const KeptRequest> request_;
  uint32_t limit_index_;
  base::Hash128 key_;
  rule::SizeCost cost_;
  algorithm::Limit limit_;
  algorithm::Cost taken_ = 0;
  std::vector<Part> parts_;  // oldest first
};

// The answer of Checker::Correct.
struct Corrected {
  bool waiting = false;  // not decided yet: continue the question when it is ready
  // Its mode is kClosed if nothing was asked: no such limit is in force any more, or not as it was
  // for an undo, or there is nothing to undo.
  Settled settled{.decision = {}, .mode = Mode::kClosed};
};

}  // namespace headgate::limiter
