#include "headgate/watch/file/file_watch.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace headgate::watch::file {
namespace {

constexpr uint32_t kMask = IN_CREATE | IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB | IN_MOVED_FROM |
                           IN_MOVED_TO | IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
// The directory itself was removed or moved.
constexpr uint32_t kSelfMask = IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED | IN_UNMOUNT;

constexpr size_t kUnclosedMax = kFilesMax;

}  // namespace

FileWatch::FileWatch(std::vector<std::string> paths, const FileWatchOptions& options)
    : paths_(std::move(paths)), options_(options) {
  OpenInotify();
}

void FileWatch::OpenInotify() {
  inotify_ = net::FileDescriptor(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (!inotify_) OnFailure();
}

void FileWatch::ReadAgain(base::BootTime now) {
  if (!inotify_) OpenInotify();
  asked_ = true;
  OnChange(now);
}

std::optional<FilesRead> FileWatch::Step(base::BootTime now) {
  ReadEvents(now);
  if (!last_.has_value() && options_.reads_at_once) return Read(now);
  if (!last_.has_value() && !first_event_.has_value()) {
    Rewatch();
    OnChange(now);
  }
  if (!first_event_.has_value() && now >= next_check_) CheckMetadata(now);
  const std::optional<base::BootTime> read_at = ReadAt();
  if (read_at.has_value() && now >= *read_at) return Read(now);
  return std::nullopt;
}

bool FileWatch::Look(base::BootTime now) {
  ReadEvents(now);
  if (!has_changes()) CheckMetadata(now);
  return has_changes();
}

base::BootTime FileWatch::wake_at() const { return ReadAt().value_or(next_check_); }

std::optional<base::BootTime> FileWatch::ReadAt() const {
  if (!first_event_.has_value()) return std::nullopt;
  const base::BootTime latest = *first_event_ + options_.delay_max;
  if (!unclosed_.empty()) return latest;
  return hurries_ ? *first_event_ : std::min(last_event_ + options_.quiet, latest);
}

void FileWatch::ReadEvents(base::BootTime now) {
  if (!inotify_) return;
  alignas(inotify_event) std::array<char, 16 * 1024> buffer;
  for (;;) {
    const ssize_t count = ::read(inotify_.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    for (size_t at = 0; at < static_cast<size_t>(count);) {
      inotify_event event;
      std::memcpy(&event, buffer.data() + at, sizeof event);
      const char* name = buffer.data() + at + sizeof event;
      OnEvent(event.wd, event.mask, std::string_view(name, ::strnlen(name, event.len)), now);
      at += sizeof event + event.len;
    }
  }
}

void FileWatch::OnEvent(int watch, uint32_t mask, std::string_view name, base::BootTime now) {
  if ((mask & IN_Q_OVERFLOW) != 0) {
    OnFailure();
    unclosed_.clear();
    OnChange(now);
    return;
  }
  const auto found = watches_.find(watch);
  if (found == watches_.end()) return;
  if ((mask & kSelfMask) != 0) {
    if ((mask & IN_IGNORED) != 0) watches_.erase(found);
    OnChange(now);
    return;
  }
  if (!found->second.contains("") && !found->second.contains(name)) return;
  if ((mask & IN_MODIFY) != 0) {
    if (unclosed_.size() < kUnclosedMax) unclosed_.emplace(watch, name);
  } else if ((mask & (IN_CLOSE_WRITE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO)) != 0) {
    unclosed_.erase({watch, std::string(name)});
  }
  OnChange(now);
}

void FileWatch::OnChange(base::BootTime now) {
  if (!first_event_.has_value()) first_event_ = now;
  last_event_ = now;
}

void FileWatch::OnFailure() { failures_.fetch_add(1, std::memory_order_relaxed); }

// Watches the names that the paths depend on now, and drops all other watches.
void FileWatch::Rewatch() {
  // Links may change while they are being followed. Repeat until the watches describe one moment; a
  // later change will cause an event.
  constexpr int kAttempts = 3;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::set<WatchedName> names = NamesToWatch(paths_);
    std::map<int, std::set<std::string, std::less<>>> watches;
    std::set<std::string> refused;
    bool gone = false;
    for (const WatchedName& watched : names) {
      const int watch =
          inotify_ ? ::inotify_add_watch(inotify_.get(), watched.directory.c_str(), kMask) : -1;
      if (watch >= 0) {
        watches[watch].insert(watched.name);
      } else if (inotify_ && (errno == ENOENT || errno == ENOTDIR)) {
        gone = true;  // it has disappeared since
      } else if (refused.insert(watched.directory).second && inotify_ &&
                 !refused_.contains(watched.directory)) {
        OnFailure();
      }
    }
    for (const auto& [watch, unused] : watches_) {
      if (!watches.contains(watch)) ::inotify_rm_watch(inotify_.get(), watch);
    }
    watches_ = std::move(watches);
    refused_ = std::move(refused);
    const bool settled = names == names_ && !gone;
    names_ = std::move(names);
    if (settled) break;
  }
  polling_.store(!refused_.empty(), std::memory_order_relaxed);
}

void FileWatch::CheckMetadata(base::BootTime now) {
  next_check_ = now + options_.check_interval;
  Rewatch();
  if (StampFiles(paths_) != stamps_) OnChange(now);
}

std::optional<FilesRead> FileWatch::Read(base::BootTime now) {
  Rewatch();
  next_check_ = now + options_.check_interval;
  stamps_ = StampFiles(paths_);
  FilesRead read = ReadFiles(paths_);
  // A file that could not be read may become readable without changing, for example when
  // descriptors are free again.
  if (!read.problems.empty()) stamps_.clear();
  if (read.torn && first_event_.has_value() && now < *first_event_ + options_.delay_max) {
    last_event_ = now;
    hurries_ = false;
    return std::nullopt;
  }
  first_event_.reset();
  hurries_ = false;
  unclosed_.clear();
  if (read.torn) OnChange(now);  // use it for now, and read it again soon
  Digest digest = DigestOf(read);
  if (last_ == digest && !asked_) return std::nullopt;
  asked_ = false;
  last_ = std::move(digest);
  return read;
}

FileWatch::Digest FileWatch::DigestOf(const FilesRead& read) {
  // The hash needs no secret: only people who can write the rules anyway could aim a collision at
  // it.
  constexpr base::HashSecret kSecret{};
  Digest digest;
  for (const FileText& file : read.files) {
    digest.files.emplace_back(file.path, base::HashBytes(kSecret, base::KeyKind::kRaw, file.text));
  }
  digest.problems = read.problems;
  return digest;
}

}  // namespace headgate::watch::file
