// How fast an instance that shuts down returns its leases, and when it stops trying.
//
//   - At most 256 messages are under way, fewer than the client's queue takes. Each answer lets the
//     next message go.
//   - After a failure it sends nothing for 10 ms, because other messages would probably fail too.
//   - It stops if the store has answered nothing for one timeout, in which cut connections can come
//     back, or after one ttl, when every lease has expired that is not tiny.
//
// Pure: events and the time come in. Not thread-safe; one per event loop.
#pragma once

#include <algorithm>
#include <cstdint>

#include "headgate/base/clock.h"

namespace headgate::limiter::shared {

class ReturnPace {
 public:
  static constexpr uint32_t kAtOnce = 256;
  static constexpr base::Duration kPauseAfterFailure = std::chrono::milliseconds(10);
  // A return may take longer than a decision, since no client waits for it. Connections that were
  // cut are back within this time: the client waits at most some 50 ms, connects, and completes the
  // handshake.
  static constexpr base::Duration kTimeoutLeast = std::chrono::milliseconds(500);

  // `store_timeout`: of a call that a client waits for. `ttl`: of leases.
  ReturnPace(base::Duration store_timeout, base::Duration ttl, base::BootTime now)
      : timeout_(std::max(store_timeout, kTimeoutLeast)),
        end_(now + ttl),
        answered_at_(now),
        pause_until_(now) {}

  // The timeout of each message.
  base::Duration timeout() const { return timeout_; }

  // Whether the next message may be sent while `under_way` are not answered.
  bool MaySend(uint32_t under_way, base::BootTime now) const {
    return under_way < kAtOnce && now >= pause_until_;
  }
  void OnAnswer(bool ok, base::BootTime now) {
    if (ok) {
      answered_at_ = now;
    } else {
      pause_until_ = now + kPauseAfterFailure;
    }
  }

  bool GivesUp(base::BootTime now) const { return now >= GivesUpAt(); }
  // When to look again without an answer; may be in the past. `has_more`: there is a message to
  // send and room for it, so only a pause holds it back.
  base::BootTime wake_at(bool has_more) const {
    return has_more ? std::min(pause_until_, GivesUpAt()) : GivesUpAt();
  }

 private:
  base::BootTime GivesUpAt() const { return std::min(end_, answered_at_ + timeout_); }

  base::Duration timeout_;
  base::BootTime end_;
  base::BootTime answered_at_;
  base::BootTime pause_until_;
};

}  // namespace headgate::limiter::shared
