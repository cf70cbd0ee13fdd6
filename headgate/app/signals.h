// SIGTERM, SIGINT and SIGHUP as something to wait for, instead of something that interrupts.
#pragma once

#include <optional>

#include "headgate/base/time.h"
#include "headgate/net/file_descriptor.h"

namespace headgate::app {

class Signals {
 public:
  enum class Kind { kStop, kReload };

  // Blocks the signals in this thread and those it starts: make it before any other thread. SIGPIPE is ignored: who
  // hangs up is a connection's error. The signals stay blocked.
  Signals();

  // The next signal; nothing where `timeout` passes before, or `other_fd` (−1: none) becomes readable.
  std::optional<Kind> Wait(base::Duration timeout, int other_fd) const;

 private:
  net::FileDescriptor fd_;
};

}  // namespace headgate::app
