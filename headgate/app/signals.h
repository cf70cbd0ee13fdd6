// SIGTERM, SIGINT and SIGHUP as something to wait for, instead of something that interrupts.
#pragma once

#include <optional>

#include "headgate/net/file_descriptor.h"

namespace headgate::app {

class Signals {
 public:
  enum class Kind { kStop, kReload };

  // Blocks the signals in this thread and those it starts: make it before any other thread. SIGPIPE
  // is ignored: who hangs up is a connection's error. The signals stay blocked.
  Signals();

  // Becomes readable when a signal has come.
  int fd() const { return fd_.get(); }
  // The next signal that has come; nothing if none has.
  std::optional<Kind> Take() const;

 private:
  net::FileDescriptor fd_;
};

}  // namespace headgate::app
