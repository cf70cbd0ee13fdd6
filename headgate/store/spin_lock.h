// A lock of one byte for the few dozen nanoseconds of a decision.
//
// A thread that finds the lock taken leaves it alone for about a microsecond. Meanwhile the other
// thread can make many decisions with the bucket in its own cache. If both tried all the time, each
// decision would first wait for the cache line to move from one core to the other. A thread that
// waits long yields its core, so a holder that was preempted can finish.
#pragma once

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace headgate::store {

class SpinLock {
 public:
  void lock() {
    if (!try_lock()) [[unlikely]]
      LockLater();
  }
  bool try_lock() { return state_.exchange(1, std::memory_order_acquire) == 0; }
  void unlock() { state_.store(0, std::memory_order_release); }

 private:
  // A pause takes 10 to 140 cycles, depending on the processor.
  static constexpr int kPausesMin = 64;
  static constexpr int kPausesMax = 1024;

  [[gnu::noinline]] void LockLater() {
    int pauses = kPausesMin;
    do {
      for (int i = 0; i < pauses; ++i) Pause();
      // Longer than any running holder needs.
      if (pauses == kPausesMax) sched_yield();
      pauses = std::min(2 * pauses, kPausesMax);
    } while (state_.load(std::memory_order_relaxed) != 0 || !try_lock());
  }

  static void Pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("isb");
#endif
  }

  std::atomic<uint8_t> state_{0};
};
static_assert(sizeof(SpinLock) == 1);

}  // namespace headgate::store
