#include "headgate/app/snapshot_file.h"

#include <cstdio>

#include "headgate/app/file_io.h"

namespace headgate::app {
namespace {

using RestoreResult = SnapshotFile::RestoreResult;

RestoreResult ResultOf(const absl::Status& status) {
  if (status.ok()) return RestoreResult::kRestored;
  if (absl::IsNotFound(status)) return RestoreResult::kAbsent;
  if (absl::IsUnimplemented(status)) return RestoreResult::kNewer;
  if (absl::IsDataLoss(status)) return RestoreResult::kCorrupt;
  return RestoreResult::kUnreadable;
}

}  // namespace

std::string_view Name(RestoreResult result) {
  switch (result) {
    case RestoreResult::kRestored:
      return "restored";
    case RestoreResult::kAbsent:
      return "absent";
    case RestoreResult::kCorrupt:
      return "corrupt";
    case RestoreResult::kNewer:
      return "newer";
    case RestoreResult::kUnreadable:
      return "unreadable";
  }
  return "";
}

void SnapshotFile::Restore(base::Instant now) {
  if (!enabled()) return;
  const auto file = MappedFile::Open(path_);
  const absl::Status status = file.ok() ? store_.Restore(file->bytes(), now) : file.status();
  restored_ = ResultOf(status);
  if (restored_ == RestoreResult::kAbsent) return log_.Info("snapshot.absent", {{"file", path_}});
  if (restored_ == RestoreResult::kRestored) {
    written_at_ns_.store(now.ns, std::memory_order_relaxed);
    return log_.Info("snapshot.restored", {{"file", path_}, {"buckets", store_.stats().buckets}});
  }
  const std::string why(status.message());
  const std::string aside = path_ + ".refused";
  const bool kept = std::rename(path_.c_str(), aside.c_str()) == 0;
  log_.Error("snapshot.refused", {{"file", path_},
                                  {"result", Name(restored_)},
                                  {"why", why},
                                  {"kept_as", kept ? std::string_view(aside) : std::string_view("nothing")},
                                  {"so", std::string_view("starting without what was consumed before")}});
}

bool SnapshotFile::Write(base::Instant now) {
  if (!enabled()) return true;
  const absl::Status status = ReplaceFile(path_, [&](const auto& write) { store_.WriteSnapshot(now, write); });
  if (!status.ok()) {
    writes_failed_.fetch_add(1, std::memory_order_relaxed);
    log_.Error("snapshot.failed", {{"file", path_}, {"why", std::string(status.message())}});
    return false;
  }
  writes_done_.fetch_add(1, std::memory_order_relaxed);
  written_at_ns_.store(now.ns, std::memory_order_relaxed);
  log_.Debug("snapshot.written", {{"file", path_}, {"buckets", store_.stats().buckets}});
  return true;
}

}  // namespace headgate::app
