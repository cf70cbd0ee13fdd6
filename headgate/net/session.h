// One connection's conversation, without its socket: bytes in, bytes out, time as an argument. A front implements it;
// the event loop feeds it. Tests and fuzzers feed it too.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "headgate/base/time.h"

namespace headgate::net {

// Who is at the other end.
struct Peer {
  bool loopback = true;   // a loopback address or a Unix socket
  std::string address{};  // "10.0.0.7:50000", "[2001:db8::1]:50000" or "unix"; for people
};

class Session {
 public:
  struct Progress {
    size_t consumed = 0;       // leading bytes of the input that need not be shown again
    bool close = false;        // write what is in `output`, then close
    bool mid_request = false;  // the rest of the input is the beginning of a request: the request timeout runs
    bool more = false;         // whole requests are left: call again with the rest once the output is written
    // The next request's answer comes from elsewhere, later. Call again with the same rest once the session has called
    // its waker, and read nothing meanwhile.
    bool waiting = false;
    bool protocol_error = false;  // closed for what the client sent; counted
  };

  virtual ~Session() = default;

  // Once a call has made this much output, a session says `more` and stops, so that small requests for large answers
  // cannot fill the memory.
  static constexpr size_t kOutputPauseBytes = size_t{256} << 10;

  // Handles every whole request in `input`, in order, and appends the replies to `output`. Everything that is decidable
  // in one call is decided together. `input` holds what was not consumed before, and more. A session bounds what it
  // lets pile up: where a request is larger than its bounds it answers an error and closes. All decisions of a call
  // share `now`.
  virtual Progress OnBytes(std::span<const char> input, std::string& output, base::Instant now) = 0;

  // The session calls `wake` on the loop's thread when a waiting request can be answered, perhaps from within any call
  // of the session. Set before the first bytes.
  virtual void SetWaker(std::function<void()> /*wake*/) {}

  // Why a request that was begun is given up.
  enum class GivenUp : uint8_t {
    kTooSlow,    // it took longer than the request timeout
    kNoBuffers,  // the buffers of all connections are full, and this connection is among the largest and slowest
  };
  // Appends the last words before the connection closes, if any. The session is not called again.
  virtual void OnGivenUp(GivenUp /*why*/, std::string& /*output*/, base::Instant /*now*/) {}

  // Memory of this session that grows with what its client sends, besides the input that it has not consumed.
  virtual size_t BufferedBytes() const { return 0; }

  // The process is going down: requests already begun are finished, then the session closes (HTTP says so in its
  // next answer). Called at most once, from the loop's thread.
  virtual void OnDrain() {}
};

// Who serves a connection, to judge by its first bytes.
struct SessionChoice {
  bool made = false;                   // false: more bytes are needed to tell
  std::unique_ptr<Session> session{};  // null: the connection is refused
  std::string_view refusal{};          // the last words to a refused one; must live as long as the program
};

// Whether the server has a place for a connection. One that has no place is accepted to be told so.
enum class Room : uint8_t { kForIt, kNone };

// Called on the loop's thread with all bytes so far, until the choice is made. A connection without a place gets no
// session; the first call for it may have no bytes at all.
using SessionChooser = std::function<SessionChoice(std::span<const char> first_bytes, const Peer& peer, Room room)>;

}  // namespace headgate::net
