// Turns SIGTERM, SIGINT and SIGHUP into a readable descriptor, so that they interrupt nothing.
#pragma once

#include <optional>

#include "headgate/net/file_descriptor.h"

namespace headgate::app {

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
