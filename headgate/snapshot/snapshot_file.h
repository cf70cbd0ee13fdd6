// The file that holds the memory store's snapshot: restored at start, written periodically and at
// the end.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "headgate/base/status.h"
#include "headgate/base/time.h"
#include "headgate/net/spare_files.h"
#include "headgate/observe/log.h"
#include "headgate/observe/metrics.h"
#include "headgate/store/memory.h"

namespace headgate::snapshot {

class SnapshotFile {
 public:
  // With an empty `path` there is no snapshot, and every function does nothing. `spare_files`
  // provide a descriptor if the process has no free one.
  SnapshotFile(std::string path, store::MemoryStore& store, observe::Log& log,
               net::SpareFiles* spare_files = nullptr)
      : path_(std::move(path)), store_(store), log_(log), spare_files_(spare_files) {}

  enum class RestoreResult : uint8_t { kRestored, kAbsent, kCorrupt, kNewer, kUnreadable };
  static constexpr std::array kRestoreResults = {RestoreResult::kRestored, RestoreResult::kAbsent,
                                                 RestoreResult::kCorrupt, RestoreResult::kNewer,
                                                 RestoreResult::kUnreadable};

  // OK if `path` can hold a snapshot: a readable regular file, or no file yet, in a writable
  // directory. An empty path is OK.
  static absl::Status Check(const std::string& path);

  // Call it before the store is used. If the file is truncated, corrupt or of a newer version, it
  // is renamed to PATH.refused, or the first free name of PATH.refused.2 … PATH.refused.100, and
  // the server starts with empty buckets. If renaming fails too, the next write replaces the file.
  void Restore(base::Instant now);

  // Atomically replaces the file. On failure, logs and counts it and returns false.
  bool Write(base::Instant now);

  bool enabled() const { return !path_.empty(); }

  // From any thread.
  void Collect(observe::Sink& sink, base::Instant now) const;
  RestoreResult restored() const { return restored_; }
  uint64_t writes_done() const { return writes_done_.load(std::memory_order_relaxed); }
  uint64_t writes_failed() const { return writes_failed_.load(std::memory_order_relaxed); }
  // When the file was last written or restored, or 0.
  base::Instant written_at() const {
    return base::Instant::FromNanos(written_at_ns_.load(std::memory_order_relaxed));
  }

 private:
  const std::string path_;
  store::MemoryStore& store_;
  observe::Log& log_;
  net::SpareFiles* const spare_files_;
  RestoreResult restored_ = RestoreResult::kAbsent;
  std::atomic<uint64_t> writes_done_{0};
  std::atomic<uint64_t> writes_failed_{0};
  std::atomic<int64_t> written_at_ns_{0};
};

// "restored", "absent", "corrupt", "newer", "unreadable".
std::string_view Name(SnapshotFile::RestoreResult result);

}  // namespace headgate::snapshot
