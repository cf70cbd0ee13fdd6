#include "headgate/front/resp/scripts.h"

#include "headgate/wire/digest.h"
#include "headgate/base/text.h"

namespace headgate::front::resp {
namespace {

constexpr size_t kSha1Digits = 40;

}  // namespace

ScriptHandle Scripts::Find(std::string_view sha1) const {
  const std::lock_guard lock(mutex_);
  const auto found = by_sha1_.find(sha1);
  return found == by_sha1_.end() ? nullptr : found->second;
}

void Scripts::Put(std::string_view sha1, ScriptHandle script) {
  const std::lock_guard lock(mutex_);
  if (!by_sha1_.try_emplace(std::string(sha1), std::move(script)).second) return;
  order_.emplace_back(sha1);
  if (order_.size() <= kMax) return;
  by_sha1_.erase(order_.front());
  order_.pop_front();
}

void Scripts::Flush() {
  const std::lock_guard lock(mutex_);
  by_sha1_.clear();
  order_.clear();
  generation_.fetch_add(1, std::memory_order_release);
}

absl::StatusOr<ScriptHandle> ScriptCache::OfText(std::string_view text) {
  TakeUpFlush();
  if (ScriptHandle seen = Seen(text)) return seen;
  HEADGATE_ASSIGN_OR_RETURN(ThrottleScript parsed, ThrottleScript::Parse(text));
  ScriptHandle script = std::make_shared<const ThrottleScript>(std::move(parsed));
  shared_.Put(wire::DigestHex(wire::Digest::kSha1, text), script);
  Remember(text, script);
  return script;
}

absl::StatusOr<ScriptHandle> ScriptCache::OfSha1(std::string_view sha1) {
  TakeUpFlush();
  if (ScriptHandle seen = Seen(sha1)) return seen;
  std::string lower(sha1.substr(0, kSha1Digits + 1));
  for (char& c : lower) c = base::ToLower(c);
  if (ScriptHandle script = shared_.Find(lower)) {
    Remember(sha1, script);
    return script;
  }
  return absl::NotFoundError("NOSCRIPT No matching script. Please use EVAL.");
}

void ScriptCache::TakeUpFlush() {
  const uint64_t generation = shared_.generation();
  if (generation == generation_) return;
  generation_ = generation;
  seen_.clear();
}

ScriptHandle ScriptCache::Seen(std::string_view name) const {
  const auto found = seen_.find(name);
  return found == seen_.end() ? nullptr : found->second;
}

void ScriptCache::Remember(std::string_view name, const ScriptHandle& script) {
  // Names in different cases, and scripts that the shared table has forgotten.
  if (seen_.size() >= 4 * Scripts::kMax) seen_.clear();
  seen_.emplace(name, script);
}

}  // namespace headgate::front::resp
