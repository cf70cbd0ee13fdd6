#include "headgate/app/runtime/run_loop.h"

#include "headgate/net/readable.h"

namespace headgate::app {
namespace {

constexpr base::Duration kTick = std::chrono::seconds(1);

}  // namespace

void RunLoop(net::EventLoop& loop, const Signals& signals, const MainCalls& calls,
             std::optional<base::Duration> at_most) {
  bool stopped = false;
  const net::Readable signal(loop, signals.fd(), [&] {
    const auto kind = signals.Take();
    if (kind == Signals::Kind::kReload) calls.reload();
    stopped = stopped || kind == Signals::Kind::kStop;
  });
  net::Timer tick(loop, [&] {
    calls.tick();
    tick.Set(loop.Now() + kTick);
  });
  tick.Set(loop.Now() + kTick);
  const auto done = [&] { return stopped || (calls.is_over && calls.is_over()); };
  if (at_most) {
    loop.RunUntil(done, *at_most);
    return;
  }
  while (!loop.RunUntil(done, kTick)) {
  }
}

}  // namespace headgate::app
