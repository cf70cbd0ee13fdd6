// Slows down HAProxy when it opens connections in vain. For a message that does not fit into a
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
  // This many connections in vain at once slow down nobody, and a hundred more in each second.
  static constexpr int kFree = 10;

  // A connection has ended that asked nothing.
  void OnVain(base::BootTime now) {
    // However many there were, hellos are answered at once after 100 ms without any.
    paid_until_ = std::min(std::max(paid_until_, now) + kHold, now + 2 * kFree * kHold);
  }
  bool Holds(base::BootTime now) const { return paid_until_ - now > kFree * kHold; }

 private:
  base::BootTime paid_until_{0};
};

}  // namespace headgate::front::spoe
