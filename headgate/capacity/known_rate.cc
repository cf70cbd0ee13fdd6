#include "headgate/capacity/known_rate.h"

namespace headgate::capacity {

bool KnownRate::Take(uint64_t rate) {
  rates_[next_] = rate;
  next_ = (next_ + 1) % kWindows;
  count_ = std::min(count_ + 1, kWindows);
  if (count_ < kWindowsLeast) return false;
  const bool has_changed = LastDiffer();
  if (has_changed) {
    Rates last{};
    for (size_t i = 0; i < kWindowsLeast; ++i) last[i] = Last(i);
    std::copy(last.begin(), last.end(), rates_.begin());
    count_ = next_ = kWindowsLeast;
  }
  std::array<uint64_t, kWindows> sorted = rates_;
  std::sort(sorted.begin(), sorted.begin() + static_cast<ptrdiff_t>(count_));
  const size_t from = count_ / 3;
  const size_t to = count_ - count_ / 3;
  uint64_t sum = 0;
  for (size_t i = from; i < to; ++i) sum += sorted[i];
  Set(sum / (to - from));
  return has_changed;
}

void KnownRate::Replace(const Rates& rates) {
  count_ = next_ = 0;
  for (const uint64_t rate : rates) Take(rate);
}

void KnownRate::Raise(uint64_t rate) {
  count_ = next_ = 0;
  Take(rate);
  Set(rate);
}

void KnownRate::BeginWith(uint64_t rate) {
  rate = std::clamp(rate, least_, most_);
  value_ = 0;
  Replace({rate, rate, rate});
}

// The rate of the last window but `back`.
uint64_t KnownRate::Last(size_t back) const {
  return rates_[(next_ + kWindows - 1 - back) % kWindows];
}

bool KnownRate::LastDiffer() const {
  bool all_less = true;
  bool all_more = true;
  for (size_t i = 0; i < kWindowsLeast; ++i) {
    all_less &= Last(i) * 5 < value_ * 4;
    all_more &= Last(i) * 6 > value_ * 7;
  }
  return is_known() && (all_less || all_more);
}

void KnownRate::Set(uint64_t rate) {
  rate = std::clamp(rate, least_, most_);
  const uint64_t difference = rate > value_ ? rate - value_ : value_ - rate;
  if (value_ == 0 || difference * 40 > value_) value_ = rate;
}

}  // namespace headgate::capacity
