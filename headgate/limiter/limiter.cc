#include "headgate/limiter/limiter.h"

#include <utility>

#include "headgate/limiter/published_rules.h"

namespace headgate::limiter {

Limiter::Limiter(store::Store& store, Observers observers) : store_(store), observers_(observers) {}

Limiter::~Limiter() = default;

absl::Status Limiter::OnRules(std::shared_ptr<const rule::RuleSet> rules, base::Instant now) {
  std::lock_guard lock(mutex_);
  HEADGATE_ASSIGN_OR_RETURN(
      published_, Publish(std::move(rules), published_.get(), store_.limits(), observers_, now));
  generation_.fetch_add(1, std::memory_order_release);
  return absl::OkStatus();
}

std::shared_ptr<const PublishedRules> Limiter::published() const {
  std::lock_guard lock(mutex_);
  return published_;
}

std::shared_ptr<const rule::RuleSet> Limiter::rules() const {
  const auto set = published();
  return set == nullptr ? nullptr : set->rules;
}

}  // namespace headgate::limiter
