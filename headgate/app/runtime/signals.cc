#include "headgate/app/runtime/signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>
#include <initializer_list>

#include "headgate/base/check.h"

namespace headgate::app {

namespace {

sigset_t Block(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  HEADGATE_CHECK(pthread_sigmask(SIG_BLOCK, &set, nullptr) == 0);
  return set;
}

}  // namespace

void HoldReload() { Block({SIGHUP}); }

Signals::Signals() {
  std::signal(SIGPIPE, SIG_IGN);
  const sigset_t set = Block({SIGTERM, SIGINT, SIGHUP});
  fd_ = net::FileDescriptor(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  HEADGATE_CHECK(fd_.get() >= 0);
}

std::optional<Signals::Kind> Signals::Take() const {
  signalfd_siginfo info{};
  if (::read(fd_.get(), &info, sizeof(info)) != static_cast<ssize_t>(sizeof(info)))
    return std::nullopt;
  return info.ssi_signo == static_cast<uint32_t>(SIGHUP) ? Kind::kReload : Kind::kStop;
}

}  // namespace headgate::app
