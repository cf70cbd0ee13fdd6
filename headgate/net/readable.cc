#include "headgate/net/readable.h"

#include <cerrno>
#include <system_error>
#include <utility>

namespace headgate::net {

Readable::Readable(EventLoop& loop, int fd, std::function<void()> call)
    : poller_(loop.sockets()),
      fd_(fd),
      call_(std::make_shared<const std::function<void()>>(std::move(call))) {
  if (!poller_.Add(fd, *this, SocketPoller::kInputUntilRead))
    throw std::system_error(errno, std::generic_category(), "epoll_ctl");
}

Readable::~Readable() { poller_.Remove(fd_, *this); }

void Readable::OnEvents(uint32_t /*events*/) {
  const auto call = call_;
  (*call)();
}

}  // namespace headgate::net
