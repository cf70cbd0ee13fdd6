// A penalty. After a denial the key stays denied for a time that the limit names, and for a longer
// one each time while violations continue:
//
//   block: [1m, 10m, 1h]
//   ──denied──▶ 1 min ──requests pass, then one is denied within 10 min──▶ 10 min ──…──▶ 1 h, 1 h …
//
// A block is part of the bucket's state, beside that of the algorithm, so it lives wherever the
// bucket lives. Requests during a block change nothing, so a client that waits is free at the time
// that it was told. Definition: docs/reference/algorithms.md, "block".
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "headgate/base/time.h"

namespace headgate::algorithm {

// The lengths of the first block, the second one in a row, and so on; the last one repeats. Empty:
// denials begin no block.
class BlockLengths {
 public:
  using Seconds = std::chrono::duration<uint32_t>;
  static constexpr size_t kMost = 6;
  static constexpr Seconds kLongest{365 * 24 * 60 * 60};

  constexpr bool empty() const { return lengths_[0] == Seconds{0}; }
  constexpr size_t size() const {
    return static_cast<size_t>(std::find(lengths_.begin(), lengths_.end(), Seconds{0}) -
                               lengths_.begin());
  }
  constexpr Seconds seconds_at(size_t level) const { return lengths_[level]; }
  // Levels count from 0; a level beyond the last one has the last length.
  constexpr base::Duration at(size_t level) const {
    return std::chrono::seconds(lengths_[std::min(level, size() - 1)].count());
  }
  // Requires size() < kMost and a length of 1 s to kLongest.
  constexpr void Add(Seconds length) { lengths_[size()] = length; }
  constexpr bool operator==(const BlockLengths&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const BlockLengths& lengths) {
    for (const Seconds length : lengths.lengths_) h = H::combine(std::move(h), length.count());
    return h;
  }

 private:
  std::array<Seconds, kMost> lengths_{};  // 0 if not used
};

// The latest block of a bucket. All zero: there was none.
struct Block {
  base::Instant until{0};
  uint8_t level = 0;  // from 0
  bool used = false;  // whether anything has been taken from the bucket since its end

  bool exists() const { return until.ns != 0; }
  bool IsInForce(base::Instant now) const { return until > now; }
  bool operator==(const Block&) const = default;
};

// The block that a violation at `now` begins.
constexpr Block NextBlock(const BlockLengths& lengths, const Block& last, base::Instant now) {
  const auto next = static_cast<uint8_t>(std::min<size_t>(last.level + 1u, lengths.size() - 1));
  const bool goes_on = last.until.ns != 0 && now < last.until + lengths.at(next);
  const uint8_t level = goes_on ? next : uint8_t{0};
  return {.until = now + lengths.at(level), .level = level};
}

// Until when the last block matters to a bucket that is otherwise fresh.
constexpr base::Instant MattersUntil(const BlockLengths& lengths, const Block& block) {
  if (block.until.ns == 0 || lengths.empty()) return base::Instant::FromNanos(0);
  return lengths.size() == 1 ? block.until : block.until + lengths.at(block.level + 1u);
}

// The block of a bucket whose limit is replaced at `now` by one with these lengths. It never ends
// later than before, and is no longer than the new lengths say.
constexpr Block CarriedOver(const BlockLengths& to, Block block, base::Instant now) {
  if (to.empty() || block.until.ns == 0) return {};
  block.level = static_cast<uint8_t>(std::min<size_t>(block.level, to.size() - 1));
  block.until = std::min(block.until, now + to.at(block.level));
  return block;
}

// The block of a bucket whose clock was set back by `back`.
constexpr Block SetBack(Block block, base::Duration back) {
  if (block.until.ns != 0) block.until = {std::max<int64_t>(1, (block.until - back).ns)};
  return block;
}

}  // namespace headgate::algorithm
