// Detects changes to rule files: writes in place, atomic renames, the swap of a symbolic link (as
// Kubernetes mounts a ConfigMap), creation and removal.
//
// inotify reports most changes quickly. A check of the files' metadata twice a second finds the
// others (network file systems, renamed ancestors, a system that is out of watches). When no more
// changes arrive for a moment, the files are read and compared; the same content is not a change.
// No threads: poll fd() and call Step.
//
//   event ──> [ no event for `quiet`, no file open for writing; at most `delay_max` ] ──> read
//   read ──> reported, unless the content is the same
//
// If writing a file in place takes longer than `delay_max`, including pauses, a partial file is
// read.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/clock.h"
#include "headgate/base/hash.h"
#include "headgate/net/file_descriptor.h"
#include "headgate/watch/file/file_text.h"

namespace headgate::watch::file {

struct FileWatchOptions {
  // Read the files when there was no event for this long. Raise it if files are written slowly and
  // piece by piece.
  base::Duration quiet = std::chrono::milliseconds(50);
  // Read the files at the latest this long after the first event, even while events continue.
  base::Duration delay_max = std::chrono::milliseconds(500);
  // How often metadata is checked.
  base::Duration check_interval = std::chrono::milliseconds(500);
  // Whether the first Step reads the files. Otherwise it waits as after a change, because somebody
  // may be writing them.
  bool reads_at_once = true;
};

class FileWatch {
 public:
  explicit FileWatch(std::vector<std::string> paths, const FileWatchOptions& options = {});

  // Becomes readable when Step should be called. −1 if the system has no inotify instance left;
  // then only wake_at() applies.
  int fd() const { return inotify_.get(); }

  // Returns the files if they differ from the last result or if ReadAgain was called since. The
  // first call reads at once, if the options say so.
  std::optional<FilesRead> Step(base::BootTime now);

  // Reads again as after a change, that is, after `delay_max` at the latest. Step then returns one
  // result even if nothing changed. Also retries to get an inotify instance if the
  // system had none left, so fd() may change from −1.
  void ReadAgain(base::BootTime now);

  // Looks for changes, also for changes that inotify does not see. Returns whether there are some
  // that no Step has returned yet.
  bool Look(base::BootTime now);
  // Whether changes are known that no Step has returned yet.
  bool has_changes() const { return first_event_.has_value(); }

  // Does not wait for more changes, except those of files that are being written.
  void Hurry() { hurries_ = has_changes(); }

  // The latest time at which Step should be called. Valid after the first Step.
  base::BootTime wake_at() const;

  // Whether inotify does not cover everything, so that changes are found by polling only. Callable
  // from any thread.
  bool polling() const { return polling_.load(std::memory_order_relaxed); }
  // Times that the system refused a watch or lost events. Callable from any thread.
  uint64_t failures() const { return failures_.load(std::memory_order_relaxed); }

 private:
  // A digest of the text that was read, small enough to keep.
  struct Digest {
    std::vector<std::pair<std::string, base::Hash128>> files;
    std::vector<rule::Problem> problems;
    bool operator==(const Digest&) const = default;
  };
  static Digest DigestOf(const FilesRead& read);

  void OpenInotify();
  void ReadEvents(base::BootTime now);
  void OnEvent(int watch, uint32_t mask, std::string_view name, base::BootTime now);
  void OnChange(base::BootTime now);
  void OnFailure();
  std::optional<base::BootTime> ReadAt() const;
  void Rewatch();
  void CheckMetadata(base::BootTime now);
  std::optional<FilesRead> Read(base::BootTime now);

  const std::vector<std::string> paths_;
  const FileWatchOptions options_;
  net::FileDescriptor inotify_;
  // Watches, and the names that matter in their directories; an empty name means all.
  std::map<int, std::set<std::string, std::less<>>> watches_;
  std::set<std::string> refused_;  // directories that cannot be watched
  std::set<WatchedName> names_;
  // Files that were written to and not yet closed.
  std::set<std::pair<int, std::string>> unclosed_;
  std::optional<base::BootTime> first_event_;
  base::BootTime last_event_{0};
  base::BootTime next_check_{0};
  std::vector<FileStamp> stamps_;
  std::optional<Digest> last_;
  bool hurries_ = false;
  bool asked_ = false;  // the next read is reported even if nothing has changed
  std::atomic<bool> polling_{false};
  std::atomic<uint64_t> failures_{0};
};

}  // namespace headgate::watch::file
