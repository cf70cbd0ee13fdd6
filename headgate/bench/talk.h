// The conversation of one connection of the load: one request after another, and their answers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "headgate/base/status.h"

namespace headgate::bench {

struct Answer {
  enum class Kind : uint8_t { kAllowed, kDenied, kError };
  Kind kind = Kind::kAllowed;
  // The status of an error, or the first word of its text; and all of its text. Valid during the
  // call.
  std::string_view error_kind{};
  std::string_view error{};
};

// One per connection.
class Talk {
 public:
  virtual ~Talk() = default;
  // Appends the login, if it is a message of its own: it precedes the first request.
  virtual void Greet(std::string& /*output*/) {}
  virtual bool greeted() const { return true; }
  // Appends the request about the key of this number.
  virtual void Ask(uint64_t key, std::string& output) = 0;
  // Reads answers, and calls `on_answer` for each. DataLoss if the bytes are not of this protocol,
  // PermissionDenied if the login is refused.
  virtual absl::Status Take(std::string_view bytes,
                            const std::function<void(const Answer&)>& on_answer) = 0;
};

struct TalkOptions {
  bool http = false;  // otherwise CL.THROTTLE
  // CL.THROTTLE's limit, in its order: burst, requests, seconds.
  uint64_t burst = 1'000'000;
  uint64_t requests = 1'000'000;
  uint64_t seconds = 60;
  // For HTTP: the descriptor is `key=bench<number>` in this domain.
  std::string domain = "default";
  std::string key = "api_key";
  std::string credential{};  // or USER:PASSWORD; empty: none
};

std::unique_ptr<Talk> MakeTalk(const TalkOptions& options);

}  // namespace headgate::bench
