// How many requests an upstream answers while it is saturated, from the rates of its windows: the
// mean of the middle third of the last nine. Neither a pause nor a lucky window moves it. If three
// in a row differ from it in the same direction (a fifth less, or a sixth more), the upstream has
// changed, and only they count.
//
// Rates are in thousandths of an answer per second. Pure and without allocation. Not thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace headgate::capacity {

class KnownRate {
 public:
  // The rate is known after this many windows.
  static constexpr size_t kWindowsLeast = 3;
  using Rates = std::array<uint64_t, kWindowsLeast>;

  // The value is within these bounds.
  KnownRate(uint64_t least, uint64_t most) : least_(least), most_(most) {}

  // 0 while unknown. Changes by more than 2.5 % or not at all.
  uint64_t value() const { return value_; }
  bool is_known() const { return value_ > 0; }
  bool has_windows() const { return count_ > 0; }
  // Whether the known rate is less than `rate` by more than 5 %.
  bool IsLessThan(uint64_t rate) const { return is_known() && rate > value_ + value_ / 20; }

  // The rate of a saturated window. Returns true if the upstream has changed.
  bool Take(uint64_t rate);

  // ---- Earlier windows no longer count

  // The upstream answers this many.
  void Replace(const Rates& rates);
  // The upstream answers at least this many.
  void Raise(uint64_t rate);
  // Another process has measured this rate. A window that differs by chance does not replace it.
  void BeginWith(uint64_t rate);

 private:
  static constexpr size_t kWindows = 9;

  uint64_t Last(size_t back) const;
  bool LastDiffer() const;
  void Set(uint64_t rate);

  uint64_t least_;
  uint64_t most_;
  std::array<uint64_t, kWindows> rates_{};  // a ring
  size_t count_ = 0;
  size_t next_ = 0;
  uint64_t value_ = 0;
};

}  // namespace headgate::capacity
