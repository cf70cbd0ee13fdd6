// The log of a bucket that keeps no hits.
#pragma once

#include "headgate/algorithm/bucket.h"

namespace headgate::limiter {

class NoHits final : public algorithm::HitLog {
 public:
  bool empty() const override { return true; }
  algorithm::Hit Oldest() const override { return {}; }
  algorithm::Hit Newest() const override { return {}; }
  void DropOldest() override {}
  void ReduceNewest(uint32_t) override {}
  bool Append(algorithm::Hit) override { return false; }
  void ForEach(bool (*)(void*, algorithm::Hit), void*) const override {}
};

}  // namespace headgate::limiter
