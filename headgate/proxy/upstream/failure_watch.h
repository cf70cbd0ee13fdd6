// Logs that requests fail because of the upstream: once when this begins, and once when it is over.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "headgate/base/time.h"
#include "headgate/observe/degraded_watch.h"
#include "headgate/observe/log.h"

namespace headgate::proxy::upstream {

class FailureWatch {
 public:
  // How the requests of all loops ended so far.
  struct Counts {
    uint64_t answered = 0;
    uint64_t unreachable = 0;  // there was no connection
    uint64_t broken = 0;       // a connection ended before the answer
    uint64_t too_slow = 0;
  };

  explicit FailureWatch(observe::Log& log) : log_(log) {}

  // Remembers why no connection could be made, for the next line. From any thread.
  void OnConnectFailed(std::string_view reason);
  // Call it about every second, from one thread.
  void Step(const Counts& counts, base::Instant now);

 private:
  std::string ReasonOf(const Counts& counts);

  observe::Log& log_;
  observe::DegradedWatch failing_;
  Counts before_;
  std::mutex mutex_;
  std::string connect_failure_;  // the last one; guarded by mutex_
};

}  // namespace headgate::proxy::upstream
