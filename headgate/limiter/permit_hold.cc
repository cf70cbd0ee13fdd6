#include "headgate/limiter/permit_hold.h"

#include <utility>

#include "headgate/limiter/decider.h"

namespace headgate::limiter {

PermitHold::PermitHold(PermitHold&& other) noexcept { *this = std::move(other); }

PermitHold& PermitHold::operator=(PermitHold&& other) noexcept {
  if (this == &other) return *this;
  Release(acquired_at_);
  held_ = std::exchange(other.held_, {});
  source_ = std::move(other.source_);
  id_ = other.id_;
  has_id_ = std::exchange(other.has_id_, false);
  is_named_ = other.is_named_;
  ttl_ = other.ttl_;
  acquired_at_ = other.acquired_at_;
  return *this;
}

void PermitHold::Add(HeldPermit held, const std::shared_ptr<PermitSource>& source,
                     base::Instant now) {
  source_ = source;
  acquired_at_ = now;
  held_.push_back(std::move(held));
}

void PermitHold::Release(base::Instant now) {
  if (held_.empty()) return;
  auto held = std::exchange(held_, {});
  for (HeldPermit& permit : held) {
    if (source_->decider != nullptr) source_->decider->GiveBack(permit, id_, now);
  }
}

void PermitHold::Keep() { held_.clear(); }

}  // namespace headgate::limiter
