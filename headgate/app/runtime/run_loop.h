// The main thread of a server: it waits for signals, and has a tick.
#pragma once

#include <functional>
#include <optional>

#include "headgate/app/runtime/signals.h"
#include "headgate/base/time.h"
#include "headgate/net/event_loop.h"

namespace headgate::app {

struct MainCalls {
  std::function<void()> tick;    // every second
  std::function<void()> reload;  // at each SIGHUP
  // If set: whether to return without a signal. Asked after each turn of the loop.
  std::function<bool()> is_over{};
};

// Runs `loop` until the signal to stop or `is_over`, or for at most this long.
void RunLoop(net::EventLoop& loop, const Signals& signals, const MainCalls& calls,
             std::optional<base::Duration> at_most = std::nullopt);

}  // namespace headgate::app
