#include "headgate/net/readable.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <utility>

namespace headgate::net {

struct Readable::State : std::enable_shared_from_this<Readable::State> {
  State(EventLoop& loop, int fd, std::function<void()> on_readable)
      : descriptor(loop.io(), fd), call(std::move(on_readable)) {}
  ~State() { descriptor.release(); }

  void Wait() {
    descriptor.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                          [weak = weak_from_this()](const boost::system::error_code& error) {
                            const auto self = weak.lock();
                            if (error || self == nullptr) return;
                            self->call();
                            if (!self->ended) self->Wait();
                          });
  }

  boost::asio::posix::stream_descriptor descriptor;
  std::function<void()> call;
  bool ended = false;
};

Readable::Readable(EventLoop& loop, int fd, std::function<void()> call)
    : state_(std::make_shared<State>(loop, fd, std::move(call))) {
  state_->Wait();
}

Readable::~Readable() { state_->ended = true; }

}  // namespace headgate::net
