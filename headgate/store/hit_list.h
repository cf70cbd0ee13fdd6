// The hits of a sliding log that was read from a store.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "headgate/algorithm/bucket.h"

namespace headgate::store {

class HitList final : public algorithm::HitLog {
 public:
  bool empty() const override { return first_ == hits_.size(); }
  algorithm::Hit Oldest() const override { return hits_[first_]; }
  algorithm::Hit Newest() const override { return hits_.back(); }
  void DropOldest() override { ++first_; }
  void ReduceNewest(uint32_t cost) override {
    if (hits_.back().cost > cost) {
      hits_.back().cost -= cost;
    } else {
      hits_.pop_back();
    }
  }
  uint32_t ReduceAt(base::Instant at, uint64_t cost) override {
    const uint64_t asked = cost;
    for (size_t i = hits_.size(); i-- > first_ && cost > 0;) {
      if (hits_[i].at != at) continue;
      const auto part = static_cast<uint32_t>(std::min<uint64_t>(cost, hits_[i].cost));
      cost -= part;
      hits_[i].cost -= part;
      if (hits_[i].cost == 0) hits_.erase(hits_.begin() + static_cast<ptrdiff_t>(i));
    }
    return static_cast<uint32_t>(asked - cost);
  }
  bool Append(algorithm::Hit hit) override {
    hits_.push_back(hit);
    return true;
  }
  void ForEach(Visitor visit) const override {
    for (size_t i = first_; i < hits_.size(); ++i) {
      if (!visit(hits_[i])) return;
    }
  }
  size_t size() const override { return hits_.size() - first_; }

 private:
  absl::InlinedVector<algorithm::Hit, 3> hits_;
  size_t first_ = 0;
};

}  // namespace headgate::store
