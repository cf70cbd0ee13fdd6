#include "tests/simulation/bound.h"

#include <algorithm>

namespace headgate::simulation {

using algorithm::Algorithm;
using base::Duration;
using base::Instant;

namespace {

// An outage that somebody still was in is over for sure. What it allowed and nobody took is not allowed later; in a
// window it counts as long as that.
constexpr Duration kOutageForgotten = std::chrono::seconds(3);

}  // namespace

Bound::Bound(const algorithm::Limit& limit, Instant calendar_edge)
    : algorithm_(limit.algorithm()),
      period_(std::max<int64_t>(1, limit.spec().period.count())),
      level_(Level{static_cast<int64_t>(limit.capacity())} * period_),
      capacity_(level_),
      full_from_(level_),
      rate_(limit.spec().requests),
      align_(limit.spec().align),
      calendar_edge_(calendar_edge) {}

void Bound::Advance(Duration at) {
  const Level top = capacity_ + outage_ + (seen_ < extra_until_ ? extra_ : 0);
  Duration passed = at - seen_;
  if (seen_ < second_until_) passed += std::min(at, second_until_) - seen_;
  seen_ = at;
  level_ = std::min(std::max(top, level_), level_ + Level{passed.count()} * static_cast<int64_t>(rate_));
  if (at >= extra_until_) {
    extra_ = second_capacities_ = 0;
    level_ = std::min(level_, capacity_ + outage_);
  }
  if (outage_ > 0 && at > outage_until_ + kOutageForgotten + Duration(IsMeter() ? 0 : 2 * period_)) EndOutage();
  if (level_ >= full_from_ + outage_) level_ = std::max(level_, capacity_);
}

void Bound::Widen(const algorithm::Limit& limit, Duration at) {
  const Level capacity = Level{static_cast<int64_t>(limit.capacity())} * period_;
  Advance(at);
  full_from_ = std::min(capacity_, capacity);
  extra_ += second_capacities_ * std::max<Level>(0, capacity - capacity_);
  capacity_ = std::max(capacity_, capacity);
  rate_ = std::max(rate_, limit.spec().requests);
}

void Bound::Narrow(const algorithm::Limit& limit, Duration at) {
  Advance(at);
  full_from_ = capacity_ = Level{static_cast<int64_t>(limit.capacity())} * period_;
  rate_ = limit.spec().requests;
  level_ = std::min(level_, capacity_ + extra_ + outage_);
}

void Bound::Allow(Level tokens, Duration at, Duration until) {
  Advance(at);
  tokens = std::min(tokens, capacity_);
  level_ += tokens;
  extra_ += tokens;
  extra_until_ = std::max(extra_until_, until);
}

void Bound::AllowCapacity(Duration at, Duration until) { Allow(capacity_, at, until); }

void Bound::AllowTokens(uint64_t tokens, Duration at, Duration until) {
  Allow(Level{static_cast<int64_t>(tokens)} * period_, at, until);
}

void Bound::AllowSecondServer(Duration at, Duration stops, Duration until) {
  Advance(at);
  second_until_ = std::max(second_until_, stops);
  extra_until_ = std::max(extra_until_, until);
  // Of windows that begin with their first hit, as many as one of ours may reach into.
  const bool first_hit = align_ == algorithm::Align::kFirstHit;
  const Level more = first_hit ? 2 + (stops - at).count() / period_ : 1;
  second_capacities_ += more;
  extra_ += more * capacity_;
}

void Bound::AllowOutage(Duration from, Duration at, uint32_t instances) {
  Advance(at);
  if (outage_ > 0 && from > outage_until_) EndOutage();
  const Duration since = outage_ > 0 ? outage_until_ : std::min(from, at);
  Level more = Level{std::max(Duration(0), at - since).count()} * static_cast<int64_t>(rate_);
  if (outage_ == 0) more += std::max(capacity_, Level{instances} * period_);
  outage_ += more;
  level_ += more;
  outage_until_ = std::max(outage_until_, at);
}

void Bound::AllowShare(uint32_t instances, Duration at) {
  if (outage_ == 0) return;
  Advance(at);
  const Level share = capacity_ / instances + period_;
  outage_ += share;
  level_ += share;
}

void Bound::EndOutage() {
  outage_ = 0;
  level_ = std::min(level_, std::max(capacity_, full_from_) + extra_);
}

uint64_t Bound::Room(Duration at, Instant wall) {
  Advance(at);
  AdvanceWindow(wall);
  Level room = level_;
  if (!IsMeter()) {
    room = capacity_ - Level{static_cast<int64_t>(current_)} * period_;
    if (align_ == algorithm::Align::kFirstHit && wall >= until_) room = capacity_;
    if (algorithm_ == Algorithm::kSlidingWindowCounter) {
      room -= Level{static_cast<int64_t>(previous_)} * (period_ - wall.ns % period_);
    }
  }
  return room > 0 ? static_cast<uint64_t>(room / period_) : 0;
}

void Bound::AllowTime(Duration step, Duration at, Duration until) {
  const bool window = !IsMeter();
  Allow(window ? capacity_ : Level{step.count()} * static_cast<int64_t>(rate_), at, until);
}

void Bound::AdvanceWindow(Instant wall) {
  if (align_ == algorithm::Align::kFirstHit) return;
  const int64_t window = align_ == algorithm::Align::kEpoch ? wall.ns / period_ : wall >= calendar_edge_ ? 1 : 0;
  if (window == window_) return;
  previous_ = window == window_ + 1 ? current_ : 0;
  current_ = 0;
  window_ = window;
}

bool Bound::Admit(uint64_t cost, Duration at, Instant wall) {
  Advance(at);
  const Level scaled = Level{static_cast<int64_t>(cost)} * period_;
  if (IsMeter()) {
    level_ -= scaled;
    return level_ >= 0;
  }
  AdvanceWindow(wall);
  current_ += cost;
  if (align_ == algorithm::Align::kFirstHit && cost > 0 && wall >= until_ && extra_ == 0 && outage_ == 0) return false;
  Level used = Level{static_cast<int64_t>(current_)} * period_;
  if (algorithm_ == Algorithm::kSlidingWindowCounter) {
    used += Level{static_cast<int64_t>(previous_)} * (period_ - wall.ns % period_);
  }
  return used <= capacity_ + extra_ + outage_;
}

void Bound::OnWindow(Instant until, Instant wall) {
  if (until == until_ || until <= wall) return;
  if (wall >= until_) current_ = 0;
  until_ = until;
}

void Bound::Refund(uint64_t cost, Duration at, Instant wall) {
  Advance(at);
  level_ =
      std::max(level_, std::min(level_ + Level{static_cast<int64_t>(cost)} * period_, capacity_ + extra_ + outage_));
  AdvanceWindow(wall);
  current_ -= std::min(current_, cost);
}

}  // namespace headgate::simulation
