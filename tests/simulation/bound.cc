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

// While a kind changes: so long that a rate is rounded up by nothing that shows.
constexpr int64_t kChangingPeriod = Duration(std::chrono::hours(1000)).count();

bool IsCalendar(algorithm::Align align) {
  return align == algorithm::Align::kCalendarMonth || align == algorithm::Align::kCalendarYear;
}

// Requests in the period of a change, rounded up.
uint64_t RateOf(const algorithm::LimitSpec& spec) {
  const Duration period = IsCalendar(spec.align) ? std::chrono::hours(24 * 28) : spec.period;
  const __int128 scaled = static_cast<__int128>(spec.requests) * kChangingPeriod;
  return static_cast<uint64_t>(scaled / period.count()) + 1;
}

}  // namespace

bool IsSameKind(const algorithm::LimitSpec& a, const algorithm::LimitSpec& b) {
  const auto is_meter = [](Algorithm x) { return x == Algorithm::kTokenBucket || x == Algorithm::kLeakyBucket; };
  return (a.algorithm == b.algorithm || (is_meter(a.algorithm) && is_meter(b.algorithm))) && a.align == b.align &&
         (IsCalendar(a.align) || a.period == b.period);
}

Bound::Bound(const algorithm::Limit& limit, Instant calendar_edge)
    : algorithm_(limit.algorithm()),
      period_(std::max<int64_t>(1, limit.spec().period.count())),
      level_(Level{static_cast<int64_t>(limit.capacity())} * period_),
      capacity_(level_),
      full_from_(level_),
      rate_(limit.spec().requests),
      outage_rate_(rate_),
      spec_(limit.spec()),
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

void Bound::Widen(const algorithm::Limit& limit, Duration at, Instant wall) {
  if (!IsSameKind(spec_, limit.spec())) return BeginKindChange(limit, at, wall);
  const Level capacity = Level{static_cast<int64_t>(limit.capacity())} * period_;
  Advance(at);
  full_from_ = std::min(capacity_, capacity);
  extra_ += second_capacities_ * std::max<Level>(0, capacity - capacity_);
  capacity_ = std::max(capacity_, capacity);
  rate_ = outage_rate_ = std::max(rate_, limit.spec().requests);
}

