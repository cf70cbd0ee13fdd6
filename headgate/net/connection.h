// One accepted connection on its loop: reads, feeds the session, writes, and keeps the deadlines.
// Internal to net.
//
//   reading ──bytes──▶ the session ──output──▶ written at once, or ──▶ writing ──▶ (as the session
//   says)
//                          │ stop reading ──▶ suspended ──woken──▶ the session
//                          │ more         ──▶ yielding  ──next turn──▶ the session
//                          └ close        ──▶ lingering ──the peer closes, or time is up──▶ closed
//
// Waking a session is independent of reading: while the connection reads or is suspended, it asks
// the session for its output at the end of the turn. While it writes or yields, the session is
// asked next anyway.
//
// A connection without a slot is refused: it lives only until the chooser knows the words that its
// client understands.
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

// In the loop's list from the constructor to the destructor; the loop owns it.
class Connection final : private Transport::Owner {
 public:
  // `tls`: null for plain bytes.
  Connection(Loop& loop, FileDescriptor socket, std::optional<ConnectionLimits::Slot> slot,
             const Peer& peer, const SessionChooser& choose_session, const TlsContext* tls);
  ~Connection();
  Connection(const Connection&) = delete;

  // Reads what is there already.
  void Start();

  // Called by the loop, never from within a call of the connection's own.
  void OnTick(base::Instant now);
  void OnDrain();
  // At the end of a turn, after the session woke or said that it has more.
  void Resume(base::Instant now);

  // Closes at once; the loop destroys the connection at the end of the turn.
  void CutOff();
  // Says why, frees the buffers at once, and closes.
  void GiveUp(Session::GivenUp why, base::Instant now);

  // Bytes in its buffers times how long they have been held; 0 if there are few.
  uint64_t BufferCost(base::Instant now) const;

  Connection* next() const { return next_; }
  bool in_request() const;

 private:
  enum class State : uint8_t {
    kReading,    // waits for bytes; independent requests may wait for answers meanwhile
    kSuspended,  // waits for the session to wake; reads nothing
    kYielding,   // the session has more to do, after the other connections had their turn
    kWriting,    // waits for the peer to take the output; nothing is read and the session is not
                 // asked
    kLingering,  // all is said; reads until the peer closes
    kClosed,     // destroyed at the end of the turn
  };
  // The purpose of the deadline.
  enum class Wait : uint8_t {
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
  // Shows the session its bytes and writes what it answers. `input` is new and follows what is in
  // `rest_`.
  void Handle(std::span<const char> input, base::Instant now);
  Session::Progress AskSession(std::span<const char> input, base::Instant now);
  void Measure(const Session::Progress& progress, base::Instant began);
  bool EnsureSession(std::span<const char> input);
  void KeepRest(std::span<const char> input, size_t consumed);
  void Wake();

  // Sends what the loop's output holds, then goes to `next`; what the peer does not take moves to
  // `unsent_`.
  void SendThen(State next, base::Instant now);
  void Enter(State state, base::Instant now);
  void NoteRequest(const Session::Progress& progress, base::Instant now);
  void SetReadDeadline(base::Instant now);
  void WaitUntil(Wait wait, base::Instant deadline) {
    wait_ = wait;
    deadline_ = deadline;
  }
  void CountBuffers(base::Instant now);

  Loop& loop_;
  std::unique_ptr<Transport> transport_;
  std::optional<ConnectionLimits::Slot> slot_;  // none: the connection is refused
  const Peer peer_;
  const SessionChooser& choose_session_;
  std::unique_ptr<Session> session_;
  RequestMeter* meter_ = nullptr;
  State state_ = State::kReading;
  State after_writing_ = State::kReading;
  Session::Progress progress_;  // of the session's last call
  bool input_ended_ = false;    // the peer sends no more
  bool resumes_ = false;        // is in the loop's list of those to resume
  Wait wait_ = Wait::kForRequest;
  base::Instant deadline_;
  std::optional<base::Instant> request_began_;  // the one that is not whole
  base::Instant wrote_slowly_at_{};  // when the peer had last taken what it did not take at once
  int reads_in_drain_ = 0;
  std::string rest_;    // input that the session has not consumed
  std::string unsent_;  // output that the peer has not taken
  size_t sent_ = 0;     // of `unsent_`
  size_t held_ = 0;     // bytes that the loop counts for these buffers and the session's
  base::Instant held_since_;
  Connection* next_ = nullptr;
  Connection* previous_ = nullptr;
};

}  // namespace headgate::net
