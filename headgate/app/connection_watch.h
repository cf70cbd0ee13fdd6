// Says in the log that clients are refused, or closed for memory: at once when it begins, then at
// most every ten seconds while it goes on.
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

  explicit ConnectionWatch(observe::Log& log) : log_(log) {}

  // Call it every second or so with the server's counters.
  void Step(const net::Counters& counters, base::Instant now);

 private:
  static constexpr size_t kCauses = 5;
  struct Seen {
    uint64_t logged = 0;  // of the counter, when it was last written
    base::Instant quiet_until;
  };

  observe::Log& log_;
  std::array<Seen, kCauses> seen_{};
};

}  // namespace headgate::app
