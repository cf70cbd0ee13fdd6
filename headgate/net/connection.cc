#include "headgate/net/connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <utility>

#include "headgate/net/loop.h"

namespace headgate::net {
namespace {

using boost::asio::awaitable;
using boost::asio::posix::descriptor_base;

// Memory that a connection at rest may keep.
constexpr size_t kRestCapacityKept = 4096;

// Buffers up to this size are not counted against the budget: connections_max bounds them.
constexpr size_t kUncountedBytesMax = 16 * 1024;

// Reads of a connection that still sends while the server goes down.
constexpr int kReadsInDrainMax = 64;

}  // namespace

Connection::Connection(Loop& loop, FileDescriptor socket, std::optional<ConnectionLimits::Place> place,
                       const Peer& peer, const SessionChooser& choose_session)
    : loop_(loop),
      socket_(loop.io(), socket.release()),
      place_(std::move(place)),
      peer_(peer),
      choose_session_(choose_session),
      deadline_(loop.shared().clock.Now() +
                (place_ ? loop.shared().options.idle_timeout : loop.shared().options.refusal_timeout)) {
  next_ = loop_.connections_;
  if (next_ != nullptr) next_->previous_ = this;
  loop_.connections_ = this;
  if (place_) loop_.counters().connections_open.Add();
}

Connection::~Connection() {
  if (to_resume_) std::erase(loop_.woken_, this);
  (previous_ != nullptr ? previous_->next_ : loop_.connections_) = next_;
  if (next_ != nullptr) next_->previous_ = previous_;
  if (held_ > 0) loop_.OnBuffersChanged(held_, 0);
  if (place_) {
    loop_.counters().connections_open.Subtract();
  } else {
    std::erase(loop_.refused_, this);
  }
  boost::system::error_code ignored;
  socket_.close(ignored);
  (void)loop_.shared().spare_files.Refill();
}

awaitable<void> Connection::Run(std::unique_ptr<Connection> connection) { co_await connection->Serve(); }

awaitable<void> Connection::Serve() {
  // If only one protocol is spoken here, a refused client need not show which one it speaks.
  if (!place_ && !EnsureSession({}) && phase_ == Phase::kClosing) {
    SendNow();
    co_await Linger();
    co_return;
  }
  int reads_in_drain = 0;
  while (!cut_off_) {
    ReadResult result = ReadResult::kSome;
    const bool summoned = std::exchange(summoned_, false);
    if (waiting_ == Waiting::kForAnswer) {
      // Nothing is read before what was said has been answered.
      if (!co_await WaitForAnswer()) co_return;
      Handle({}, loop_.shared().clock.Now());
    } else if (!summoned) {
      result = ReadOnce();
      if (result == ReadResult::kEnd) co_return;
    }
    const bool answered = co_await Answer();
    if (!answered) co_return;
    if (phase_ == Phase::kClosing) {
      co_await Linger();
      co_return;
    }
    if (loop_.draining() && waiting_ == Waiting::kForRequest) {
      // Bytes that had already arrived are answered; then this connection is done.
      if (result == ReadResult::kNothing || ++reads_in_drain == kReadsInDrainMax) co_return;
      continue;
    }
    if (waiting_ == Waiting::kForAnswer && woken_) continue;
    at_rest_ = true;
    const bool readable = co_await WaitFor(descriptor_base::wait_read);
    at_rest_ = false;
    if (!readable && !summoned_ && !loop_.draining()) co_return;
  }
}

// Writes what the last read led to. False where the peer is gone or took too long.
awaitable<bool> Connection::Answer() {
  while (true) {
    if (!SendNow()) {
      const bool written = co_await WriteSlowly();
      if (!written) co_return false;
    }
    if (!more_) co_return true;
    // Others get their turn in between.
    co_await boost::asio::post(loop_.io(), boost::asio::use_awaitable);
    if (cut_off_) co_return false;
    Handle({}, loop_.shared().clock.Now());
  }
}

// False where the wait was cut short: by a deadline, by the drain, or by an error.
awaitable<bool> Connection::WaitFor(descriptor_base::wait_type what) {
  boost::system::error_code error;
  co_await socket_.async_wait(what, boost::asio::redirect_error(boost::asio::use_awaitable, error));
  co_return !error;
}

// False where it took too long, or the server stops.
awaitable<bool> Connection::WaitForAnswer() {
  if (!answer_) answer_.emplace(loop_.io());
  boost::system::error_code error;
  while (!woken_ && !cut_off_) {
    answer_->expires_at(std::chrono::steady_clock::time_point::max());
    co_await answer_->async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, error));
  }
  co_return !cut_off_;
}

