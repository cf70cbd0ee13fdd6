#include "headgate/limiter/matches.h"

#include <string>

#include "headgate/limiter/work.h"

namespace headgate::limiter {

void Matches::Find(const Task& task) {
  const Request& request = task.request;
  matched_.resize(request.descriptors.size());
  any_quota_ = any_shadow_ = false;
  bool any_replaces = false;
  for (size_t i = 0; i < matched_.size(); ++i) {
    const rule::Descriptor& descriptor = request.descriptors[i];
    Matched& m = matched_[i];
    m.domain_known = task.rules.rules->Find(request.domain, descriptor.entries, m.match);
    m.rule = descriptor.override_limit ? nullptr : m.match.rule;
    if (m.rule == nullptr) continue;
    any_replaces = any_replaces || !m.rule->replaces.empty();
    any_quota_ = any_quota_ || m.rule->quota_mode;
    any_shadow_ = any_shadow_ || m.rule->shadow_mode || m.rule->rollout != nullptr;
  }
  if (any_replaces) [[unlikely]]
    Replace();
}

void Matches::Replace() {
  for (const Matched& replacing : matched_) {
    if (replacing.match.rule == nullptr) continue;
    for (const std::string& name : replacing.match.rule->replaces) {
      for (Matched& m : matched_) {
        if (m.rule != nullptr && m.rule->name == name) m.rule = nullptr;
      }
    }
  }
}

bool Matches::IsQuota(size_t descriptor) const {
  const rule::Rule* const rule = RuleOf(descriptor);
  return rule != nullptr && rule->quota_mode;
}

bool Matches::PassesBy(absl::FunctionRef<bool(size_t)> allows) const {
  if (!any_quota_) [[likely]] {
    for (size_t i = 0; i < matched_.size(); ++i) {
      if (!allows(i)) return false;
    }
    return true;
  }
  size_t quota_count = 0;
  size_t quota_denied = 0;
  for (size_t i = 0; i < matched_.size(); ++i) {
    const bool is_quota = IsQuota(i);
    if (!is_quota && !allows(i)) return false;
    quota_count += is_quota ? 1u : 0u;
    quota_denied += is_quota && !allows(i) ? 1u : 0u;
  }
  return quota_count == 0 || quota_denied < quota_count;
}

}  // namespace headgate::limiter
