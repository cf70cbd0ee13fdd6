// The memory store's snapshot as a file: restored at start, written while running and at the end.
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
#include "headgate/store/memory.h"

namespace headgate::app {

class SnapshotFile {
 public:
  // `path` empty: there is none, and everything here does nothing. `spare_files` are for a process
  // without others.
  SnapshotFile(std::string path, store::MemoryStore& store, observe::Log& log,
               net::SpareFiles* spare_files = nullptr)
      : path_(std::move(path)), store_(store), log_(log), spare_files_(spare_files) {}

  enum class RestoreResult : uint8_t { kRestored, kAbsent, kCorrupt, kNewer, kUnreadable };
  static constexpr std::array kRestoreResults = {RestoreResult::kRestored, RestoreResult::kAbsent,
                                                 RestoreResult::kCorrupt, RestoreResult::kNewer,
                                                 RestoreResult::kUnreadable};

  // Ok if there can be a snapshot at `path`: a regular file that can be read, or none, in a
  // directory that can be written. Empty paths are fine.
  static absl::Status Check(const std::string& path);

  // Before the store is used. A regular file that is truncated, corrupt or of a newer version is
  // kept beside it, as PATH.refused or the first of PATH.refused.2 … PATH.refused.100 that is free,
  // and the start goes on without. If even that fails, the next write replaces it.
  void Restore(base::Instant now);

  // Atomically replaces the file. False if that failed; it is logged and counted.
  bool Write(base::Instant now);

  bool enabled() const { return !path_.empty(); }

  // For the metrics; from any thread.
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

}  // namespace headgate::app
