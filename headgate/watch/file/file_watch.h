// Notices that rule files have changed: in place, by an atomic rename, by the swap of a symbolic
// link (as Kubernetes mounts a ConfigMap), by coming or going.
//
// inotify says quickly that something happened; a look at the files' metadata twice a second finds
// what it does not say (network file systems, renamed ancestors, a system that is out of watches).
// Then the files are read, once they have been left alone for a moment, and compared: what is the
// same is no change. No threads: poll fd(), call Step.
//
//   event ──> [ quiet for `quiet`, and nobody in the middle of writing; at most `delay_max` ] ──>
//   read ──> same? nothing
//
// A file that is written in place for longer than `delay_max`, pauses included, is read half.
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
  // Read when nothing has happened for so long. Raise it where files are written slowly and piece
  // by piece.
  base::Duration quiet = std::chrono::milliseconds(50);
  // Read at latest so long after the first event, also while events go on.
  base::Duration delay_max = std::chrono::milliseconds(500);
  // How often metadata is looked at.
  base::Duration look_interval = std::chrono::milliseconds(500);
};

class FileWatch {
 public:
  explicit FileWatch(std::vector<std::string> paths, const FileWatchOptions& options = {});

  // Becomes readable when Step should be called. −1 where the system has no inotify instance left;
  // wake_at() remains.
  int fd() const { return inotify_.get(); }

  // What the files say, if that is not what was returned last, or if ReadAgain was called since.
  // The first call reads at once.
  std::optional<FilesRead> Step(base::BootTime now);

  // Reads again with the care of a change, so at the latest after `delay_max`: then Step answers
  // once, the same or not. Also asks for an inotify instance, if the system had none left: fd() may
  // change from −1.
  void ReadAgain(base::BootTime now);

  // When Step should be called at latest. Valid after the first Step.
  base::BootTime wake_at() const;

  // Whether some of what should be watched is not, so that looking has to do. Any thread.
  bool polling() const { return polling_.load(std::memory_order_relaxed); }
  // Times that the system refused a watch, or lost events. Any thread.
  uint64_t failures() const { return failures_.load(std::memory_order_relaxed); }

 private:
  // What was read, small enough to keep.
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
  void Look(base::BootTime now);
  std::optional<FilesRead> Read(base::BootTime now);

  const std::vector<std::string> paths_;
  const FileWatchOptions options_;
  net::FileDescriptor inotify_;
  // Watches and the names that matter in their directories; an empty name: all.
  std::map<int, std::set<std::string, std::less<>>> watches_;
  std::set<std::string> refused_;  // directories that cannot be watched
  std::set<WatchedName> names_;
  // Files that somebody has written to and not yet closed.
  std::set<std::pair<int, std::string>> unclosed_;
  std::optional<base::BootTime> first_event_;
  base::BootTime last_event_{0};
  base::BootTime next_look_{0};
  std::vector<FileStamp> stamps_;
  std::optional<Digest> last_;
  bool asked_ = false;  // to answer even if nothing has changed
  std::atomic<bool> polling_{false};
  std::atomic<uint64_t> failures_{0};
};

}  // namespace headgate::watch::file
