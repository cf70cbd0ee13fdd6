// The users of a running server: read at start, read again when their file changes.
#pragma once

#include <atomic>
#include <memory>

#include "headgate/access/access.h"
#include "headgate/app/settings/configuration.h"
#include "headgate/app/settings/settings.h"
#include "headgate/base/status.h"
#include "headgate/net/event_loop.h"
#include "headgate/observe/log.h"
#include "headgate/observe/metrics.h"
#include "headgate/watch/file/file_source.h"

namespace headgate::app {

// Adds the problem of the users file, if it has one, to those of the configuration.
void CheckUsers(Configuration& configuration);

class FollowedUsers {
 public:
  // All arguments must outlive this object, which lives on `loop`.
  FollowedUsers(const Settings& settings, access::Access& access, net::EventLoop& loop,
                observe::Log& log);

  // Reads the file for the first time, if the settings name one, and follows it.
  absl::Status LoadFirst();
  // Reads the file again, changed or not.
  void Reload();

  // From any thread: readings of the file, and logins.
  void Collect(observe::Sink& sink) const;

 private:
  // Returns the number of users.
  absl::StatusOr<size_t> Load(const rule::DocumentSet& documents);
  void OnChange(const rule::DocumentSet& documents);

  const std::string& path_;  // empty: no users are stated
  access::Access& access_;
  net::EventLoop& loop_;
  observe::Log& log_;
  std::unique_ptr<watch::file::FileSource> source_;
  std::atomic<uint64_t> loaded_{0};
  std::atomic<uint64_t> refused_{0};
};

}  // namespace headgate::app
