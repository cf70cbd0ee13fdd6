// A HitLog in a std::deque, for tests and for embedders that keep a bucket themselves.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>

#include "headgate/algorithm/bucket.h"

namespace headgate::testing {

class DequeHitLog final : public algorithm::HitLog {
 public:
  // Append returns false if `hits_max` hits are stored already.
  explicit DequeHitLog(size_t hits_max = std::numeric_limits<size_t>::max())
      : hits_max_(hits_max) {}

  bool empty() const override { return hits_.empty(); }
  algorithm::Hit Oldest() const override { return hits_.front(); }
  algorithm::Hit Newest() const override { return hits_.back(); }
  void DropOldest() override { hits_.pop_front(); }
  void ReduceNewest(uint32_t cost) override {
    if (hits_.back().cost > cost) {
      hits_.back().cost -= cost;
    } else {
      hits_.pop_back();
    }
  }
  uint32_t ReduceAt(base::Instant at, uint64_t cost) override {
    const uint64_t asked = cost;
    for (size_t i = hits_.size(); i-- > 0 && cost > 0;) {
      if (hits_[i].at != at) continue;
      const auto part = static_cast<uint32_t>(std::min<uint64_t>(cost, hits_[i].cost));
      cost -= part;
      hits_[i].cost -= part;
      if (hits_[i].cost == 0) hits_.erase(hits_.begin() + static_cast<ptrdiff_t>(i));
    }
    return static_cast<uint32_t>(asked - cost);
  }
  bool Append(algorithm::Hit hit) override {
    if (hits_.size() >= hits_max_) return false;
    hits_.push_back(hit);
    return true;
  }
  void ForEach(Visitor visit) const override {
    for (const algorithm::Hit& hit : hits_) {
      if (!visit(hit)) return;
    }
  }

  size_t size() const override { return hits_.size(); }

 private:
  size_t hits_max_;
  std::deque<algorithm::Hit> hits_;
};

}  // namespace headgate::testing
