// The conversation on one connection without its socket: bytes in, bytes out, time as an argument.
// A front implements it; the event loop, tests and fuzzers feed it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "headgate/base/time.h"
#include "headgate/net/peer.h"

namespace headgate::net {

// Counts and times the requests of a front's sessions on one loop, on that loop's thread.
class RequestMeter {
 public:
  virtual ~RequestMeter() = default;
  // `requests` were answered together, `elapsed` after their bytes, or the results they waited for,
  // had arrived.
  virtual void OnBatch(uint64_t requests, base::Duration elapsed) = 0;
  // Some of them had to wait for an external result. `elapsed` is the time from the arrival of
  // their bytes to their answers.
  virtual void OnWait(base::Duration elapsed) = 0;
  virtual void OnProtocolError() = 0;
};

class Session {
 public:
  // "Stop reading" and "there is output" are two separate signals. A session that answers in order
  // stops reading while a request waits. A session with independent requests continues reading, and
  // writes each answer as soon as it is available.
  struct Progress {
    size_t consumed = 0;       // leading bytes of the input that need not be passed again
    uint64_t answered = 0;     // requests whose answers were completed in this call
    bool close = false;        // write `output`, then close
    bool mid_request = false;  // a request is incomplete: the request timeout is running
    bool more = false;  // call again with the rest of the input, if any, once the output is written
    bool stop_reading = false;  // do not read before the session wakes
    bool streaming = false;     // an endless answer is in progress; it may stay silent forever
    // While it does not read: close the connection as soon as the peer closes its end, because
    // nobody waits for the answer then.
    bool ends_with_peer = false;
    bool protocol_error = false;  // closed because of invalid input; counted
    // Reset the connection at once, even if output is unsent: after a regular end, a cut-off answer
    // without a stated length would look complete.
    bool reset = false;
    // For duplex sessions: once the output is written, half-close the connection, and continue to
    // read.
    bool finish_writing = false;
    // If requests wait for external results: since when the first of them waits. The session wakes
    // when it has output. A request whose answer is held back on purpose counts from the end of
    // that time, which is in the future.
    std::optional<base::Instant> waiting_since{};
    // Call again at this time, even if nothing has arrived. Late by at most a tick.
    std::optional<base::Instant> call_at{};
    // If some of the requests in `answered` had to wait: since when the first of them did.
    std::optional<base::Instant> answered_since{};

    bool waiting() const { return waiting_since.has_value(); }
  };

  virtual ~Session() = default;

  // After this much output in one call, a session reports `more` and returns. So small requests
  // with large answers neither fill the memory nor hold up the other connections of the loop. It
  // takes some 30 µs to write this much.
  static constexpr size_t kOutputPauseBytes = size_t{64} << 10;

  // Handles every complete request in `input`, in order, and appends the replies to `output`,
  // together with replies that have become ready meanwhile. Everything that can be decided in one
  // call is decided together. `input` holds the bytes that were not consumed before plus new bytes;
  // there are no new bytes if the session woke or reported `more`. A session bounds its buffers: if
  // a request exceeds the bounds, it replies with an error and closes. All decisions of one call
  // use the same `now`.
  virtual Progress OnBytes(std::span<const char> input, std::string& output, base::Instant now) = 0;

  // Sets the function that the session calls, on the loop's thread, when it has output or reads
  // again, possibly from within any call of the session. A call of OnBytes follows later. Set
  // before the first bytes.
  virtual void SetWaker(std::function<void()> /*wake*/) {}

  // Whether the connection reads, and calls OnBytes, while the peer has not taken all output. Such
  // a session bounds its output by OnUnsent. It must not change.
  virtual bool duplex() const { return false; }
  // The system has not taken this many bytes of a duplex session's output yet. Called when it has
  // taken more, if it did not take all at once. May wake the session.
  virtual void OnUnsent(size_t /*bytes*/, base::Instant /*now*/) {}
  // The peer has closed its direction. Returns whether the session, which is duplex, still has
  // output or awaits an answer; a call of OnBytes follows, without bytes. Otherwise the connection
  // closes.
  virtual bool OnInputEnd(base::Instant /*now*/) { return false; }

  // Why a connection is given up.
  enum class GivenUp : uint8_t {
    kIdle,       // no request came for the idle timeout
    kTooSlow,    // a request took longer than the request timeout
    kNoBuffers,  // the buffers of all connections are full, and this one is among the largest and
                 // slowest
  };
  // Appends an optional last message before the connection closes. The session is not called again.
  virtual void OnGivenUp(GivenUp /*why*/, std::string& /*output*/, base::Instant /*now*/) {}

  // The memory of this session that grows with the client's input, without the input that it has
  // not consumed.
  virtual size_t BufferedBytes() const { return 0; }

  // Called when the process shuts down: the session finishes the requests that have begun, then
  // closes (HTTP announces this in its next response). Called at most once, on the loop's thread.
  virtual void OnDrain() {}
};

// Tracks the times in Session::Progress for a session that answers in order.
class OrderedWait {
 public:
  // Call it at the end of OnBytes. `waits`: whether the next request waits now.
  void Report(bool waits, base::Instant now, Session::Progress& progress) {
    if (progress.answered > 0) progress.answered_since = std::exchange(since_, std::nullopt);
    since_ = waits ? std::optional(since_.value_or(now)) : std::nullopt;
    progress.waiting_since = since_;
    progress.stop_reading = waits;
  }

 private:
  std::optional<base::Instant> since_;
};

// The session for a connection, chosen by the connection's first bytes.
struct SessionChoice {
  bool made = false;                   // false: more bytes are needed to tell
  std::unique_ptr<Session> session{};  // null: the connection is refused
  std::string_view refusal{};     // last message to a refused client; must have static lifetime
  RequestMeter* meter = nullptr;  // may be null; must outlive the session
};

// Whether the server has a place for a connection. Without a place, the connection is accepted only
// to tell the client so.
enum class Room : uint8_t { kForIt, kNone };

// Called on the loop's thread with all bytes so far, until the choice is made. A connection without
// a place gets no session. Its first call may have no bytes at all.
using SessionChooser =
    std::function<SessionChoice(std::span<const char> first_bytes, const Peer& peer, Room room)>;

}  // namespace headgate::net
