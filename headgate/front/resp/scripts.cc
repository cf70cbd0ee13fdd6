#include "headgate/front/resp/scripts.h"

#include "headgate/base/text.h"
#include "headgate/wire/digest.h"

namespace headgate::front::resp {
namespace {

constexpr size_t kSha1Digits = 40;

}  // namespace

ScriptHandle Scripts::Find(std::string_view sha1) const {
  const std::lock_guard lock(mutex_);
  const auto found = by_sha1_.find(sha1);
  return found == by_sha1_.end() ? nullptr : found->second;
}

ScriptHandle Scripts::Put(std::string_view sha1, ThrottleScript script) {
  const std::lock_guard lock(mutex_);
  const auto [known, is_new] = by_sha1_.try_emplace(std::string(sha1));
  if (!is_new) return known->second;
  ScriptHandle put = known->second = std::make_shared<KnownScript>(std::move(script));
  order_.emplace_back(sha1);
  if (order_.size() > kMax) {
    const auto oldest = by_sha1_.find(order_.front());
    oldest->second->Forget();
    by_sha1_.erase(oldest);
    order_.pop_front();
  }
  return put;
}

void Scripts::Flush() {
  const std::lock_guard lock(mutex_);
  for (const auto& [sha1, script] : by_sha1_) script->Forget();
  by_sha1_.clear();
  order_.clear();
}

absl::StatusOr<ScriptHandle> ScriptCache::OfText(std::string_view text) {
  if (ScriptHandle seen = Seen(text)) return seen;
  HEADGATE_ASSIGN_OR_RETURN(ThrottleScript parsed, ThrottleScript::Parse(text));
  ScriptHandle script = shared_.Put(wire::DigestHex(wire::Digest::kSha1, text), std::move(parsed));
  Remember(text, script);
  return script;
}

absl::StatusOr<ScriptHandle> ScriptCache::OfSha1(std::string_view sha1) {
  if (ScriptHandle seen = Seen(sha1)) return seen;
  std::string lower(sha1.substr(0, kSha1Digits + 1));
  for (char& c : lower) c = base::ToLower(c);
  if (ScriptHandle script = shared_.Find(lower)) {
    Remember(sha1, script);
    return script;
  }
  return absl::NotFoundError("NOSCRIPT No matching script. Please use EVAL.");
}

ScriptHandle ScriptCache::Seen(std::string_view name) {
  const auto found = seen_.find(name);
  if (found == seen_.end()) return nullptr;
  if (!found->second->forgotten()) return found->second;
  seen_.erase(found);
  return nullptr;
}

void ScriptCache::Remember(std::string_view name, const ScriptHandle& script) {
  // The cache also holds names in different letter cases, and scripts that the shared table has
  // forgotten.
  if (seen_.size() >= 4 * Scripts::kMax) seen_.clear();
  seen_.emplace(name, script);
}

}  // namespace headgate::front::resp
