#include "headgate/net/loop.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>

#include "headgate/net/connection.h"

namespace headgate::net {
namespace {

using boost::asio::awaitable;
using boost::asio::detached;
using boost::asio::redirect_error;
using boost::asio::use_awaitable;

// Connections taken from one door before others get their turn.
constexpr int kAcceptsPerTurn = 64;
// How long a door rests when the system has no room for another connection.
constexpr std::chrono::milliseconds kAcceptPause{100};
// What the shared output may keep between answers.
constexpr size_t kOutputCapacityKept = size_t{1} << 20;

}  // namespace

Loop::~Loop() {
  Stop();
  doors_.clear();
}

void Loop::AddDoor(FileDescriptor socket, HandOver hand_over) {
  doors_.push_back(std::make_unique<Door>(Door{.socket = boost::asio::posix::stream_descriptor(io(), socket.release()),
                                               .hand_over = std::move(hand_over)}));
}

void Loop::Start() {
  for (const auto& door : doors_) boost::asio::co_spawn(io(), Accept(*door), detached);
  boost::asio::co_spawn(io(), Tick(), detached);
  thread_ = std::thread([this] { events_.Run(); });
}

void Loop::Stop() {
  events_.Stop();
  if (thread_.joinable()) thread_.join();
}

void Loop::ReleaseOutput() {
  output_.clear();
  if (output_.capacity() > kOutputCapacityKept) std::string().swap(output_);
}

void Loop::Adopt(FileDescriptor socket, const sockaddr_storage& peer, const SessionFactories& factories) {
  ConnectionLimits::Refusal refusal{};
  std::optional<ConnectionLimits::Place> place = shared_.limits.Enter(KeyOf(peer), refusal);
  if (!place) {
    (refusal == ConnectionLimits::Refusal::kTotal ? counters_.refused_total_limit : counters_.refused_address_limit)
        .Add();
    return;
  }
  if (peer.ss_family != AF_UNIX) {
    const int on = 1;
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }
  counters_.connections_accepted.Add();
  auto connection =
      std::make_unique<Connection>(*this, std::move(socket), *std::move(place),
                                   Peer{.loopback = IsLoopback(peer), .address = AddressText(peer)}, factories);
  boost::asio::co_spawn(io(), Connection::Run(std::move(connection)), detached);
}

Loop::AcceptResult Loop::AcceptWaiting(Door& door) {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    sockaddr_storage peer{};
    socklen_t size = sizeof(peer);
    FileDescriptor socket(::accept4(door.socket.native_handle(), reinterpret_cast<sockaddr*>(&peer), &size,
                                    SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket) {
      door.hand_over(std::move(socket), peer);
      continue;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) return AcceptResult::kNoneLeft;
    if (errno == ECONNABORTED || errno == EINTR || errno == EPROTO) continue;
    counters_.accept_errors.Add();
    return AcceptResult::kNoRoom;
  }
  return AcceptResult::kTurnOver;
}

// `door` stays until the loop drains or ends.
awaitable<void> Loop::Accept(Door& door) {
  boost::asio::steady_timer pause(io());
  boost::system::error_code error;
  while (true) {
    co_await door.socket.async_wait(boost::asio::posix::descriptor_base::wait_read,
                                    redirect_error(use_awaitable, error));
    if (draining_) co_return;
    if (AcceptWaiting(door) != AcceptResult::kNoRoom) continue;
    pause.expires_after(kAcceptPause);
    co_await pause.async_wait(redirect_error(use_awaitable, error));
    if (draining_) co_return;
  }
}

awaitable<void> Loop::Tick() {
  boost::asio::steady_timer timer(io());
  boost::system::error_code error;
  while (true) {
    timer.expires_after(std::chrono::duration_cast<std::chrono::steady_clock::duration>(shared_.options.tick));
    co_await timer.async_wait(redirect_error(use_awaitable, error));
    const base::Instant now = shared_.clock.Now();
    for (Connection* connection = connections_; connection != nullptr; connection = connection->next()) {
      connection->OnTick(now);
    }
  }
}

void Loop::ResumeAtEndOfTurn(Connection& connection) {
  woken_.push_back(&connection);
  events_.AtEndOfTurn(resume_);
}

void Loop::ResumeWoken() {
  const base::Instant now = shared_.clock.Now();
  // Whoever is woken meanwhile has its turn after these.
  const size_t count = woken_.size();
  for (size_t i = 0; i < count; ++i) woken_[i]->Resume(now);
  woken_.erase(woken_.begin(), woken_.begin() + static_cast<ptrdiff_t>(count));
}

void Loop::Drain() {
  if (draining_) return;
  // Who is connected already has been promised an answer.
  for (const auto& door : doors_) {
    while (AcceptWaiting(*door) == AcceptResult::kTurnOver) {
    }
  }
  draining_ = true;
  doors_.clear();
  for (Connection* connection = connections_; connection != nullptr; connection = connection->next()) {
    connection->OnDrain();
  }
}

void Loop::CutOff() {
  for (Connection* connection = connections_; connection != nullptr; connection = connection->next()) {
    if (connection->in_request()) counters_.drain_cutoffs.Add();
    connection->CutOff();
  }
}

}  // namespace headgate::net
