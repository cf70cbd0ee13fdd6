// A hit log that stays empty, for algorithms that keep no hits.
#pragma once

#include "headgate/algorithm/bucket.h"

namespace headgate::algorithm {

class NoHits final : public HitLog {
 public:
  bool empty() const override { return true; }
  size_t size() const override { return 0; }
  Hit Oldest() const override { return {}; }
  Hit Newest() const override { return {}; }
  void DropOldest() override {}
  void ReduceNewest(uint32_t) override {}
  uint32_t ReduceAt(base::Instant, uint64_t) override { return 0; }
  bool Append(Hit) override { return false; }
  void ForEach(Visitor) const override {}
};

}  // namespace headgate::algorithm
