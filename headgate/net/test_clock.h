// For the tests of this folder: a manual clock that any thread may move while the loops of a server
// read it.
#pragma once

#include <atomic>

#include "headgate/base/clock.h"

namespace headgate::net {

class TestClock final : public base::Clock {
 public:
  base::BootTime BootNow() const override { return base::BootTime::FromNanos(now_ns_.load()); }
  base::WallTime WallNow() const override { return base::WallTime::FromNanos(now_ns_.load()); }
  void Advance(base::Duration d) { now_ns_.fetch_add(d.count()); }

 private:
  std::atomic<int64_t> now_ns_{1'000'000'000};
};

}  // namespace headgate::net
