// A cache of the limits that recent requests carried. CL.THROTTLE carries its limit in every
// request, and most requests carry the same few limits. Limits whose numbers are short are found by
// their text, without reading the numbers.
//
// One per loop, of fixed size, direct-mapped. A cached limit stays pinned in the store's table.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "headgate/base/digits.h"
#include "headgate/base/text.h"
#include "headgate/store/limit_table.h"

namespace headgate::front::resp {

// A limit as CL.THROTTLE and GCRA state it: up to max_burst + 1 at once, and `count` more per
// period.
struct ThrottleLimit {
  int64_t max_burst = 0;
  int64_t count = 0;
  int64_t period_s = 0;
  int64_t period_ns = 0;  // in addition to the seconds; below a second

  bool operator==(const ThrottleLimit&) const = default;
};

// The three numbers of a limit as a command writes them.
struct LimitText {
  std::string_view max_burst;
  std::string_view count;
  std::string_view period_s;
};

class LimitCache {
 public:
  // Null if the limit is not cached.
  const store::LimitEntry* Find(const ThrottleLimit& limit) const {
    const Slot& slot = slots_[IndexOf(limit)];
    return slot.limit == limit ? slot.entry.get() : nullptr;
  }
  // The limit that Note named. Null if another text or another limit has taken its place.
  const store::LimitEntry* Find(const LimitText& text) const {
    if (!IsShort(text)) return nullptr;
    const Words words = WordsOf(text);
    const Slot& slot = slots_[noted_[IndexOf(words)]];
    return slot.is_noted && slot.words == words ? slot.entry.get() : nullptr;
  }

  // May replace another limit: entries that were found before must no longer be in use.
  const store::LimitEntry* Put(const ThrottleLimit& limit, store::LimitHandle entry) {
    Slot& slot = slots_[IndexOf(limit)];
    slot = {.limit = limit, .entry = std::move(entry)};
    return slot.entry.get();
  }
  // From now on, Find(text) finds this cached limit, if the text is three short numbers without a
  // sign.
  void Note(const LimitText& text, const ThrottleLimit& limit) {
    if (!IsShort(text) || !IsDigits(text.max_burst) || !IsDigits(text.count) ||
        !IsDigits(text.period_s))
      return;
    const Words words = WordsOf(text);
    const size_t index = IndexOf(limit);
    slots_[index].words = words;
    slots_[index].is_noted = true;
    noted_[IndexOf(words)] = static_cast<uint16_t>(index);
  }

 private:
  static constexpr int kIndexBits = 10;

  // The digits of the text, see base::WordOfDigits.
  struct Words {
    uint64_t max_burst = 0;
    uint64_t count = 0;
    uint64_t period_s = 0;

    bool operator==(const Words&) const = default;
  };

  struct Slot {
    ThrottleLimit limit;
    store::LimitHandle entry{};
    Words words{};  // the text that was noted last, if one was
    bool is_noted = false;
  };

  static bool IsShort(const LimitText& text) {
    const auto fits = [](std::string_view number) {
      return number.size() - 1 < base::kShortNumberDigits;
    };
    return fits(text.max_burst) && fits(text.count) && fits(text.period_s);
  }
  static bool IsDigits(std::string_view number) {
    return std::all_of(number.begin(), number.end(), base::IsDigit);
  }
  static Words WordsOf(const LimitText& text) {
    return {base::WordOfDigits(text.max_burst), base::WordOfDigits(text.count),
            base::WordOfDigits(text.period_s)};
  }

  static size_t IndexOf(const ThrottleLimit& limit) {
    return IndexOf(static_cast<uint64_t>(limit.max_burst), static_cast<uint64_t>(limit.count),
                   static_cast<uint64_t>(limit.period_s + limit.period_ns));
  }
  static size_t IndexOf(const Words& words) {
    return IndexOf(words.max_burst, words.count, words.period_s);
  }
  // Multiplication by odd numbers spreads small differences into the upper bits (Fibonacci
  // hashing).
  static size_t IndexOf(uint64_t max_burst, uint64_t count, uint64_t period) {
    uint64_t h = max_burst * 0x9e3779b97f4a7c15u;
    h = (h ^ count) * 0xbf58476d1ce4e5b9u;
    h = (h ^ (h >> 32) ^ period) * 0x94d049bb133111ebu;
    return static_cast<size_t>(h >> (64 - kIndexBits));
  }

  std::array<Slot, size_t{1} << kIndexBits> slots_;
  // By the index of a text: the slot of its limit.
  std::array<uint16_t, size_t{1} << kIndexBits> noted_{};
};

}  // namespace headgate::front::resp
