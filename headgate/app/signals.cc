#include "headgate/app/signals.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>

#include "headgate/base/check.h"

namespace headgate::app {

Signals::Signals() {
  std::signal(SIGPIPE, SIG_IGN);
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, signal);
  HEADGATE_CHECK(pthread_sigmask(SIG_BLOCK, &set, nullptr) == 0);
  fd_ = net::FileDescriptor(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  HEADGATE_CHECK(fd_.get() >= 0);
}

std::optional<Signals::Kind> Signals::Wait(base::Duration timeout, int other_fd) const {
  std::array<pollfd, 2> ready = {pollfd{.fd = fd_.get(), .events = POLLIN, .revents = 0},
                                 pollfd{.fd = other_fd, .events = POLLIN, .revents = 0}};
  const auto timeout_ms = std::max<int64_t>(0, std::chrono::ceil<std::chrono::milliseconds>(timeout).count());
  if (::poll(ready.data(), ready.size(), static_cast<int>(timeout_ms)) <= 0) return std::nullopt;
  signalfd_siginfo info{};
  if (::read(fd_.get(), &info, sizeof(info)) != static_cast<ssize_t>(sizeof(info))) return std::nullopt;
  return info.ssi_signo == static_cast<uint32_t>(SIGHUP) ? Kind::kReload : Kind::kStop;
}

}  // namespace headgate::app
