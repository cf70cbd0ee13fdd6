#include "headgate/net/acceptor.h"

#include <sys/socket.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <utility>

#include "headgate/net/loop.h"

namespace headgate::net {
namespace {

using boost::asio::awaitable;
using boost::asio::redirect_error;
using boost::asio::use_awaitable;

// Connections accepted in a row before other sockets get their turn.
constexpr int kAcceptsPerTurn = 64;
// The pause after an attempt for which the system had no room, not even with a spare descriptor.
constexpr std::chrono::milliseconds kPause{50};

}  // namespace

Acceptor::Acceptor(Loop& loop, FileDescriptor socket, size_t spares_kept, HandOver hand_over)
    : loop_(loop),
      socket_(loop.io(), socket.release()),
      spares_kept_(spares_kept),
      hand_over_(std::move(hand_over)) {}

void Acceptor::Start() { boost::asio::co_spawn(loop_.io(), Run(), boost::asio::detached); }

void Acceptor::AcceptAll() {
  while (AcceptSome() == Result::kTurnOver) {
  }
}

Acceptor::Result Acceptor::AcceptSome() {
  SpareFiles& spare_files = loop_.shared().spare_files;
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    sockaddr_storage peer{};
    socklen_t size = sizeof(peer);
    AcceptedWith with = AcceptedWith::kOwnFile;
    int attempts = 0;
    FileDescriptor socket = spare_files.Open(spares_kept_, [&] {
      if (++attempts > 1) with = AcceptedWith::kSpareFile;
      return ::accept4(socket_.native_handle(), reinterpret_cast<sockaddr*>(&peer), &size,
                       SOCK_NONBLOCK | SOCK_CLOEXEC);
    });
    if (attempts > 1) loop_.counters().accept_errors.Add();
    if (socket) {
      // If a spare is missing, a descriptor that has just become free replaces the spare.
      if (!spare_files.Refill()) with = AcceptedWith::kSpareFile;
      hand_over_(std::move(socket), peer, with);
      if (loop_.TakeMadeWay()) return Result::kTurnOver;
      continue;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) return Result::kNoneLeft;
    if (errno == ECONNABORTED || errno == EINTR || errno == EPROTO) continue;
    if (attempts == 1) loop_.counters().accept_errors.Add();
    return Result::kNoRoom;
  }
  return Result::kTurnOver;
}

// The loop drains before it destroys this object; afterwards the coroutine uses none of its
// members.
awaitable<void> Acceptor::Run() {
  Loop& loop = loop_;
  boost::asio::steady_timer pause(loop.io());
  boost::system::error_code error;
  while (true) {
    co_await socket_.async_wait(boost::asio::posix::descriptor_base::wait_read,
                                redirect_error(use_awaitable, error));
    if (loop.draining()) co_return;
    if (AcceptSome() != Result::kNoRoom) continue;
    pause.expires_after(kPause);
    co_await pause.async_wait(redirect_error(use_awaitable, error));
    if (loop.draining()) co_return;
    loop.MakeWayForAll();
  }
}

}  // namespace headgate::net
