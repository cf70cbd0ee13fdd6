// Bodies in parts, for what is too large to be held whole, or has no end: the body of an answer is
// asked for its next part when the client has taken the one before; the body of a request is given
// away as it arrives.
//
// Both may be destroyed at any time between two calls: then the client has gone, or has been given
// up.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "headgate/base/time.h"

namespace headgate::http {

struct Response;

// An answer's body.
class BodySource {
 public:
  enum class Next : uint8_t {
    kMore,    // a part was appended, and more follows
    kLater,   // what was appended, if anything, is all for now; the suspension's `wake` tells when
              // there is more
    kEnd,     // what was appended, if anything, was the last
    kBroken,  // the rest cannot be had: the connection closes in the middle, so that the client
              // notices
  };

  virtual ~BodySource() = default;

  // Appends the next part, of at most `bytes_max` bytes.
  virtual Next Read(size_t bytes_max, std::string& out, base::Instant now) = 0;

  // The bytes of all parts together, if they are known before the first.
  virtual std::optional<uint64_t> size_bytes() const { return std::nullopt; }
  // An event stream: its next part may take for ever. The connection ends it when the client sends
  // its end or the server goes down. Any other source must not keep the client waiting for longer
  // than the request timeout.
  virtual bool endless() const { return false; }
};

// A request's body.
class BodySink {
 public:
  enum class Took : uint8_t {
    kMore,   // it is ready for the next part
    kLater,  // it has this part, and wants no other before it has called the suspension's `wake`
  };

  virtual ~BodySink() = default;

  virtual Took Write(std::string_view part, base::Instant now) = 0;
  // All parts are there: answers, as Handler::Handle does. With `response.later` it is called again
  // after `wake`.
  virtual void Finish(Response& response, base::Instant now) = 0;
};

}  // namespace headgate::http
