#include "headgate/limiter/permit_hold.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "headgate/base/random_secret.h"
#include "headgate/limiter/decider.h"

namespace headgate::limiter {

permit::Id PermitIds::Next() {
  if (!last_) {
    const base::HashSecret random = base::RandomHashSecret();
    last_.emplace();
    static_assert(sizeof(*last_) <= sizeof(random.bytes));
    std::memcpy(&*last_, random.bytes.data(), sizeof(*last_));
  }
  ++last_->low;
  return *last_;
}

const permit::Id& PermitHold::IdFrom(PermitIds& ids) {
  if (!std::exchange(has_id_, true)) id_ = ids.Next();
  return id_;
}

PermitHold::PermitHold(PermitHold&& other) noexcept { *this = std::move(other); }

PermitHold& PermitHold::operator=(PermitHold&& other) noexcept {
  if (this == &other) return *this;
  Release(acquired_at_);
  held_ = std::exchange(other.held_, {});
  source_ = std::move(other.source_);
  id_ = other.id_;
  has_id_ = std::exchange(other.has_id_, false);
  is_named_ = other.is_named_;
  owner_ = other.owner_;
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

void PermitHold::Renew(base::Instant now) {
  for (HeldPermit& permit : held_) {
    if (source_->decider != nullptr) source_->decider->Renew(permit, now);
  }
}

std::optional<base::Duration> PermitHold::ttl() const {
  std::optional<base::Duration> shortest;
  for (const HeldPermit& permit : held_)
    shortest = std::min(shortest.value_or(permit.ask.ttl), permit.ask.ttl);
  return shortest;
}

void PermitHold::Keep() { held_.clear(); }

}  // namespace headgate::limiter
