// One accepted connection on its loop: reads, feeds the session, writes, and enforces the
// deadlines. Internal to net.
//
//   reading ──bytes──▶ session ──output──▶ written at once, or ──▶ writing ──▶ next state
//                         │ stop reading ──▶ suspended ──woken──▶ session
//                         │ more         ──▶ yielding  ──next turn──▶ session
//                         └ close        ──▶ lingering ──peer closes, or timeout──▶ closed
//
// A session can wake independently of reading: if it wakes while the connection is reading or
// suspended, the connection asks it for output at the end of the turn. While the connection is
// writing or yielding, the session will be called next anyway.
//
// A duplex session (session.h) is never in the state `writing`, except before it lingers: output
// that the peer does not take is sent alongside.
//
// A connection without a slot is refused. It lives only until the chooser knows which protocol the
// client speaks, and so how to phrase the refusal.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "headgate/base/time.h"
#include "headgate/net/connection_limits.h"
#include "headgate/net/file_descriptor.h"
#include "headgate/net/session.h"
#include "headgate/net/transport.h"

namespace headgate::net {

class Loop;
struct Listener;

// In the loop's list from construction to destruction; the loop owns it.
class Connection final : private Transport::Owner {
 public:
  // `listener` outlives the connection.
  Connection(Loop& loop, FileDescriptor socket, std::optional<ConnectionLimits::Slot> slot,
             const Peer& peer, const Listener& listener);
  ~Connection();
  Connection(const Connection&) = delete;

  // Starts by reading the bytes that have already arrived.
  void Start();

  // Called by the loop, never from within a call that the connection makes.
  void OnTick(base::Instant now);
  void OnDrain();
  // Called at the end of a turn, after the session woke or reported `more`.
  void Resume(base::Instant now);

  // Closes at once; the loop destroys the connection at the end of the turn.
  void CutOff();
  // Lets the session append a last message, frees the buffers at once, and closes.
  void GiveUp(Session::GivenUp why, base::Instant now);

  // The bytes in its buffers times how long they have been held; 0 if there are few.
  uint64_t BufferCost(base::Instant now) const;
  // Reports a change of the memory that this connection holds.
  void CountBuffers(base::Instant now);

  Connection* next() const { return next_; }
  bool in_request() const;
  bool between_requests() const {
    return (wait_ == Wait::kForHandshake || wait_ == Wait::kForRequest) && unsent_.empty();
  }

 private:
  static constexpr base::Instant kNever = base::Instant::FromNanos(INT64_MAX);

  enum class State : uint8_t {
    kReading,    // waits for bytes; independent requests may be waiting for answers meanwhile
    kSuspended,  // waits for the session to wake; does not read
    kYielding,   // the session has more to do after the other connections had their turn
    kWriting,    // waits for the peer to take output; neither reads nor calls the session
    kLingering,  // everything is sent; reads until the peer closes
    kClosed,     // destroyed at the end of the turn
  };
  // The purpose of the current deadline.
  enum class Wait : uint8_t {
    kForHandshake,  // for the handshake or, if it is complete, for the first request
    kForRequest,
    kForRestOfRequest,
    kForAnswer,
    kForWriter,
    kForPeerToClose
  };

  void OnReadable() override;
  void OnWritable() override;

  void Read();
  void ReadAway();
  void OnInputEnd();
  // Passes bytes to the session and writes its output. `input` is new and follows the bytes in
  // `rest_`.
  void Handle(std::span<const char> input, base::Instant now);
  Session::Progress AskSession(std::span<const char> input, base::Instant now);
  void Measure(const Session::Progress& progress, base::Instant began);
  bool EnsureSession(std::span<const char> input);
  void KeepRest(std::span<const char> input, size_t consumed);
  void Wake();

  // Sends the loop's output, then enters `next`. Output that the peer does not take moves to
  // `unsent_`.
  void SendThen(State next, base::Instant now);
  // For duplex sessions. Writes the loop's output as far as the peer takes it; the rest goes behind
  // `unsent_`. If older output is unsent, all of it goes there.
  void SendAlongside(base::Instant now);
  void ContinueAlongside();
  void NoteSent(const Transport::Io& io, base::Instant now);
  void Enter(State state, base::Instant now);
  void NoteRequest(const Session::Progress& progress, base::Instant now);
  void SetReadDeadline(base::Instant now);
  void WaitUntil(Wait wait, base::Instant deadline) {
    wait_ = wait;
    deadline_ = deadline;
  }

  Loop& loop_;
  std::unique_ptr<Transport> transport_;
  std::optional<ConnectionLimits::Slot> slot_;  // empty: the connection is refused
  Peer peer_;
  const SessionChooser& choose_session_;
  std::unique_ptr<Session> session_;
  RequestMeter* meter_ = nullptr;
  State state_ = State::kReading;
  State after_writing_ = State::kReading;
  Session::Progress progress_;  // of the session's last call
  // The connection has a reserved place, but has not sent a request yet.
  bool owes_request_ = false;
  bool input_ended_ = false;   // the peer will send no more
  bool duplex_ = false;        // of the session
  bool output_ended_ = false;  // this end's direction is closed
  bool resumes_ = false;       // whether the loop's list of connections to resume contains it
  Wait wait_ = Wait::kForRequest;
  base::Instant deadline_;
  base::Instant write_deadline_ = kNever;       // of a duplex session's unsent output
  std::optional<base::Instant> request_began_;  // start of the incomplete request
  base::Instant wrote_slowly_at_{};             // last time that the peer took delayed output
  int reads_in_drain_ = 0;
  std::string rest_;    // input that the session has not consumed
  std::string unsent_;  // output that the peer has not taken
  size_t sent_ = 0;     // bytes of `unsent_` that were sent
  // Bytes that the loop has counted for the buffers of this connection and its session.
  size_t held_ = 0;
  base::Instant held_since_;
  Connection* next_ = nullptr;
  Connection* previous_ = nullptr;
};

}  // namespace headgate::net
