// Bodies of responses that are sent in parts, because they are too large for memory or have no end.
// A source is asked for the next part when the client has taken the one before. It may be destroyed
// at any time between two calls, because the client has gone or was given up.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "headgate/base/time.h"

namespace headgate::http {

// The body of a response.
class BodySource {
 public:
  enum class Next : uint8_t {
    kMore,    // a part was appended, and more follows
    kLater,   // no more for now, except the bytes appended; call the suspension's `wake` when there
              // is more
    kEnd,     // the end, after the bytes appended
    kBroken,  // the rest is unavailable: the connection closes in the middle so that the client
              // notices
  };

  virtual ~BodySource() = default;

  // Appends the next part, of at most `bytes_max` bytes.
  virtual Next Read(size_t bytes_max, std::string& out, base::Instant now) = 0;

  // The size of all parts together, if it is known before the first part.
  virtual std::optional<uint64_t> size_bytes() const { return std::nullopt; }
  // Whether this is an event stream, whose next part may take forever. The connection ends such a
  // stream when the client sends its end or the server shuts down. Any other source must not keep
  // the client waiting for longer than the request timeout.
  virtual bool endless() const { return false; }
};

// A body that outlives its answers, such as a constant: no answer makes a copy of the whole.
class FixedBody final : public BodySource {
 public:
  explicit FixedBody(std::string_view body) : size_bytes_(body.size()), rest_(body) {}

  Next Read(size_t bytes_max, std::string& out, base::Instant /*now*/) override {
    const std::string_view part = rest_.substr(0, bytes_max);
    out.append(part);
    rest_.remove_prefix(part.size());
    return rest_.empty() ? Next::kEnd : Next::kMore;
  }
  std::optional<uint64_t> size_bytes() const override { return size_bytes_; }

 private:
  const uint64_t size_bytes_;
  std::string_view rest_;
};

}  // namespace headgate::http
