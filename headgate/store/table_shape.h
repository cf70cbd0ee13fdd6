// Which segment of the memory store's table a key belongs to, while the table grows.
//
// A key's hash is a number from 0 to 2^64 - 1, and n segments divide this range into equal parts.
// The table grows in rounds. In a round every segment p is split into the segments 2p and 2p + 1,
// from the last one to the first, one at a time (linear hashing: Litwin, "Linear Hashing: A New
// Tool for File and Table Addressing", 1980). While segments are split, they lie like this:
//
//   0 … unsplit - 1            of n segments
//   unsplit … 2·unsplit - 1    empty
//   2·unsplit … 2n - 1         of 2n segments
//
// Rounds start with 64 to 127 segments and end with the largest table.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>

#include "headgate/base/wide.h"

namespace headgate::store {

class TableShape {
 public:
  // A table that can grow to at least this many segments. With fewer than 128 it never grows.
  explicit TableShape(uint64_t segments)
      : count_min_(CountMin(segments)),
        count_max_(count_min_ * DoublingOf(segments)),
        now_(Whole(count_min_)) {}

  uint64_t count_max() const { return count_max_; }
  // All segments that have buckets are below this number.
  uint64_t count() const {
    const Now now = now_.load(std::memory_order_relaxed);
    return now.unsplit == now.count ? now.count : 2 * uint64_t{now.count};
  }
  // The segments at the beginning of the current round.
  uint64_t count_before_round() const { return now_.load(std::memory_order_relaxed).count; }
  bool grows() const { return count_before_round() < count_max_; }

  uint64_t SegmentOf(uint64_t bits) const {
    const Now now = now_.load(std::memory_order_acquire);
    const uint64_t segment = base::MulHigh(bits, now.count);
    if (segment < now.unsplit) [[likely]]
      return segment;
    return PartOf(bits, now.count);
  }
  // The same, but kSplit if that segment has been split in the current round. This is faster, and
  // between rounds the result is never kSplit.
  static constexpr uint64_t kSplit = ~uint64_t{0};
  uint64_t UnsplitSegmentOf(uint64_t bits) const {
    const Now now = now_.load(std::memory_order_acquire);
    const uint64_t segment = base::MulHigh(bits, now.count);
    return segment < now.unsplit ? segment : kSplit;
  }

  // A second hash for a key. It always belongs to another segment than the first hash, however
  // large the table is, unless there is only one segment.
  uint64_t SecondBits(uint64_t bits) const {
    const uint64_t second = std::rotl(bits, 32);
    if (base::MulHigh(second, count_min_) != base::MulHigh(bits, count_min_)) return second;
    return second + (~uint64_t{0} / count_min_ + 1);
  }

  // The next segment that is split, into 2p and 2p + 1. One caller at a time, as for SplitNext().
  uint64_t next_to_split() const { return now_.load(std::memory_order_relaxed).unsplit - 1; }
  void SplitNext() {
    Now now = now_.load(std::memory_order_relaxed);
    --now.unsplit;
    now_.store(now.unsplit > 0 ? now : Whole(2 * uint64_t{now.count}), std::memory_order_release);
  }
  // Does a whole round at once, for a table without buckets.
  void Double() { now_.store(Whole(2 * count_before_round()), std::memory_order_release); }

 private:
  // A table starts with at least this many segments, so rounding its size adds at most a 64th.
  static constexpr uint64_t kCountMin = 64;

  struct Now {
    uint32_t count;
    uint32_t unsplit;
  };
  static_assert(std::atomic<Now>::is_always_lock_free);

  // Not inlined, because GCC 12 would compute it in every case.
  [[gnu::noinline, gnu::cold]] static uint64_t PartOf(uint64_t bits, uint32_t count) {
    return base::MulHigh(bits, 2 * uint64_t{count});
  }
  static Now Whole(uint64_t count) {
    return {.count = static_cast<uint32_t>(count), .unsplit = static_cast<uint32_t>(count)};
  }
  static uint64_t DoublingOf(uint64_t segments) {
    return std::bit_floor(std::max<uint64_t>(1, segments / kCountMin));
  }
  static uint64_t CountMin(uint64_t segments) {
    return (segments + DoublingOf(segments) - 1) / DoublingOf(segments);
  }

  const uint64_t count_min_;
  const uint64_t count_max_;
  std::atomic<Now> now_;
};

}  // namespace headgate::store
