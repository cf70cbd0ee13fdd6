#include "headgate/snapshot/snapshot_file.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <optional>

#include "headgate/files/files.h"

namespace headgate::snapshot {
namespace {

using RestoreResult = SnapshotFile::RestoreResult;

RestoreResult ResultOf(const absl::Status& status) {
  if (status.ok()) return RestoreResult::kRestored;
  if (absl::IsNotFound(status)) return RestoreResult::kAbsent;
  if (absl::IsUnimplemented(status)) return RestoreResult::kNewer;
  if (absl::IsDataLoss(status)) return RestoreResult::kCorrupt;
  return RestoreResult::kUnreadable;
}

constexpr int kRefusedMax = 100;

// Renames the refused file and returns its new path; empty if it could not be renamed.
std::optional<std::string> KeepAside(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return std::nullopt;
  for (int i = 1; i <= kRefusedMax; ++i) {
    const std::string aside = i == 1 ? path + ".refused" : fmt::format("{}.refused.{}", path, i);
    if (std::filesystem::symlink_status(aside, error).type() !=
        std::filesystem::file_type::not_found)
      continue;
    if (std::rename(path.c_str(), aside.c_str()) == 0) return aside;
    return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

absl::Status SnapshotFile::Check(const std::string& path) {
  if (path.empty()) return absl::OkStatus();
  std::error_code error;
  const auto type = std::filesystem::status(path, error).type();
  if (type == std::filesystem::file_type::directory) {
    return absl::InvalidArgumentError(fmt::format("{} is a directory; name a file in it", path));
  }
  if (type != std::filesystem::file_type::not_found &&
      type != std::filesystem::file_type::regular && type != std::filesystem::file_type::none) {
    return absl::InvalidArgumentError(
        fmt::format("{} is not a regular file; name another path", path));
  }
  const auto file = files::MappedFile::Open(path);
  if (!file.ok() && !absl::IsNotFound(file.status())) return file.status();
  return files::CheckReplaceable(path);
}

void SnapshotFile::Collect(observe::Sink& sink, base::Instant now) const {
  using observe::Metric;
  if (!enabled()) return;
  sink.Set(Metric::kSnapshotWrites, {"written"}, writes_done());
  sink.Set(Metric::kSnapshotWrites, {"failed"}, writes_failed());
  for (const RestoreResult result : kRestoreResults)
    sink.Set(Metric::kSnapshotRestores, {Name(result)}, uint64_t{restored_ == result});
  if (const base::Instant at = written_at(); at.ns != 0)
    sink.Set(Metric::kSnapshotAge, {}, now - at);
}

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
  const auto file = files::MappedFile::Open(path_);
  const absl::Status status = file.ok() ? store_.Restore(file->bytes(), now) : file.status();
  restored_ = ResultOf(status);
  if (restored_ == RestoreResult::kAbsent)
    return log_.Info("snapshot.not_found", {{"file", path_}});
  if (restored_ == RestoreResult::kRestored) {
    written_at_ns_.store(now.ns, std::memory_order_relaxed);
    const store::MemoryStats stats = store_.stats();
    log_.Info("snapshot.restored", {{"file", path_}, {"buckets", stats.buckets}});
    if (stats.left_out > 0) {
      log_.Warning("snapshot.buckets_left_out",
                   {{"file", path_},
                    {"buckets", stats.left_out},
                    {"reason", std::string_view("max_limits leaves no room for their limits")},
                    {"effect",
                     std::string_view("the requests that these buckets had counted are forgotten")},
                    {"hint", std::string_view("raise max_limits to its previous value")}});
    }
    return;
  }
  const std::string reason(status.message());
  const std::optional<std::string> aside = KeepAside(path_);
  log_.Error("snapshot.refused",
             {{"file", path_},
              {"result", Name(restored_)},
              {"reason", reason},
              {"kept_as", std::string_view(aside ? *aside : "nothing")},
              {"effect", std::string_view("the server starts with empty buckets")}});
}

bool SnapshotFile::Write(base::Instant now) {
  if (!enabled()) return true;
  const absl::Status status =
      files::ReplaceFile(path_, [&](const auto& write) { store_.WriteSnapshot(now, write); },
                         {.spare_files = spare_files_});
  if (spare_files_ != nullptr) (void)spare_files_->Refill();
  if (!status.ok()) {
    writes_failed_.fetch_add(1, std::memory_order_relaxed);
    log_.Error(
        "snapshot.write_failed",
        {{"file", path_},
         {"reason", std::string(status.message())},
         {"effect",
          std::string_view("requests counted since the last snapshot are in memory only; they are "
                           "lost at a stop unless a later write succeeds")}});
    return false;
  }
  writes_done_.fetch_add(1, std::memory_order_relaxed);
  written_at_ns_.store(now.ns, std::memory_order_relaxed);
  log_.Debug("snapshot.written", {{"file", path_}, {"buckets", store_.stats().buckets}});
  return true;
}

}  // namespace headgate::snapshot
