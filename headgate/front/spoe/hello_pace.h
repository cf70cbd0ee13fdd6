// Slows down HAProxy when it opens useless connections. For a message that does not fit into a
// frame, HAProxy opens one connection after the other until `timeout processing`: it says hello,
// sends nothing, and closes, twelve thousand times a second. Its own `maxconnrate` does not bound
// this. If many connections have ended like this, the answer to the next hello waits.
#pragma once

#include <algorithm>
#include <chrono>

#include "headgate/base/clock.h"

namespace headgate::front::spoe {

// For one loop.
class HelloPace {
 public:
  // How long the answer to a hello waits. It is short, because HAProxy may need the connection for
  // another request.
  static constexpr base::Duration kHold = std::chrono::milliseconds(10);
  // Hellos are slowed down after this many useless connections at once; one more is free in each
  // kHold, which makes a hundred per second.
  static constexpr int kFree = 10;

  // Call it when a connection has ended without a request.
  void OnVain(base::BootTime now) {
    // The bound ends the slowdown after 100 ms without useless connections, however many there
    // were.
    paid_until_ = std::min(std::max(paid_until_, now) + kHold, now + 2 * kFree * kHold);
  }
  bool Holds(base::BootTime now) const { return paid_until_ - now > kFree * kHold; }

 private:
  base::BootTime paid_until_{0};
};

}  // namespace headgate::front::spoe
