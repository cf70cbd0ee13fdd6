#include "tests/simulation/bound.h"

#include <algorithm>
#include <chrono>

namespace headgate::simulation {

using algorithm::Algorithm;
using base::Duration;
using base::Instant;

namespace {

// After this time, no instance is in the outage any more. A request that is not admitted during the
// outage cannot use its allowance later; in a window it can until the window ends.
constexpr Duration kOutageForgotten = std::chrono::seconds(3);

// The period used while the kind changes. It is long, so that rounding a rate up has no visible
// effect.
constexpr int64_t kChangingPeriod = Duration(std::chrono::hours(1000)).count();

// The requests of a limit in one kChangingPeriod, rounded up.
uint64_t RateOf(const algorithm::LimitSpec& spec) {
  const Duration period = IsCalendar(spec.align) ? std::chrono::hours(24 * 28) : spec.period;
  const __int128 scaled = static_cast<__int128>(spec.requests) * kChangingPeriod;
  return static_cast<uint64_t>(scaled / period.count()) + 1;
}

}  // namespace

bool IsSameKind(const algorithm::LimitSpec& a, const algorithm::LimitSpec& b) {
  return (a.algorithm == b.algorithm ||
          (IsTokenBucket(a.algorithm) && IsTokenBucket(b.algorithm))) &&
         a.align == b.align && (IsCalendar(a.align) || a.period == b.period);
}

uint64_t CapacityOf(const algorithm::Limit& limit) {
  if (limit.denies_all()) return 0;
  return limit.capacity() + (limit.algorithm() == Algorithm::kLeakyBucketQueue ? 1 : 0);
}

bool Bound::IsCalendar() const { return !changing_ && algorithm::IsCalendar(align_); }

Bound::Bound(const algorithm::Limit& limit)
    : algorithm_(limit.algorithm()),
      period_(std::max<int64_t>(1, limit.spec().period.count())),
      level_(Level{static_cast<int64_t>(CapacityOf(limit))} * period_),
      capacity_(level_),
      full_from_(level_),
      rate_(limit.spec().requests),
      outage_rate_(rate_),
      spec_(limit.spec()),
      align_(limit.spec().align) {}

void Bound::Advance(Duration at) {
  const Level top = capacity_ + outage_ + (seen_ < extra_until_ ? extra_ : 0);
  Duration passed = at - seen_;
  if (seen_ < second_until_) passed += std::min(at, second_until_) - seen_;
  seen_ = at;
  level_ =
      std::min(std::max(top, level_), level_ + Level{passed.count()} * static_cast<int64_t>(rate_));
  if (at >= extra_until_) {
    extra_ = second_capacities_ = 0;
    level_ = std::min(level_, capacity_ + outage_);
  }
  const Duration kept = kOutageForgotten + Duration(IsMeter() ? 0 : 2 * period_);
  if (outage_ > 0 && !IsCalendar() && at > outage_until_ + kept) EndOutage();
  for (; !hits_.empty() && hits_.front().at + Duration(period_) <= at; hits_.pop_front()) {
    current_ -= hits_.front().cost;
  }
  if (level_ >= full_from_ + outage_) level_ = std::max(level_, capacity_);
}

void Bound::Widen(const algorithm::Limit& limit, Duration at, Instant wall) {
  if (!IsSameKind(spec_, limit.spec())) return BeginKindChange(limit, at, wall);
  const Level capacity = Level{static_cast<int64_t>(CapacityOf(limit))} * period_;
  Advance(at);
  const bool is_queue = algorithm_ == Algorithm::kLeakyBucketQueue;
  const Level larger = std::max(capacity_, capacity) + (is_queue ? OfShorterQueue(limit) : 0);
  const Level more = std::max<Level>(0, larger - capacity_);
  // A queue keeps its free_at, so the additional capacity can be used at once.
  level_ += (second_capacities_ + (is_queue ? 1 : 0)) * more;
  extra_ += second_capacities_ * more;
  // The shares of the instances grow as well.
  if (IsCalendar() || IsLog()) outage_ += outage_ > 0 ? more : 0;
  full_from_ = is_queue ? larger : std::min(capacity_, capacity);
  capacity_ = larger;
  rate_ = outage_rate_ = std::max(rate_, limit.spec().requests);
}

// The bound while two limits use one free_at. Each request occupies 1/rate of time, and passes
// while the occupied time is at most capacity/rate. If the shorter queue has the higher rate, a
// request that it admits first occupies less time than one that the longer queue admits, so the
// longer queue can then admit more requests than alone.
Bound::Level Bound::OfShorterQueue(const algorithm::Limit& limit) const {
  struct Queue {
    Level capacity;
    Level rate;
  };
  Queue shorter{capacity_, static_cast<int64_t>(rate_)};
  Queue longer{Level{static_cast<int64_t>(CapacityOf(limit))} * period_,
               static_cast<int64_t>(limit.spec().requests)};
  if (shorter.rate == 0 || longer.rate == 0) return 0;
  if (shorter.capacity * longer.rate > longer.capacity * shorter.rate) std::swap(shorter, longer);
  if (shorter.rate <= longer.rate) return 0;
  // The larger capacity of the two, which may be that of the shorter queue.
  const Level at_once =
      longer.capacity + shorter.capacity - shorter.capacity * longer.rate / shorter.rate;
  return at_once - std::max(shorter.capacity, longer.capacity);
}

void Bound::Narrow(const algorithm::Limit& limit, Duration at, Instant wall) {
  See(at, wall);
  if (changing_) EndKindChange(limit);
  spec_ = limit.spec();
  full_from_ = capacity_ = Level{static_cast<int64_t>(CapacityOf(limit))} * period_;
  rate_ = outage_rate_ = limit.spec().requests;
  level_ = std::min(level_, capacity_ + extra_ + outage_);
}

// Forgets requests that were admitted under a larger limit and exceed the present capacity.
void Bound::ForgiveExcess() {
  const Level excess = IsMeter() ? 0 : Used(wall_) - (capacity_ + extra_ + outage_);
  if (excess <= 0) return;
  const uint64_t of_current =
      std::min(static_cast<uint64_t>((excess + period_ - 1) / period_), current_);
  current_ -= of_current;
  for (uint64_t left = of_current; left > 0 && !hits_.empty();) {
    Hit& oldest = hits_.front();
    const uint64_t part = std::min(left, oldest.cost);
    left -= part;
    oldest.cost -= part;
    if (oldest.cost == 0) hits_.pop_front();
  }
  const Level rest = excess - Level{static_cast<int64_t>(of_current)} * period_;
  if (rest <= 0 || algorithm_ != Algorithm::kSlidingWindowCounter) return;
  const Level weight = period_ - wall_.ns % period_;
  previous_ -= std::min(previous_, static_cast<uint64_t>((rest + weight - 1) / weight));
}

void Bound::Allow(Level tokens, Duration at, Duration until) {
  Advance(at);
  if (tokens > 0) ForgiveExcess();
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
  // Windows that begin with their first hit: all windows of the second server that may overlap one
  // of ours.
  const bool first_hit = align_ == algorithm::Align::kFirstHit;
  const Level more = first_hit ? 2 + (stops - at).count() / period_ : 1;
  second_capacities_ += more;
  extra_ += more * capacity_;
}

void Bound::AllowOutage(Duration from, Duration at, uint32_t instances) {
  Advance(at);
  const bool adds_once = IsCalendar() || IsLog();
  if (outage_ > 0 && from > outage_until_ && !adds_once) EndOutage();
  const Duration since = outage_ > 0 ? outage_until_ : std::min(from, at);
  Level more = adds_once ? 0
                         : Level{std::max(Duration(0), at - since).count()} *
                               static_cast<int64_t>(outage_rate_);
  if (outage_ == 0) more += OutageAtOnce(instances);
  outage_ += more;
  level_ += more;
  outage_until_ = std::max(outage_until_, at);
}

Bound::Level Bound::OutageAtOnce(uint32_t instances) const {
  const Level each = Level{instances} * period_;
  if (algorithm_ == Algorithm::kLeakyBucketQueue) return std::max(capacity_ - period_, each) + each;
  return std::max(capacity_, each);
}

void Bound::AllowShare(uint32_t instances, Duration at) {
  if (outage_ == 0) return;
  Advance(at);
  const Level share =
      capacity_ / instances + (algorithm_ == Algorithm::kLeakyBucketQueue ? 2 : 1) * period_;
  outage_ += share;
  level_ += share;
}

void Bound::EndOutage() {
  outage_ = 0;
  level_ = std::min(level_, std::max(capacity_, full_from_) + extra_);
}

// ---- A change of kind

void Bound::BeginKindChange(const algorithm::Limit& limit, Duration at, Instant wall) {
  See(at, wall);
  const bool first_hit = align_ == algorithm::Align::kFirstHit;
  // A window that is not open may begin and end at any time.
  const Duration ends = first_hit ? at + std::max(Duration(0), until_ - wall) : at;
  if (!IsMeter()) level_ = capacity_ + extra_ + outage_ - Used(wall);
  Rescale(kChangingPeriod);
  changing_.emplace();
  rate_ = outage_rate_ = 0;
  AddReturns((*changing_)[0], spec_, ends, wall);
  AddReturns((*changing_)[1], limit.spec(), at + limit.spec().period, wall);
  const Level capacity = Level{static_cast<int64_t>(CapacityOf(limit))} * period_;
  const Level more = std::max<Level>(0, capacity - capacity_);
  level_ += (1 + second_capacities_) * more;
  extra_ += second_capacities_ * more;
  capacity_ += more;
  // Requests that come back at any time may come later than computed here.
  for (const Returns& returns : *changing_) {
    if (returns.any_time) capacity_ += returns.requests;
  }
  full_from_ = capacity_;
  algorithm_ = Algorithm::kTokenBucket;
  hits_.clear();
}

void Bound::AddReturns(Returns& returns, const algorithm::LimitSpec& spec, Duration next,
                       Instant wall) {
  outage_rate_ += RateOf(spec);
  const bool log = spec.algorithm == Algorithm::kSlidingWindowLog;
  if (spec.algorithm != Algorithm::kFixedWindow && !log) {
    rate_ += RateOf(spec);
    return;
  }
  returns = {.requests = Level{static_cast<int64_t>(spec.requests)} * period_,
             .any_time = log || spec.align == algorithm::Align::kFirstHit,
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
    if (!returns.any_time) {
      ended = std::abs(WindowAt(returns.align, returns.period, wall) - returns.window);
      returns.window = WindowAt(returns.align, returns.period, wall);
    } else if (at >= returns.next) {
      ended = (at - returns.next).count() / returns.period + 1;
      returns.next += Duration(ended * returns.period);
    }
    // A second server also gives its requests back.
    level_ = std::min(top, level_ + (1 + second_capacities_) * ended * returns.requests);
  }
}

// Called when a window begins, so nothing is counted in it yet.
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

// Uses the standard library's calendar for months and years. The result may grow by more than one,
// because a machine may sleep across several ends.
int64_t Bound::WindowAt(algorithm::Align align, int64_t period, Instant wall) {
  if (!algorithm::IsCalendar(align)) return wall.ns / period;
  const std::chrono::sys_time<Duration> time{Duration(wall.ns)};
  if (align == algorithm::Align::kCalendarWeek) {
    // The epoch is a Thursday, the fourth day of a week.
    return (std::chrono::floor<std::chrono::days>(time).time_since_epoch().count() + 3) / 7;
  }
  const std::chrono::year_month_day day{std::chrono::floor<std::chrono::days>(time)};
  const int64_t year{int{day.year()}};
  return align == algorithm::Align::kCalendarYear ? year : 12 * year + unsigned{day.month()} - 1;
}

// The requests of a window, or of a log's last period.
Bound::Level Bound::Used(Instant wall) const {
  if (align_ == algorithm::Align::kFirstHit && wall >= until_) return 0;
  Level used = Level{static_cast<int64_t>(current_)} * period_;
  if (algorithm_ == Algorithm::kSlidingWindowCounter) {
    used += Level{static_cast<int64_t>(previous_)} * (period_ - wall.ns % period_);
  }
  return used;
}

// ---- Admissions

void Bound::See(Duration at, Instant wall) {
  Advance(at);
  if (changing_) ReturnWindows(at, wall);
  AdvanceWindow(wall);
  wall_ = wall;
}

uint64_t Bound::Room(Duration at, Instant wall) {
  See(at, wall);
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
  if (align_ == algorithm::Align::kFirstHit || IsLog()) return;
  const int64_t window = WindowAt(align_, period_, wall);
  if (window == window_) return;
  if (IsCalendar() && outage_ > 0 && window_ > 0) {
    // While an outage lasts, an instance whose clock is late may still admit the rest of its share
    // of the old window.
    const Level left = std::clamp<Level>(capacity_ + extra_ + outage_ - Used(wall_), 0, outage_);
    EndOutage();
    if (seen_ <= outage_until_ + kOutageForgotten) outage_ = capacity_ + left;
  }
  previous_ = window == window_ + 1 ? current_ : 0;
  current_ = 0;
  window_ = window;
}

bool Bound::Admit(uint64_t cost, Duration at, Instant wall) {
  See(at, wall);
  if (IsMeter()) {
    level_ -= Level{static_cast<int64_t>(cost)} * period_;
    return level_ >= 0;
  }
  current_ += cost;
  if (IsLog() && cost > 0) hits_.push_back({.at = at, .cost = cost});
  if (align_ == algorithm::Align::kFirstHit && cost > 0 && wall >= until_ && extra_ == 0 &&
      outage_ == 0)
    return false;
  return Used(wall) <= capacity_ + extra_ + outage_;
}

void Bound::OnWindow(Instant until, Instant wall) {
  if (changing_ || until == until_ || until <= wall) return;
  if (wall >= until_) current_ = 0;
  until_ = until;
}

void Bound::Refund(uint64_t cost, Duration at, Instant wall) {
  See(at, wall);
  level_ = std::max(level_, std::min(level_ + Level{static_cast<int64_t>(cost)} * period_,
                                     capacity_ + extra_ + outage_));
  current_ -= std::min(current_, cost);
  while (cost > 0 && !hits_.empty()) {
    Hit& newest = hits_.back();
    const uint64_t part = std::min(cost, newest.cost);
    cost -= part;
    newest.cost -= part;
    if (newest.cost == 0) hits_.pop_back();
  }
}

void Bound::Undo(uint64_t cost, Taken taken, Duration at, Instant wall) {
  See(at, wall);
  if (IsMeter()) {
    // The store's clock shows whole microseconds, so the time between two readings may be a little
    // shorter there. If it was set back, it does not show how long ago the take was.
    const Duration between = std::max(
        Duration(0), std::min(at - taken.at, wall - taken.wall) - std::chrono::microseconds(1));
    const Level refilled = Level{between.count()} * static_cast<int64_t>(rate_);
    const Level missing = Level{static_cast<int64_t>(cost)} * period_ - refilled;
    level_ = std::max(level_,
                      std::min(level_ + std::max<Level>(0, missing), capacity_ + extra_ + outage_));
    return;
  }
  if (IsLog()) {
    for (Hit& hit : hits_) {
      if (hit.at != taken.at) continue;
      const uint64_t part = std::min(cost, hit.cost);
      cost -= part;
      hit.cost -= part;
      current_ -= part;
    }
    return;
  }
  if (align_ == algorithm::Align::kFirstHit) {
    if (taken.wall >= until_ - spec_.period) current_ -= std::min(current_, cost);
    return;
  }
  const int64_t window = WindowAt(align_, period_, taken.wall);
  if (window == window_) current_ -= std::min(current_, cost);
  if (window == window_ - 1) previous_ -= std::min(previous_, cost);
}

}  // namespace headgate::simulation