void Connection::Wake() {
  woken_ = true;
  if (at_rest_) {
    if (!std::exchange(to_resume_, true)) loop_.ResumeAtEndOfTurn(*this);
  } else if (answer_) {
    answer_->cancel();
  }
}

void Connection::Resume(base::Instant now) {
  to_resume_ = false;
  if (!at_rest_ || !woken_ || waiting_ != Waiting::kForAnswer || cut_off_) return;
  Handle({}, now);
  const bool sent = SendNow();
  if (sent && !more_ && phase_ != Phase::kClosing && !loop_.draining()) return;
  summoned_ = true;
  socket_.cancel();
}

Connection::ReadResult Connection::ReadOnce() {
  loop_.BoundBuffers();
  if (cut_off_) return ReadResult::kEnd;
  const std::span<char> buffer = loop_.read_buffer();
  const ssize_t count = ::recv(socket_.native_handle(), buffer.data(), buffer.size(), 0);
  if (count == 0) return ReadResult::kEnd;
  if (count < 0) {
    const bool nothing = errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    return nothing ? ReadResult::kNothing : ReadResult::kEnd;
  }
  loop_.counters().bytes_read.Add(static_cast<uint64_t>(count));
  Handle(buffer.first(static_cast<size_t>(count)), loop_.shared().clock.Now());
  return ReadResult::kSome;
}

// `input` is new and follows what is in `rest_`.
void Connection::Handle(std::span<const char> input, base::Instant now) {
  const ServerOptions& options = loop_.shared().options;
  std::string& output = loop_.output();
  if (!rest_.empty()) {
    rest_.append(input.data(), input.size());
    input = rest_;
  }
  Session::Progress progress{.mid_request = true};
  woken_ = false;
  if (session_ != nullptr || EnsureSession(input)) progress = session_->OnBytes(input, output, now);
  KeepRest(input, progress.consumed);
  more_ = progress.more && !progress.close;
  if (progress.protocol_error) loop_.counters().protocol_errors.Add();
  if (progress.close) phase_ = Phase::kClosing;
  if (rest_.size() > options.input_bytes_max || output.size() > options.output_bytes_max) {
    loop_.counters().buffer_overflows.Add();
    output.clear();
    more_ = false;
    phase_ = Phase::kClosing;
  }
  CountBuffers(now);
  if (progress.waiting && phase_ != Phase::kClosing) {
    return WaitUntil(Waiting::kForAnswer, now + options.request_timeout);
  }
  // The deadline of a request stays while it goes on; a reply means that the one before it is done.
  const bool goes_on = progress.mid_request && waiting_ == Waiting::kForRestOfRequest && output.empty();
  if (!goes_on) Rest(progress.mid_request ? Waiting::kForRestOfRequest : Waiting::kForRequest, now);
}

// False if the choice needs more bytes, or the connection is refused.
bool Connection::EnsureSession(std::span<const char> input) {
  SessionChoice choice = choose_session_(input, peer_, place_ ? Room::kForIt : Room::kNone);
  if (!choice.made) return false;
  if (choice.session == nullptr) {
    if (place_) loop_.counters().refused_protocol.Add();
    loop_.output().append(choice.refusal);
    phase_ = Phase::kClosing;
    return false;
  }
  session_ = std::move(choice.session);
  session_->SetWaker([this] { Wake(); });
  if (loop_.draining()) session_->OnDrain();
  phase_ = Phase::kServing;
  return true;
}

void Connection::CountBuffers(base::Instant now) {
  size_t held = rest_.capacity() + unsent_.capacity() + (session_ != nullptr ? session_->BufferedBytes() : 0);
  if (held <= kUncountedBytesMax) held = 0;
  if (held == held_) return;
  if (held_ == 0) held_since_ = now;
  loop_.OnBuffersChanged(std::exchange(held_, held), held);
}

uint64_t Connection::BufferCost(base::Instant now) const {
  // A second more, so that of connections that have just begun the largest comes first.
  const base::Duration held_for = std::max(base::Duration(0), now - held_since_) + std::chrono::seconds(1);
  return held_ * static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(held_for).count());
}

