// A lock of one byte for the few dozen nanoseconds of a decision. A thread that waits long yields
// its core, so a holder that was preempted can finish.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

namespace headgate::store {

class SpinLock {
 public:
  void lock() {
    while (!try_lock()) Wait();
  }
  bool try_lock() { return state_.exchange(1, std::memory_order_acquire) == 0; }
  void unlock() { state_.store(0, std::memory_order_release); }

 private:
  // About 40 µs, which is longer than any running holder needs.
  static constexpr int kSpinsBeforeYield = 4096;

  void Wait() const {
    for (int spins = 0; state_.load(std::memory_order_relaxed) != 0; ++spins) {
      if (spins < kSpinsBeforeYield) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
      } else {
        sched_yield();
      }
    }
  }

  std::atomic<uint8_t> state_{0};
};
static_assert(sizeof(SpinLock) == 1);

}  // namespace headgate::store
