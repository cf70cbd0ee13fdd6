// The users of a running server: read at start, read again when their file changes.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "headgate/access/access.h"
#include "headgate/base/status.h"
#include "headgate/net/event_loop.h"
#include "headgate/observe/log.h"
#include "headgate/observe/metrics.h"
#include "headgate/watch/file/file_source.h"

namespace headgate::follow {

// The text of a file of users, and the users in it. A problem of the text begins with the path.
absl::StatusOr<std::string> ReadUsers(const std::string& path);
absl::StatusOr<access::UserTable> ParseUsers(const std::string& path, std::string_view text);

class Users {
 public:
  // Without a path there are no users. `access`, `loop` and `log` must outlive this object, which
  // lives on `loop`.
  Users(std::string path, access::Access& access, net::EventLoop& loop, observe::Log& log)
      : path_(std::move(path)), access_(access), loop_(loop), log_(log) {}

  // Reads the file for the first time, if there is one, and follows it.
  absl::Status LoadFirst();
  // Reads the file again, changed or not.
  void Reload();

  // From any thread: readings of the file, and logins.
  void Collect(observe::Sink& sink) const;

 private:
  // Returns the number of users.
  absl::StatusOr<size_t> Load(const rule::DocumentSet& documents);
  void OnChange(const rule::DocumentSet& documents);

  const std::string path_;
  access::Access& access_;
  net::EventLoop& loop_;
  observe::Log& log_;
  std::unique_ptr<watch::file::FileSource> source_;
  std::atomic<uint64_t> loaded_{0};
  std::atomic<uint64_t> refused_{0};
};

}  // namespace headgate::follow
