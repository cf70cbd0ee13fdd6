// A connection is a small state machine: read, let the session answer, write, enter the next state.
// Handle does one round. Buffers belong to the loop and are shared by its connections; a connection
// owns only the input that its session has not consumed (`rest_`) and the output that its peer has
// not taken (`unsent_`). Invariant: at the end of each round the loop's buffers are free again.
#include "headgate/net/connection.h"

#include <algorithm>
#include <utility>

#include "headgate/net/loop.h"

namespace headgate::net {
namespace {

// Memory that an idle connection may keep.
constexpr size_t kRestCapacityKept = 4096;

// The most reads from a connection that still sends while the server shuts down.
constexpr int kReadsInDrainMax = 64;

// Reads of discarded bytes before other connections get their turn.
constexpr int kReadsAwayPerTurn = 16;

}  // namespace

Connection::Connection(Loop& loop, FileDescriptor socket,
                       std::optional<ConnectionLimits::Slot> slot, const Peer& peer,
                       const Listener& listener)
    : loop_(loop),
      transport_(Transport::Make(loop.events(), std::move(socket), *this, listener.tls_context())),
      slot_(std::move(slot)),
      peer_(peer),
      choose_session_(listener.choose_session),
      owes_request_(slot_ && listener.has_reserved_places),
      deadline_(loop.shared().clock.Now() + (slot_ ? loop.shared().options.idle_timeout
                                                   : loop.shared().options.refusal_timeout)) {
  next_ = loop_.connections_;
  if (next_ != nullptr) next_->previous_ = this;
  loop_.connections_ = this;
  if (slot_) loop_.counters().connections_open.Add();
  if (slot_ && (owes_request_ || !transport_->established())) {
    const ServerOptions& options = loop_.shared().options;
    // The deadline above is for idle connections. A handshake, or the first request on a reserved
    // place, has only request_timeout.
    const base::Duration sooner =
        std::max(base::Duration(0), options.idle_timeout - options.request_timeout);
    WaitUntil(Wait::kForHandshake, deadline_ - sooner);
  }
}

Connection::~Connection() {
  if (resumes_) std::erase(loop_.woken_, this);
  (previous_ != nullptr ? previous_->next_ : loop_.connections_) = next_;
  if (next_ != nullptr) next_->previous_ = previous_;
  if (held_ > 0) loop_.OnBuffersChanged(held_, 0);
  if (slot_) {
    loop_.counters().connections_open.Subtract();
  } else {
    std::erase(loop_.refused_, this);
  }
  transport_.reset();
  (void)loop_.shared().spare_files.Refill();
}

void Connection::Start() {
  // If this address serves only one protocol, a refused client is answered without waiting for its
  // first bytes.
  if (!slot_ && !EnsureSession({}) && progress_.close) {
    return SendThen(State::kLingering, loop_.shared().clock.Now());
  }
  Read();
}

void Connection::OnReadable() {
  if (state_ == State::kReading) return Read();
  if (state_ == State::kLingering) return ReadAway();
  if (state_ == State::kSuspended && progress_.ends_with_peer) CutOff();
}

void Connection::OnWritable() {
  if (state_ == State::kWriting) return SendThen(after_writing_, loop_.shared().clock.Now());
  if (!unsent_.empty()) ContinueAlongside();
}

void Connection::Read() {
  // Before more input is taken: this may close this connection, if its buffers are the largest.
  loop_.BoundBuffers();
  if (state_ != State::kReading) return;
  const std::span<char> buffer = loop_.read_buffer();
  const Transport::Io io = transport_->Read(buffer);
  switch (io.state) {
    case Transport::State::kWouldBlock:
      // During shutdown, an idle connection is closed once it has nothing more to read.
      if (loop_.closes_idle() && between_requests()) return CutOff();
      if (held_ > 0 || !transport_->established()) CountBuffers(loop_.shared().clock.Now());
      return transport_->AwaitRead();
    case Transport::State::kEnd:
      return OnInputEnd();
    case Transport::State::kFailed:
      if (!transport_->established()) loop_.counters().failed_handshakes.Add();
      return CutOff();
    case Transport::State::kDone:
      break;
  }
  loop_.counters().bytes_read.Add(io.bytes);
  Handle(buffer.first(io.bytes), loop_.shared().clock.Now());
}

// Independent requests that wait are still answered; an endless answer has lost its reader and
// ends.
void Connection::OnInputEnd() {
  input_ended_ = true;
  const base::Instant now = loop_.shared().clock.Now();
  if (duplex_) return session_->OnInputEnd(now) ? Handle({}, now) : CutOff();
  if (!progress_.waiting()) return CutOff();
  request_began_.reset();  // the incomplete request will never be completed
  SetReadDeadline(now);
  Enter(State::kSuspended, now);
}

void Connection::Handle(std::span<const char> input, base::Instant now) {
  const ServerOptions& options = loop_.shared().options;
  std::string& output = loop_.output();
  if (!rest_.empty()) {
    rest_.append(input.data(), input.size());
    input = rest_;
  }
  // Without a session, the bytes so far do not show the protocol; they count as an incomplete
  // request.
  Session::Progress progress{.mid_request = true};
  if (session_ != nullptr || EnsureSession(input)) progress = AskSession(input, now);
  // EnsureSession, or an earlier round, may have decided already to close.
  progress.close = progress.close || progress_.close;
  KeepRest(input, progress.consumed);
  if (rest_.size() > options.input_bytes_max ||
      output.size() + unsent_.size() - sent_ > options.output_bytes_max) {
    loop_.counters().buffer_overflows.Add();
    output.clear();
    progress.close = true;
  }
  CountBuffers(now);
  NoteRequest(progress, now);
  progress_ = progress;
  // Nothing is sent any more, and the peer sees an error instead of a regular end.
  if (progress.reset) {
    loop_.ReleaseOutput();
    transport_->ResetAtEnd();
    return CutOff();
  }
  SetReadDeadline(now);
  if (progress.close || (input_ended_ && !duplex_ && !progress.waiting() && !progress.more)) {
    return SendThen(State::kLingering, now);
  }
  // More input can be handled at once, but other connections come first.
  if (progress.more) return SendThen(State::kYielding, now);
  SendThen(progress.stop_reading || input_ended_ ? State::kSuspended : State::kReading, now);
}

Session::Progress Connection::AskSession(std::span<const char> input, base::Instant now) {
  const Session::Progress progress = session_->OnBytes(input, loop_.output(), now);
  if (progress.protocol_error) loop_.counters().protocol_errors.Add();
  if (meter_ != nullptr) Measure(progress, now);
  return progress;
}

void Connection::Measure(const Session::Progress& progress, base::Instant began) {
  if (progress.protocol_error) meter_->OnProtocolError();
  if (progress.answered == 0) return;
  const base::Instant ended = loop_.shared().clock.Now();
  meter_->OnBatch(progress.answered, ended - began);
  if (progress.answered_since) meter_->OnWait(ended - *progress.answered_since);
}

// Returns false if the choice needs more bytes, or if the connection is refused and must be closed.
bool Connection::EnsureSession(std::span<const char> input) {
  // With TLS, the first bytes mean that the handshake is complete, so the peer's names are known
  // now.
  if (!input.empty()) transport_->Describe(peer_);
  SessionChoice choice = choose_session_(input, peer_, slot_ ? Room::kForIt : Room::kNone);
  if (!choice.made) return false;
  if (choice.session == nullptr) {
    if (slot_) loop_.counters().refused_protocol.Add();
    loop_.output().append(choice.refusal);
    progress_.close = true;
    return false;
  }
  session_ = std::move(choice.session);
  meter_ = choice.meter;
  duplex_ = session_->duplex();
  session_->SetWaker([this] { Wake(); });
  if (loop_.draining()) session_->OnDrain();
  return true;
}

void Connection::KeepRest(std::span<const char> input, size_t consumed) {
  if (rest_.empty()) {
    rest_.assign(input.data() + consumed, input.size() - consumed);
  } else {
    rest_.erase(0, consumed);
  }
  // Idle connections must not keep the memory of their largest request.
  if (rest_.empty() && rest_.capacity() > kRestCapacityKept) std::string().swap(rest_);
}

void Connection::Wake() {
  if (!std::exchange(resumes_, true)) loop_.ResumeAtEndOfTurn(*this);
}

void Connection::Resume(base::Instant now) {
  resumes_ = false;
  if (state_ == State::kReading || state_ == State::kSuspended || state_ == State::kYielding)
    Handle({}, now);
}

void Connection::SendAlongside(base::Instant now) {
  std::string& output = loop_.output();
  if (!unsent_.empty()) {
    unsent_.append(output);
  } else if (!output.empty()) {
    const Transport::Io io = transport_->Write(output);
    unsent_.assign(output, io.bytes);
    NoteSent(io, now);
  }
  loop_.ReleaseOutput();
  CountBuffers(now);
  if (progress_.finish_writing && unsent_.empty() && !std::exchange(output_ended_, true))
    transport_->FinishWriting();
}

void Connection::ContinueAlongside() {
  const base::Instant now = loop_.shared().clock.Now();
  const Transport::Io io = transport_->Write(std::string_view(unsent_).substr(sent_));
  sent_ += io.bytes;
  if (sent_ == unsent_.size()) {
    std::string().swap(unsent_);
    sent_ = 0;
    // Moving the rest to the front is paid for by at least as many sent bytes, so the total cost is
    // linear.
  } else if (sent_ > unsent_.size() / 2) {
    unsent_.erase(0, std::exchange(sent_, 0));
  }
  NoteSent(io, now);
  if (state_ != State::kClosed) SendAlongside(now);
}

void Connection::NoteSent(const Transport::Io& io, base::Instant now) {
  loop_.counters().bytes_written.Add(io.bytes);
  if (io.state == Transport::State::kFailed) return CutOff();
  session_->OnUnsent(unsent_.size() - sent_, now);
  if (unsent_.empty()) {
    write_deadline_ = kNever;
    return;
  }
  if (io.bytes > 0 || write_deadline_ == kNever)
    write_deadline_ = now + loop_.shared().options.write_timeout;
  transport_->AwaitWrite();
}

void Connection::SendThen(State next, base::Instant now) {
  // A duplex session continues to read while its output waits. Only its last output, before the
  // connection lingers, stops reading, as all output of other sessions does.
  if (duplex_ && state_ != State::kWriting && next != State::kLingering) {
    SendAlongside(now);
    if (state_ != State::kClosed) Enter(next, now);
    return;
  }
  if (!unsent_.empty() && state_ != State::kWriting) {
    // The last output of a duplex session is sent behind the unsent output.
    unsent_.append(loop_.output());
    loop_.ReleaseOutput();
  }
  std::string& output = loop_.output();
  const bool is_first = unsent_.empty();
  const std::string_view bytes =
      is_first ? std::string_view(output) : std::string_view(unsent_).substr(sent_);
  const Transport::Io io = bytes.empty() ? Transport::Io{} : transport_->Write(bytes);
  loop_.counters().bytes_written.Add(io.bytes);
  const bool all = io.bytes == bytes.size();
  if (is_first) {
    if (!all) unsent_.assign(output, io.bytes);
    loop_.ReleaseOutput();
  } else {
    sent_ += io.bytes;
    if (all) std::string().swap(unsent_);
  }
  if (all) sent_ = 0;
  if (!all || !is_first) CountBuffers(now);
  if (io.state == Transport::State::kFailed) return CutOff();
  if (!all) {
    after_writing_ = next;
    write_deadline_ = kNever;
    // The deadline moves only if the peer takes bytes, so a peer that takes none is cut off after
    // write_timeout.
    const bool progressed = is_first || io.bytes > 0;
    if (progressed) WaitUntil(Wait::kForWriter, now + loop_.shared().options.write_timeout);
    state_ = State::kWriting;
    return transport_->AwaitWrite();
  }
  // The peer has spent time on reading; its next request must not have less time for that. An
  // answer may have become ready meanwhile.
  if (!is_first && next != State::kLingering) {
    wrote_slowly_at_ = now;
    if (request_began_) request_began_ = now;
    SetReadDeadline(now);
    if (progress_.waiting() || progress_.streaming) next = State::kYielding;
  }
  Enter(next, now);
}

void Connection::Enter(State state, base::Instant now) {
  state_ = state;
  switch (state) {
    case State::kReading:
      if (loop_.closes_idle() && between_requests()) {
        // Answer the bytes that have already arrived, then close this connection.
        return ++reads_in_drain_ > kReadsInDrainMax ? CutOff() : Read();
      }
      return transport_->AwaitRead();
    case State::kYielding:
      return Wake();
    case State::kLingering:
      // Closing while the peer still sends would make the system discard the last output.
      transport_->FinishWriting();
      WaitUntil(Wait::kForPeerToClose, now + loop_.shared().options.linger_timeout);
      return ReadAway();
    case State::kSuspended:
      if (progress_.ends_with_peer) transport_->AwaitEnd();
      break;
    case State::kWriting:
    case State::kClosed:
      break;
  }
}

void Connection::ReadAway() {
  for (int i = 0; i < kReadsAwayPerTurn; ++i) {
    const Transport::Io io = transport_->Read(loop_.read_buffer());
    if (io.state == Transport::State::kWouldBlock) break;
    if (io.state != Transport::State::kDone) return CutOff();
  }
  if (loop_.closes_idle()) return CutOff();
  transport_->AwaitRead();
}

}  // namespace headgate::net
