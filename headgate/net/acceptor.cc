#include "headgate/net/acceptor.h"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "headgate/net/loop.h"

namespace headgate::net {
namespace {

// Connections accepted in a row before other sockets get their turn.
constexpr int kAcceptsPerTurn = 64;
// The pause after an attempt for which the system had no room, not even with a spare descriptor.
constexpr base::Duration kPause = std::chrono::milliseconds(50);

}  // namespace

Acceptor::Acceptor(Loop& loop, FileDescriptor socket, size_t spares_kept, HandOver hand_over)
    : loop_(loop),
      socket_(std::move(socket)),
      spares_kept_(spares_kept),
      hand_over_(std::move(hand_over)),
      pause_(loop.events(), [this] { Resume(); }) {}

Acceptor::~Acceptor() { loop_.events().sockets().Remove(socket_.get(), *this); }

// If the system has no room for the registration, the acceptor tries again later.
void Acceptor::Start() {
  if (!loop_.events().sockets().Add(socket_.get(), *this, SocketPoller::kInputUntilRead))
    pause_.SetAfter(kPause);
}

void Acceptor::OnEvents(uint32_t /*events*/) {
  if (AcceptSome() == Result::kNoRoom) Pause();
}

void Acceptor::Pause() {
  loop_.events().sockets().Remove(socket_.get(), *this);
  pause_.SetAfter(kPause);
}

void Acceptor::Resume() {
  loop_.MakeWayForAll();
  Start();
}

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
      return ::accept4(socket_.get(), reinterpret_cast<sockaddr*>(&peer), &size,
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

}  // namespace headgate::net
