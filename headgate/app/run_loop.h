// The main thread of a server: it waits for signals, and has a tick.
#pragma once

#include <functional>
#include <optional>

#include "headgate/app/signals.h"
#include "headgate/base/time.h"
#include "headgate/net/event_loop.h"

namespace headgate::app {

struct MainCalls {
  std::function<void()> tick;    // every second
  std::function<void()> reload;  // at each SIGHUP
};

// Runs `loop` until the signal to stop, or for at most this long.
void RunLoop(net::EventLoop& loop, const Signals& signals, const MainCalls& calls,
             std::optional<base::Duration> at_most = std::nullopt);

}  // namespace headgate::app
