// The scripts that clients have sent, by their text and by its SHA-1, for EVAL and EVALSHA.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "headgate/base/status.h"
#include "headgate/front/resp/throttle_script.h"

namespace headgate::front::resp {

using ScriptHandle = std::shared_ptr<const ThrottleScript>;

// The scripts of all loops, by their SHA-1 in 40 lower-case hexadecimal digits. Thread-safe.
class Scripts {
 public:
  // When another one comes, the oldest is forgotten; clients then get NOSCRIPT and send it again.
  static constexpr size_t kMax = 256;

  // Null if it is not known.
  ScriptHandle Find(std::string_view sha1) const;
  void Put(std::string_view sha1, ScriptHandle script);
  void Flush();
  // Changes with each Flush.
  uint64_t generation() const { return generation_.load(std::memory_order_acquire); }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, ScriptHandle, std::less<>> by_sha1_;
  std::deque<std::string> order_;  // oldest first
  std::atomic<uint64_t> generation_{0};
};

// One per loop: finds scripts without a lock once it has seen them.
class ScriptCache {
 public:
  explicit ScriptCache(Scripts& shared) : shared_(shared) {}

  // Reads and remembers the script. InvalidArgument if it is not one call.
  absl::StatusOr<ScriptHandle> OfText(std::string_view text);
  // NotFound if no client has sent it yet. Upper case is accepted.
  absl::StatusOr<ScriptHandle> OfSha1(std::string_view sha1);
  bool Exists(std::string_view sha1) { return OfSha1(sha1).ok(); }
  void Flush() { shared_.Flush(); }

 private:
  void TakeUpFlush();
  ScriptHandle Seen(std::string_view name) const;
  void Remember(std::string_view name, const ScriptHandle& script);

  Scripts& shared_;
  uint64_t generation_ = 0;
  // By text, and by SHA-1, which is never the text of a script.
  std::map<std::string, ScriptHandle, std::less<>> seen_;
};

}  // namespace headgate::front::resp