void Connection::GiveUp(Session::GivenUp why, base::Instant now) {
  // Between two steps of the coroutine the loop's output is free. In the middle of an answer nothing can be said.
  const bool can_speak = at_rest_ && unsent_.empty() && session_ != nullptr && !cut_off_;
  if (can_speak) session_->OnGivenUp(why, loop_.output(), now);
  const bool said = can_speak && SendNow();
  session_.reset();
  std::string().swap(rest_);
  std::string().swap(unsent_);
  CountBuffers(now);
  more_ = false;
  phase_ = Phase::kClosing;
  if (!said) return CutOff();
  // The coroutine closes in good order: a client that still sends would lose the answer otherwise.
  WaitUntil(Waiting::kForPeerToClose, now + loop_.shared().options.linger_timeout);
  summoned_ = true;
  socket_.cancel();
}

void Connection::KeepRest(std::span<const char> input, size_t consumed) {
  if (rest_.empty()) {
    rest_.assign(input.data() + consumed, input.size() - consumed);
  } else {
    rest_.erase(0, consumed);
  }
  if (rest_.empty() && rest_.capacity() > kRestCapacityKept) std::string().swap(rest_);
}

bool Connection::SendNow() {
  std::string& output = loop_.output();
  if (output.empty()) return unsent_.empty();
  const ssize_t count = ::send(socket_.native_handle(), output.data(), output.size(), MSG_NOSIGNAL);
  const size_t sent = count > 0 ? static_cast<size_t>(count) : 0;
  loop_.counters().bytes_written.Add(sent);
  const bool all = sent == output.size();
  if (!all) {
    unsent_.assign(output, sent);
    CountBuffers(loop_.shared().clock.Now());
  }
  loop_.ReleaseOutput();
  return all;
}

awaitable<bool> Connection::WriteSlowly() {
  const Shared& shared = loop_.shared();
  const Waiting waiting_before = waiting_;
  size_t sent = 0;
  while (sent < unsent_.size()) {
    WaitUntil(Waiting::kForWriter, shared.clock.Now() + shared.options.write_timeout);
    const bool writable = co_await WaitFor(descriptor_base::wait_write);
    if (!writable || cut_off_) co_return false;
    const ssize_t count = ::send(socket_.native_handle(), unsent_.data() + sent, unsent_.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno != EAGAIN && errno != EINTR) co_return false;
    if (count <= 0) continue;
    sent += static_cast<size_t>(count);
    loop_.counters().bytes_written.Add(static_cast<uint64_t>(count));
  }
  std::string().swap(unsent_);
  CountBuffers(shared.clock.Now());
  // The time that the peer took for reading does not count against its next request.
  Rest(waiting_before, shared.clock.Now());
  co_return true;
}

void Connection::Rest(Waiting waiting, base::Instant now) {
  const ServerOptions& options = loop_.shared().options;
  if (waiting == Waiting::kForRequest) return WaitUntil(waiting, now + options.idle_timeout);
  WaitUntil(waiting, now + options.request_timeout);
}

// Closing while the peer still sends would make the system throw our last words away; so its words are read until it
// has closed too.
awaitable<void> Connection::Linger() {
  const Shared& shared = loop_.shared();
  ::shutdown(socket_.native_handle(), SHUT_WR);
  WaitUntil(Waiting::kForPeerToClose, shared.clock.Now() + shared.options.linger_timeout);
  while (!cut_off_) {
    const std::span<char> buffer = loop_.read_buffer();
    const ssize_t count = ::recv(socket_.native_handle(), buffer.data(), buffer.size(), 0);
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) co_return;
    if (count < 0 && (loop_.draining() || !co_await WaitFor(descriptor_base::wait_read))) co_return;
  }
}

void Connection::OnTick(base::Instant now) {
  if (now < deadline_ || cut_off_) return;
  LoopCounters& counters = loop_.counters();
  switch (waiting_) {
    case Waiting::kForRequest:
      if (place_) counters.idle_timeouts.Add();
      break;
    case Waiting::kForRestOfRequest:
      if (!place_) break;
      counters.request_timeouts.Add();
      return GiveUp(Session::GivenUp::kTooSlow, now);
    case Waiting::kForAnswer:
      counters.request_timeouts.Add();
      break;
    case Waiting::kForWriter:
      counters.write_timeouts.Add();
      break;
    case Waiting::kForPeerToClose:
      break;
  }
  CutOff();
}

void Connection::OnDrain() {
  if (session_ != nullptr && phase_ == Phase::kServing) session_->OnDrain();
  // Wakes the coroutine where it rests; it looks once more for a request, and goes.
  if (waiting_ == Waiting::kForRequest || waiting_ == Waiting::kForPeerToClose) socket_.cancel();
}

void Connection::CutOff() {
  cut_off_ = true;
  socket_.cancel();
  if (answer_) answer_->cancel();
}

}  // namespace headgate::net
