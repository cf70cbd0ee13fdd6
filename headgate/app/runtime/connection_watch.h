// Logs that clients are refused, or closed to free memory: at once when this begins, then at most
// every ten seconds while it lasts.
#pragma once

#include <array>
#include <cstdint>

#include "headgate/base/time.h"
#include "headgate/net/counters.h"
#include "headgate/observe/log.h"

namespace headgate::app {

class ConnectionWatch {
 public:
  static constexpr base::Duration kQuiet = std::chrono::seconds(10);

  // `lowered`: too few open files are allowed for max_connections, so raising it changes nothing.
  explicit ConnectionWatch(observe::Log& log, bool lowered = false)
      : log_(log), lowered_(lowered) {}

  // Call it about every second with the server's counters.
  void Step(const net::Counters& counters, base::Instant now);

 private:
  static constexpr size_t kCauses = 6;
  struct Seen {
    uint64_t logged = 0;  // the counter when it was last logged
    base::Instant quiet_until;
  };

  observe::Log& log_;
  const bool lowered_;
  std::array<Seen, kCauses> seen_{};
};

}  // namespace headgate::app
