// The ids of the last writes of a value. If the answer to a write is lost, they tell whether it was
// applied.
//
// A value contains the last write of each of its latest writers, latest first:
//
//   (b, 7) (a, 3)         write (a, 4) is applied  →  (a, 4) (b, 7)
//
// So a writer that has at most one write of a value in progress can find that write however often
// others have written since, unless more than kWritersMax writers have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace headgate::store::cas {

inline constexpr size_t kWritersMax = 16;

struct WriteId {
  uint64_t writer = 0;  // random, drawn when the process starts
  uint64_t number = 0;  // never used twice by this writer
  bool operator==(const WriteId&) const = default;
};

// Adds a write: it is the latest, and the only one of its writer. Drops the oldest if necessary.
void AddWrite(WriteId id, std::vector<WriteId>& writes);

enum class WriteFate : uint8_t { kApplied, kNotApplied, kUnknown };

// Whether write `id` was applied to a value with the writes `before`, which has the writes `found`
// now. The value must not have been removed in the meantime.
WriteFate FateOf(WriteId id, std::span<const WriteId> before, std::span<const WriteId> found);

}  // namespace headgate::store::cas
