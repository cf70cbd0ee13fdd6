// One connection's conversation, without its socket: bytes in, bytes out, time as an argument. A
// front implements it; the event loop feeds it. Tests and fuzzers feed it too.
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

namespace headgate::net {

// The other end of a connection.
struct Peer {
  bool loopback = true;   // a loopback address or a Unix socket
  std::string address{};  // "10.0.0.7:50000", "[2001:db8::1]:50000" or "unix"; for people
};

// Counts and times the requests of a front's sessions on one loop, on that loop's thread.
class RequestMeter {
 public:
  virtual ~RequestMeter() = default;
  // `requests` were answered together, `elapsed` after their bytes, or what they had waited for,
  // were there.
  virtual void OnBatch(uint64_t requests, base::Duration elapsed) = 0;
  // Some of them had to wait for an answer from elsewhere: `elapsed` from their bytes to their
  // answers.
  virtual void OnWait(base::Duration elapsed) = 0;
  virtual void OnProtocolError() = 0;
};

class Session {
 public:
  // "Stop reading" and "there is output" are two signals. A session that answers in order stops
  // reading while a request waits. One whose requests are independent reads on, and writes each
  // answer when it is there.
  struct Progress {
    size_t consumed = 0;        // leading bytes of the input that need not be shown again
    uint64_t answered = 0;      // requests whose answers ended in this call
    bool close = false;         // write what is in `output`, then close
    bool mid_request = false;   // a request has begun and is not whole: the request timeout runs
    bool more = false;          // call again with the rest, if any, once the output is written
    bool stop_reading = false;  // read nothing before the session wakes
    bool streaming = false;  // an answer without an end is under way; without bytes to write it may
                             // rest for ever
    bool protocol_error = false;  // closed for what the client sent; counted
    // Requests wait for answers from elsewhere: since when the first of them does. The session
    // wakes when it has output.
    std::optional<base::Instant> waiting_since{};
    // Some of `answered` had waited: since when the first of them did.
    std::optional<base::Instant> answered_since{};

    bool waiting() const { return waiting_since.has_value(); }
  };

  virtual ~Session() = default;

  // Once a call has made this much output, a session says `more` and stops, so that small requests
  // for large answers cannot fill the memory.
  static constexpr size_t kOutputPauseBytes = size_t{256} << 10;

  // Handles every whole request in `input`, in order, and appends the replies to `output`, as well
  // as those that have become ready meanwhile. Everything that is decidable in one call is decided
  // together. `input` holds what was not consumed before, and what has arrived since; nothing new
  // when the session has woken or said `more`. A session bounds what it lets pile up: if a request
  // is larger than its bounds it answers an error and closes. All decisions of a call share `now`.
  virtual Progress OnBytes(std::span<const char> input, std::string& output, base::Instant now) = 0;

  // The session calls `wake` on the loop's thread when it has output, or reads again; perhaps from
  // within any call of the session. OnBytes follows, later. Set before the first bytes.
  virtual void SetWaker(std::function<void()> /*wake*/) {}

  // Why a request that was begun is given up.
  enum class GivenUp : uint8_t {
    kTooSlow,    // it took longer than the request timeout
    kNoBuffers,  // the buffers of all connections are full, and this connection is among the
                 // largest and slowest
  };
  // Appends the last words before the connection closes, if any. The session is not called again.
  virtual void OnGivenUp(GivenUp /*why*/, std::string& /*output*/, base::Instant /*now*/) {}

  // Memory of this session that grows with what its client sends, besides the input that it has not
  // consumed.
  virtual size_t BufferedBytes() const { return 0; }

  // The process is going down: requests already begun are finished, then the session closes (HTTP
  // says so in its next answer). Called at most once, from the loop's thread.
  virtual void OnDrain() {}
};

// Keeps the times in the progress of a session that answers in order.
class OrderedWait {
 public:
  // At the end of a call: whether the next request waits now.
  void Report(bool waits, base::Instant now, Session::Progress& progress) {
    if (progress.answered > 0) progress.answered_since = std::exchange(since_, std::nullopt);
    since_ = waits ? std::optional(since_.value_or(now)) : std::nullopt;
    progress.waiting_since = since_;
    progress.stop_reading = waits;
  }

 private:
  std::optional<base::Instant> since_;
};

// The session that serves a connection, chosen by its first bytes.
struct SessionChoice {
  bool made = false;                   // false: more bytes are needed to tell
  std::unique_ptr<Session> session{};  // null: the connection is refused
  std::string_view refusal{};  // the last words to a refused one; must live as long as the program
  RequestMeter* meter = nullptr;  // may be null; outlives the session
};

// Whether the server has a place for a connection. One that has no place is accepted to be told so.
enum class Room : uint8_t { kForIt, kNone };

// Called on the loop's thread with all bytes so far, until the choice is made. A connection without
// a place gets no session; the first call for it may have no bytes at all.
using SessionChooser =
    std::function<SessionChoice(std::span<const char> first_bytes, const Peer& peer, Room room)>;

}  // namespace headgate::net
