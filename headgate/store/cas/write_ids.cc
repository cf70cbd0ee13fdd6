#include "headgate/store/cas/write_ids.h"

#include <algorithm>

namespace headgate::store::cas {
namespace {

bool Contains(std::span<const WriteId> writes, WriteId id) {
  return std::find(writes.begin(), writes.end(), id) != writes.end();
}

}  // namespace

void AddWrite(WriteId id, std::vector<WriteId>& writes) {
  std::erase_if(writes, [&](const WriteId& write) { return write.writer == id.writer; });
  if (writes.size() >= kWritersMax) writes.resize(kWritersMax - 1);
  writes.insert(writes.begin(), id);
}

WriteFate FateOf(WriteId id, std::span<const WriteId> before, std::span<const WriteId> found) {
  if (Contains(found, id)) return WriteFate::kApplied;
  // No write has been dropped yet, so ours would be there.
  if (found.size() < kWritersMax) return WriteFate::kNotApplied;
  // The oldest writes are dropped first. If one of the writes `before` is still there, no later one
  // was dropped.
  const bool older_is_there = std::any_of(
      before.begin(), before.end(), [&](const WriteId& write) { return Contains(found, write); });
  return older_is_there ? WriteFate::kNotApplied : WriteFate::kUnknown;
}

}  // namespace headgate::store::cas
