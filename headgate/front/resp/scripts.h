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
#include <utility>

#include "headgate/base/status.h"
#include "headgate/front/resp/throttle_script.h"

namespace headgate::front::resp {

// A script that a client has sent. Thread-safe.
class KnownScript {
 public:
  explicit KnownScript(ThrottleScript call) : call_(std::move(call)) {}

  const ThrottleScript& call() const { return call_; }
  // Whether a client must send it again. Never becomes false again.
  bool forgotten() const { return forgotten_.load(std::memory_order_acquire); }
  void Forget() { forgotten_.store(true, std::memory_order_release); }

 private:
  const ThrottleScript call_;
  std::atomic<bool> forgotten_{false};
};

using ScriptHandle = std::shared_ptr<const KnownScript>;

// The scripts of all loops, by their SHA-1 in 40 lower-case hexadecimal digits. Thread-safe.
class Scripts {
 public:
  // When another one comes, the oldest is forgotten; clients then get NOSCRIPT and send it again.
  static constexpr size_t kMax = 256;

  // Null if it is not known.
  ScriptHandle Find(std::string_view sha1) const;
  // If the script is known already, returns the known one.
  ScriptHandle Put(std::string_view sha1, ThrottleScript script);
  void Flush();

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<KnownScript>, std::less<>> by_sha1_;
  std::deque<std::string> order_;  // oldest first
};

// One per loop: finds scripts without a lock once it has seen them. Scripts that the shared table
// has forgotten are forgotten here too.
class ScriptCache {
 public:
  explicit ScriptCache(Scripts& shared) : shared_(shared) {}

  // Reads and remembers the script, so that OfSha1 finds it too. InvalidArgument if it is not one
  // call.
  absl::StatusOr<ScriptHandle> OfText(std::string_view text);
  // NotFound if no client has sent it yet. Upper case is accepted.
  absl::StatusOr<ScriptHandle> OfSha1(std::string_view sha1);
  bool Exists(std::string_view sha1) { return OfSha1(sha1).ok(); }
  void Flush() { shared_.Flush(); }

 private:
  ScriptHandle Seen(std::string_view name);
  void Remember(std::string_view name, const ScriptHandle& script);

  Scripts& shared_;
  // By text, and by SHA-1. A SHA-1 is never the text of a script, so one map holds both.
  std::map<std::string, ScriptHandle, std::less<>> seen_;
};

}  // namespace headgate::front::resp
