#include "headgate/app/settings/progress.h"

#include <fmt/format.h>

#include <utility>

namespace headgate::app {

Progress::Progress(const Console& console, std::string what, base::Duration second)
    : console_(console), what_(std::move(what)), second_(second) {
  if (console_.terminal) thread_ = std::thread([this] { Show(); });
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
  }
  ended_.notify_one();
  thread_.join();
}

void Progress::Show() {
  std::unique_lock lock(mutex_);
  for (int seconds = 1; !ended_.wait_for(lock, second_, [this] { return has_ended_; }); ++seconds)
    console_.err << fmt::format("{:>4}s  {}\n", seconds, what_) << std::flush;
}

}  // namespace headgate::app
