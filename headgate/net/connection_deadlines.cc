// The deadlines of a connection, the accounting of its buffers, and its end when a bound is
// exceeded.
#include <algorithm>
#include <string>
#include <utility>

#include "headgate/net/connection.h"
#include "headgate/net/loop.h"

namespace headgate::net {
namespace {

// Buffers up to this size do not count against the budget, because connections_max bounds them.
constexpr size_t kUncountedBytesMax = 16 * 1024;

// The memory that a string has allocated.
size_t BytesOf(const std::string& text) {
  return text.capacity() > std::string().capacity() ? text.capacity() : 0;
}

}  // namespace

// `progress_` still holds the progress before this call.
void Connection::NoteRequest(const Session::Progress& progress, base::Instant now) {
  const bool is_new = progress.answered > 0 && (progress.consumed > 0 || progress_.stop_reading);
  if (progress.answered > 0 || progress.waiting() || progress.streaming) owes_request_ = false;
  if (!progress.mid_request || input_ended_) {
    request_began_.reset();
  } else if (!request_began_ || is_new) {
    request_began_ = now;
  }
}

void Connection::SetReadDeadline(base::Instant now) {
  const ServerOptions& options = loop_.shared().options;
  if (progress_.streaming) {
    WaitUntil(Wait::kForAnswer, kNever);
  } else if (progress_.waiting()) {
    WaitUntil(Wait::kForAnswer,
              std::max(*progress_.waiting_since, wrote_slowly_at_) + options.request_timeout);
  } else if (!request_began_) {
    if (owes_request_) return;
    return WaitUntil(Wait::kForRequest, now + options.idle_timeout);
  } else {
    return WaitUntil(Wait::kForRestOfRequest, *request_began_ + options.request_timeout);
  }
  if (!request_began_ || progress_.stop_reading) return;
  const base::Instant rest_at = *request_began_ + options.request_timeout;
  if (rest_at < deadline_) WaitUntil(Wait::kForRestOfRequest, rest_at);
}

void Connection::OnTick(base::Instant now) {
  if (state_ == State::kClosed) return;
  // A request may have released memory elsewhere, without an event of this connection.
  if (held_ > 0) CountBuffers(now);
  LoopCounters& counters = loop_.counters();
  if (now >= write_deadline_) {
    counters.write_timeouts.Add();
    return CutOff();
  }
  if (progress_.call_at && now >= *progress_.call_at) Wake();
  if (now < deadline_) return;
  switch (wait_) {
    case Wait::kForHandshake: {
      const ServerOptions& options = loop_.shared().options;
      const base::Duration more = options.idle_timeout - options.request_timeout;
      if (!owes_request_ && transport_->established() && more > base::Duration(0))
        return WaitUntil(Wait::kForRequest, deadline_ + more);
      counters.request_timeouts.Add();
      break;
    }
    case Wait::kForRequest:
      if (!slot_) break;
      counters.idle_timeouts.Add();
      return GiveUp(Session::GivenUp::kIdle, now);
    case Wait::kForRestOfRequest:
      if (!slot_) break;
      counters.request_timeouts.Add();
      return GiveUp(Session::GivenUp::kTooSlow, now);
    case Wait::kForAnswer:
      counters.request_timeouts.Add();
      break;
    case Wait::kForWriter:
      counters.write_timeouts.Add();
      break;
    case Wait::kForPeerToClose:
      break;
  }
  CutOff();
}

void Connection::OnDrain() {
  if (state_ == State::kClosed) return;
  if (state_ == State::kLingering) return loop_.closes_idle() ? CutOff() : void();
  if (session_ != nullptr) session_->OnDrain();
  if (resumes_) return;  // it will get output first
  // Try to read one more request; if there is none, the connection closes.
  if (loop_.closes_idle() && state_ == State::kReading && between_requests()) Read();
}

bool Connection::in_request() const {
  return wait_ == Wait::kForRestOfRequest || wait_ == Wait::kForWriter || wait_ == Wait::kForAnswer;
}

void Connection::CountBuffers(base::Instant now) {
  size_t held = BytesOf(rest_) + BytesOf(unsent_) +
                (session_ != nullptr ? session_->BufferedBytes() : 0) +
                (state_ != State::kClosed ? transport_->handshake_bytes() : 0);
  if (held <= kUncountedBytesMax) held = 0;
  if (held == held_) return;
  if (held_ == 0) held_since_ = now;
  loop_.OnBuffersChanged(std::exchange(held_, held), held);
}

uint64_t Connection::BufferCost(base::Instant now) const {
  if (state_ == State::kClosed) return 0;
  // Add a second, so that among connections that have just begun the largest comes first.
  const base::Duration held_for =
      std::max(base::Duration(0), now - held_since_) + std::chrono::seconds(1);
  return held_ * static_cast<uint64_t>(
                     std::chrono::duration_cast<std::chrono::milliseconds>(held_for).count());
}

void Connection::GiveUp(Session::GivenUp why, base::Instant now) {
  if (state_ == State::kClosed) return;
  // No error message fits into the middle of an answer.
  const bool can_speak = session_ != nullptr && unsent_.empty() && !output_ended_ &&
                         (state_ == State::kReading || state_ == State::kSuspended);
  if (can_speak) session_->OnGivenUp(why, loop_.output(), now);
  session_.reset();
  std::string().swap(rest_);
  std::string().swap(unsent_);
  sent_ = 0;
  if (!can_speak || loop_.output().empty()) CutOff();
  CountBuffers(now);
  if (state_ == State::kClosed) return;
  SendThen(State::kLingering, now);
}

void Connection::CutOff() {
  if (std::exchange(state_, State::kClosed) != State::kClosed) loop_.Bury(*this);
}

}  // namespace headgate::net