void Bound::Narrow(const algorithm::Limit& limit, Duration at) {
  Advance(at);
  if (changing_) EndKindChange(limit);
  spec_ = limit.spec();
  full_from_ = capacity_ = Level{static_cast<int64_t>(limit.capacity())} * period_;
  rate_ = outage_rate_ = limit.spec().requests;
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
  Level more = Level{std::max(Duration(0), at - since).count()} * static_cast<int64_t>(outage_rate_);
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

// ---- A change of kind

void Bound::BeginKindChange(const algorithm::Limit& limit, Duration at, Instant wall) {
  Advance(at);
  AdvanceWindow(wall);
  const bool first_hit = align_ == algorithm::Align::kFirstHit;
  // A window that is not open may begin, and end, at any time.
  const Duration ends = first_hit ? at + std::max(Duration(0), until_ - wall) : at;
  if (!IsMeter()) level_ = capacity_ + extra_ + outage_ - Used(wall);
  Rescale(kChangingPeriod);
  changing_.emplace();
  rate_ = outage_rate_ = 0;
  AddReturns((*changing_)[0], spec_, ends, wall);
  AddReturns((*changing_)[1], limit.spec(), at + limit.spec().period, wall);
  const Level capacity = Level{static_cast<int64_t>(limit.capacity())} * period_;
  const Level more = std::max<Level>(0, capacity - capacity_);
  level_ += more;
  extra_ += second_capacities_ * more;
  capacity_ += more;
  // Windows that begin with their first hit may end later than reckoned here, and what they give back with them.
  for (const Returns& returns : *changing_) {
    if (returns.align == algorithm::Align::kFirstHit) capacity_ += returns.requests;
  }
  full_from_ = capacity_;
  algorithm_ = Algorithm::kTokenBucket;
}

void Bound::AddReturns(Returns& returns, const algorithm::LimitSpec& spec, Duration next, Instant wall) {
  outage_rate_ += RateOf(spec);
  if (spec.algorithm != Algorithm::kFixedWindow) {
    rate_ += RateOf(spec);
    return;
  }
  returns = {.requests = Level{static_cast<int64_t>(spec.requests)} * period_,
             .align = spec.align,
             .period = std::max<int64_t>(1, spec.period.count()),
             .window = 0,
             .next = next};
  returns.window = WindowAt(returns.align, returns.period, wall);
}

void Bound::ReturnWindows(Duration at, Instant wall) {
  const Level top = std::max(level_, capacity_ + outage_ + extra_);
  for (Returns& returns : *changing_) {
    if (returns.requests == 0) continue;
    int64_t ended = 0;
    if (returns.align != algorithm::Align::kFirstHit) {
      ended = std::abs(WindowAt(returns.align, returns.period, wall) - returns.window);
      returns.window = WindowAt(returns.align, returns.period, wall);
    } else if (at >= returns.next) {
      ended = (at - returns.next).count() / returns.period + 1;
      returns.next += Duration(ended * returns.period);
    }
    // Those of a second server too.
    level_ = std::min(top, level_ + (1 + second_capacities_) * ended * returns.requests);
  }
}

// A window begins, so that nothing is counted in it.
void Bound::EndKindChange(const algorithm::Limit& limit) {
  changing_.reset();
  algorithm_ = limit.algorithm();
  align_ = limit.spec().align;
  Rescale(std::max<int64_t>(1, limit.spec().period.count()));
  until_ = Instant::FromNanos(0);
  window_ = -1;
  current_ = previous_ = 0;
}

void Bound::Rescale(int64_t period) {
  for (Level* level : {&level_, &capacity_, &full_from_, &extra_, &outage_}) {
    const Level part = *level % period_ * period;
    *level = *level / period_ * period + part / period_ + (part % period_ > 0 ? 1 : 0);
  }
  period_ = period;
}

int64_t Bound::WindowAt(algorithm::Align align, int64_t period, Instant wall) const {
  if (align == algorithm::Align::kEpoch) return wall.ns / period;
  return wall >= calendar_edge_ ? 1 : 0;
}

// Of a window, at present.
Bound::Level Bound::Used(Instant wall) const {
  if (align_ == algorithm::Align::kFirstHit && wall >= until_) return 0;
  Level used = Level{static_cast<int64_t>(current_)} * period_;
  if (algorithm_ == Algorithm::kSlidingWindowCounter) {
    used += Level{static_cast<int64_t>(previous_)} * (period_ - wall.ns % period_);
  }
  return used;
}

// ---- What is let through

uint64_t Bound::Room(Duration at, Instant wall) {
  Advance(at);
  AdvanceWindow(wall);
  if (changing_) ReturnWindows(at, wall);
  const Level room = IsMeter() ? level_ : capacity_ - Used(wall);
  return room > 0 ? static_cast<uint64_t>(room / period_) : 0;
}

void Bound::AllowTime(Duration step, Duration at, Duration until) {
  bool window = !IsMeter() || step < Duration(0);
  if (changing_) {
    for (Returns& returns : *changing_) {
      if (returns.requests == 0) continue;
      window = true;
      returns.next = std::min(returns.next, at);
    }
  }
  Allow(window ? capacity_ : Level{step.count()} * static_cast<int64_t>(rate_), at, until);
}

void Bound::AdvanceWindow(Instant wall) {
  if (align_ == algorithm::Align::kFirstHit) return;
  const int64_t window = WindowAt(align_, period_, wall);
  if (window == window_) return;
  previous_ = window == window_ + 1 ? current_ : 0;
  current_ = 0;
  window_ = window;
}

bool Bound::Admit(uint64_t cost, Duration at, Instant wall) {
  Advance(at);
  if (changing_) ReturnWindows(at, wall);
  const Level scaled = Level{static_cast<int64_t>(cost)} * period_;
  if (IsMeter()) {
    level_ -= scaled;
    return level_ >= 0;
  }
  AdvanceWindow(wall);
  current_ += cost;
  if (align_ == algorithm::Align::kFirstHit && cost > 0 && wall >= until_ && extra_ == 0 && outage_ == 0) return false;
  return Used(wall) <= capacity_ + extra_ + outage_;
}

void Bound::OnWindow(Instant until, Instant wall) {
  if (changing_ || until == until_ || until <= wall) return;
  if (wall >= until_) current_ = 0;
  until_ = until;
}

void Bound::Refund(uint64_t cost, Duration at, Instant wall) {
  Advance(at);
  if (changing_) ReturnWindows(at, wall);
  level_ =
      std::max(level_, std::min(level_ + Level{static_cast<int64_t>(cost)} * period_, capacity_ + extra_ + outage_));
  AdvanceWindow(wall);
  current_ -= std::min(current_, cost);
}

}  // namespace headgate::simulation
