// Turns SIGTERM, SIGINT and SIGHUP into a readable descriptor, so that they interrupt nothing.
#pragma once

#include <optional>

#include "headgate/net/file_descriptor.h"

namespace headgate::app {

// Blocks SIGHUP until there is a Signals object, which then reports it. So a reload that comes
// while the server starts does not end the process. Call it before anything that takes time.
void HoldReload();

class Signals {
 public:
  enum class Kind { kStop, kReload };

  // Blocks the signals in this thread and in threads that it starts later, so create this object
  // before any thread. Ignores SIGPIPE: a peer that hangs up is an error of its connection. The
  // signals stay blocked after destruction.
  Signals();

  // Becomes readable when a signal has arrived.
  int fd() const { return fd_.get(); }
  // The next signal that has arrived, or nothing.
  std::optional<Kind> Take() const;

 private:
  net::FileDescriptor fd_;
};

}  // namespace headgate::app
