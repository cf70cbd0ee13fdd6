#include "tests/model/reference_model.h"

#include <algorithm>
#include <numeric>

namespace headgate::model {
namespace {

using algorithm::Algorithm;
using algorithm::Align;
using algorithm::Cost;
using algorithm::Decision;
using algorithm::kNever;
using algorithm::LimitSpec;

constexpr Int kCountMax = 4'294'967'295;
constexpr int64_t kOwedMost = 4'611'686'018'427'387'903;
constexpr int64_t kDayNs = 86'400'000'000'000;

base::Duration Span(Int ns) { return base::Duration(static_cast<int64_t>(ns)); }
base::Duration RoundedUp(const Rational& ns) { return Span(ns.Ceil()); }
uint64_t Number(Int value) { return static_cast<uint64_t>(value < 0 ? 0 : value); }

bool IsLeap(int year) { return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0; }

struct Window {
  int64_t start;
  int64_t end;
};

// Counts calendar periods from 1970 until one ends after `t`.
Window CalendarWindow(Align align, int64_t t) {
  if (align == Align::kCalendarWeek) {
    // The first Monday is 5 January 1970.
    const int64_t first = 4 * kDayNs;
    const int64_t start = t < first ? first - 7 * kDayNs : t - (t - first) % (7 * kDayNs);
    return {start, start + 7 * kDayNs};
  }
  constexpr int kMonthDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  int64_t start = 0;
  for (int year = 1970;; ++year) {
    const int64_t year_end = start + (IsLeap(year) ? 366 : 365) * kDayNs;
    if (t >= year_end) {
      start = year_end;
      continue;
    }
    if (align == Align::kCalendarYear) return {start, year_end};
    for (int month = 0;; ++month) {
      const int64_t month_end =
          start + (kMonthDays[month] + (month == 1 && IsLeap(year) ? 1 : 0)) * kDayNs;
      if (t < month_end) return {start, month_end};
      start = month_end;
    }
  }
}

}  // namespace

bool ReferenceBucket::IsTokenBucket() const {
  return spec_.algorithm == Algorithm::kTokenBucket || spec_.algorithm == Algorithm::kLeakyBucket;
}

void ReferenceBucket::Adopt(const LimitSpec& spec) {
  spec_ = spec;
  requests_ = spec.requests;
  period_ = IsCalendar(spec.align) ? 0 : spec.period.count();
  capacity_ = spec.burst ? Int{*spec.burst} : requests_;
  if (requests_ > 0 && period_ > 0) {
    const Int common = std::gcd(spec.requests, static_cast<uint64_t>(period_));
    rate_ = Rational(requests_ / common, period_ / common);
  }
}

void ReferenceBucket::Become(const LimitSpec& spec) {
  Adopt(spec);
  tokens_ = requests_ > 0 ? capacity_ : 0;
  free_at_ = 0;
  window_start_ = window_end_ = 0;
  current_ = previous_ = 0;
  hits_.clear();
}

int64_t ReferenceBucket::Advance(int64_t t) {
  t = std::max(t, last_);
  switch (spec_.algorithm) {
    case Algorithm::kTokenBucket:
    case Algorithm::kLeakyBucket:
      if (requests_ > 0) tokens_ = Min(capacity_, tokens_ + Rational(t - last_) * rate_);
      break;
    case Algorithm::kLeakyBucketQueue:
      break;
    case Algorithm::kFixedWindow:
      if (t >= window_end_) current_ = 0;
      if (spec_.align != Align::kFirstHit) {
        const Window window = period_ > 0 ? Window{t - t % period_, t - t % period_ + period_}
                                          : CalendarWindow(spec_.align, t);
        // A window that was open when the limit changed keeps its end.
        if (t >= window_end_) window_start_ = window.start, window_end_ = window.end;
      }
      break;
    case Algorithm::kSlidingWindowCounter: {
      const int64_t start = t - t % period_;
      if (start > window_start_) {
        previous_ = start - window_start_ == period_ ? current_ : 0;
        current_ = 0;
      }
      window_start_ = start;
      break;
    }
    case Algorithm::kSlidingWindowLog:
      std::erase_if(hits_, [&](const LogHit& hit) { return hit.at <= t - period_; });
      break;
  }
  asked_ = true;
  return last_ = t;
}

Int ReferenceBucket::BlockLength(int n) const {
  const size_t level = std::min<size_t>(static_cast<size_t>(n), spec_.block.size()) - 1;
  return Int{spec_.block.seconds_at(level).count()} * 1'000'000'000;
}

void ReferenceBucket::SayBlocked(Decision& decision, int64_t t) const {
  const auto left = Span(blocked_until_ - t);
  if (!decision.allowed) decision.retry_after = std::max(decision.retry_after, left);
  decision.remaining = 0;
  decision.reset_after = std::max(decision.reset_after, left);
  decision.blocked_for = left;
}

Decision ReferenceBucket::Decide(Cost cost, int64_t t) {
  if (requests_ == 0) {
    return {.allowed = cost == 0, .limit = 0, .retry_after = cost == 0 ? Span(0) : kNever};
  }
  t = Advance(t);
  if (blocks_in_a_row_ > 0 && t < blocked_until_) {
    Decision decision = DecideAlone(0, t);
    decision.allowed = cost == 0;
    decision.retry_after = ReferenceBucket(*this).DecideAlone(cost, t).retry_after;
    SayBlocked(decision, t);
    return decision;
  }
  Decision decision = DecideAlone(cost, t);
  if (decision.allowed) {
    used_since_ = used_since_ || cost > 0;
  } else if (!spec_.block.empty() && decision.retry_after != kNever &&
             (blocks_in_a_row_ == 0 || used_since_)) {
    const bool goes_on =
        blocks_in_a_row_ > 0 && t < blocked_until_ + BlockLength(blocks_in_a_row_ + 1);
    // The last length repeats.
    blocks_in_a_row_ =
        goes_on ? std::min(blocks_in_a_row_ + 1, static_cast<int>(spec_.block.size())) : 1;
    blocked_until_ = t + BlockLength(blocks_in_a_row_);
    used_since_ = false;
    SayBlocked(decision, t);
  }
  return decision;
}

Decision ReferenceBucket::DecideAlone(Cost cost, int64_t t) {
  const auto decide = [&] {
    switch (spec_.algorithm) {
      case Algorithm::kTokenBucket:
      case Algorithm::kLeakyBucket:
        return DecideTokens(cost, t);
      case Algorithm::kLeakyBucketQueue:
        return DecideQueue(cost, t);
      case Algorithm::kFixedWindow:
        return DecideFixedWindow(cost, t);
      case Algorithm::kSlidingWindowCounter:
        return DecideCounter(cost, t);
      case Algorithm::kSlidingWindowLog:
        return DecideLog(cost, t);
    }
    __builtin_unreachable();
  };
  Decision decision = decide();
  decision.overdrawn = IsOverdrawn(t);
  return decision;
}

bool ReferenceBucket::IsOverdrawn(int64_t t) const {
  if (IsTokenBucket()) return tokens_ < 0;
  // Its last turn is later than that of any request that was let in.
  if (IsQueue()) return free_at_ - t > Rational(capacity_ + 1) * Interval();
  if (spec_.algorithm == Algorithm::kSlidingWindowCounter) return Estimate(t) > requests_;
  return current_ > requests_ || LogCount() > requests_;
}

Decision ReferenceBucket::DecideTokens(Int cost, int64_t t) {
  Decision decision{.limit = Number(capacity_)};
  decision.allowed = cost == 0 || tokens_ >= cost || MayOverdraw(t);
  if (decision.allowed) {
    tokens_ = Max(Rational(capacity_) - Rational(kOwedMost) * rate_, tokens_ - cost);
  } else {
    const Int needed = spec_.overdraw ? 0 : cost;
    decision.retry_after =
        needed > capacity_ ? kNever : RoundedUp((Rational(needed) - tokens_) / rate_);
  }
  decision.remaining = Number(Remaining(t));
  decision.reset_after = RoundedUp((Rational(capacity_) - tokens_) / rate_);
  return decision;
}

Decision ReferenceBucket::DecideQueue(Int cost, int64_t t) {
  const Rational start = Max(t, free_at_);
  const Rational wait = start - t;
  const Rational longest = Rational(capacity_) * Interval();
  Decision decision{.limit = Number(capacity_)};
  if (cost > capacity_ + 1) {
    decision.allowed = false;
    decision.retry_after = kNever;
  } else if (cost > 0) {
    const Rational last_wait = wait + Rational(cost - 1) * Interval();
    decision.allowed = last_wait <= longest;
    if (decision.allowed) {
      free_at_ = start + Rational(cost) * Interval();
      decision.wait = RoundedUp(wait);
    } else {
      decision.retry_after = RoundedUp(last_wait - longest);
    }
  }
  decision.remaining = Number(Remaining(t));
  decision.reset_after = RoundedUp(Max(0, free_at_ - t));
  return decision;
}

Decision ReferenceBucket::DecideFixedWindow(Int cost, int64_t t) {
  const bool was_open = t < window_end_;
  Decision decision{.limit = Number(capacity_)};
  decision.allowed = cost == 0 || current_ + cost <= requests_ || MayOverdraw(t);
  if (decision.allowed && cost > 0 && !was_open) window_start_ = t, window_end_ = t + period_;
  const bool open = t < window_end_;
  if (decision.allowed || (spec_.count_denied && open))
    current_ = std::min(current_ + cost, kCountMax);
  if (!decision.allowed) {
    decision.retry_after = cost > capacity_ && !spec_.overdraw ? kNever : Span(window_end_ - t);
  }
  decision.remaining = Number(Remaining(t));
  decision.reset_after = open ? Span(window_end_ - t) : Span(0);
  return decision;
}

Rational ReferenceBucket::Estimate(int64_t t) const {
  const int64_t x = t - window_start_;
  return Rational(previous_) * Rational(period_ - x, period_) + current_;
}

Decision ReferenceBucket::DecideCounter(Int cost, int64_t t) {
  const int64_t x = t - window_start_;
  Decision decision{.limit = Number(capacity_)};
  decision.allowed = cost == 0 || Estimate(t) + cost <= requests_ || MayOverdraw(t);
  if (decision.allowed || spec_.count_denied) current_ = std::min(current_ + cost, kCountMax);
  if (!decision.allowed) {
    // The earliest time at which the same request fits if no other comes. A request fits when
    // weight·(P − x')/P ≤ room, so from x' = P − room·P/weight on. `weight` is that of the previous
    // window: the one before the current window, or later the current window itself.
    auto least_x = [&](Int weight, Int room) {
      return Max(0, Rational(period_) - Rational(room) * period_ / weight).Ceil();
    };
    const Int room = requests_ - (spec_.overdraw ? 0 : cost);
    if (cost > capacity_ && !spec_.overdraw) {
      decision.retry_after = kNever;
    } else if (current_ <= room) {
      decision.retry_after = Span(least_x(previous_, room - current_) - x);
    } else {
      decision.retry_after = Span(period_ - x + least_x(current_, room));
    }
  }
  decision.remaining = Number(Remaining(t));
  decision.reset_after = Span(current_ > 0    ? 2 * Int{period_} - x
                              : previous_ > 0 ? period_ - x
                                              : 0);
  return decision;
}

Int ReferenceBucket::LogCount() const {
  return std::accumulate(hits_.begin(), hits_.end(), Int{0},
                         [](Int sum, const LogHit& hit) { return sum + hit.cost; });
}

void ReferenceBucket::AddHit(int64_t t, Int cost) {
  const Int counted = std::min(cost, kCountMax - LogCount());
  if (counted > 0) hits_.push_back({t, counted});
}

Decision ReferenceBucket::DecideLog(Int cost, int64_t t) {
  Decision decision{.limit = Number(capacity_)};
  decision.allowed = cost == 0 || LogCount() + cost <= requests_ || MayOverdraw(t);
  if (decision.allowed && cost > 0) AddHit(t, cost);
  const Int needed = spec_.overdraw ? 0 : cost;
  if (needed > capacity_) {
    decision.retry_after = kNever;
  } else if (!decision.allowed) {
    Int left = LogCount();
    for (auto hit = hits_.begin(); left + needed > requests_; ++hit) {
      left -= hit->cost;
      decision.retry_after = Span(hit->at + Int{period_} - t);
    }
  }
  decision.remaining = Number(Remaining(t));
  decision.reset_after = hits_.empty() ? Span(0) : Span(hits_.back().at + Int{period_} - t);
  return decision;
}

Int ReferenceBucket::Remaining(int64_t t) const {
  if (requests_ == 0) return 0;
  switch (spec_.algorithm) {
    case Algorithm::kTokenBucket:
    case Algorithm::kLeakyBucket:
      return std::max<Int>(0, tokens_.Floor());
    case Algorithm::kLeakyBucketQueue:
      // The k-th single request is accepted while wait + (k − 1)·T ≤ B·T.
      return std::max<Int>(0, (Rational(capacity_) - Max(0, free_at_ - t) * rate_).Floor() + 1);
    case Algorithm::kFixedWindow:
      return std::max<Int>(0, requests_ - current_);
    case Algorithm::kSlidingWindowCounter:
      return std::max<Int>(0, (Rational(requests_) - Estimate(t)).Floor());
    case Algorithm::kSlidingWindowLog:
      return std::max<Int>(0, requests_ - LogCount());
  }
  __builtin_unreachable();
}

Decision ReferenceBucket::Refund(Cost cost, int64_t t) {
  if (requests_ == 0) return Decide(0, t);
  t = Advance(t);
  if (IsTokenBucket()) tokens_ = Min(capacity_, tokens_ + Int{cost});
  current_ -= std::min<Int>(cost, current_);
  Int hits_left = cost;
  while (hits_left > 0 && !hits_.empty()) {
    const Int drop = std::min(hits_left, hits_.back().cost);
    hits_left -= drop;
    hits_.back().cost -= drop;
    if (hits_.back().cost == 0) hits_.pop_back();
  }
  return Decide(0, t);
}

Decision ReferenceBucket::Undo(Cost cost, int64_t taken_at, int64_t t) {
  if (requests_ == 0) return Decide(0, t);
  t = Advance(t);
  const int64_t s = std::min(taken_at, t);
  if (IsTokenBucket()) {
    const Rational missing = Max(0, Rational(Int{cost}) - Rational(t - s) * rate_);
    tokens_ = Min(capacity_, tokens_ + missing);
  }
  const auto lower = [cost](Int& count) { count -= std::min<Int>(cost, count); };
  if (spec_.algorithm == Algorithm::kFixedWindow && t < window_end_) {
    const int64_t start =
        period_ > 0 ? window_end_ - period_ : CalendarWindow(spec_.align, window_end_ - 1).start;
    if (s >= start) lower(current_);
  }
  if (spec_.algorithm == Algorithm::kSlidingWindowCounter) {
    if (s >= window_start_) lower(current_);
    if (s < window_start_ && s >= window_start_ - period_) lower(previous_);
  }
  Int left = cost;
  for (auto hit = hits_.rbegin(); hit != hits_.rend(); ++hit) {
    if (hit->at != s) continue;
    const Int drop = std::min(left, hit->cost);
    left -= drop;
    hit->cost -= drop;
  }
  std::erase_if(hits_, [](const LogHit& hit) { return hit.cost == 0; });
  return Decide(0, t);
}

Decision ReferenceBucket::Charge(Cost cost, int64_t t) {
  if (requests_ == 0) return Decide(0, t);
  t = Advance(t);
  used_since_ = used_since_ || (cost > 0 && t >= blocked_until_);
  if (IsTokenBucket())
    tokens_ = Max(Rational(capacity_) - Rational(kOwedMost) * rate_, tokens_ - Int{cost});
  if (IsQueue() && cost > 0) {
    free_at_ = Min(Rational(t) + kOwedMost, Max(t, free_at_) + Rational(Int{cost}) * Interval());
  }
  if (spec_.algorithm == Algorithm::kFixedWindow && cost > 0 && t >= window_end_)
    window_start_ = t, window_end_ = t + period_;
  if (spec_.algorithm == Algorithm::kSlidingWindowLog) {
    AddHit(t, Int{cost});
  } else if (!IsBucket()) {
    current_ = std::min(current_ + Int{cost}, kCountMax);
  }
  return Decide(0, t);
}

void ReferenceBucket::Reset() {
  Become(spec_);
  earlier_.clear();
  hides_use_ = false;
  last_ = 0;
  asked_ = false;
  blocks_in_a_row_ = 0;
}

bool ReferenceBucket::AsIfNeverUsed(int64_t t) const {
  t = std::max(t, last_);
  return IsFullUnderAll(t) && !BlockMatters(t);
}

bool ReferenceBucket::BlockMatters(int64_t t) const {
  if (blocks_in_a_row_ == 0 || spec_.block.empty()) return false;
  // With one length, the next block is as long in any case.
  const Int matters = spec_.block.size() > 1 ? BlockLength(blocks_in_a_row_ + 1) : 0;
  return t < blocked_until_ + matters;
}

bool ReferenceBucket::IsFullUnderAll(int64_t t) const {
  const auto is_full = [t](ReferenceBucket bucket) { return bucket.IsFull(t); };
  return is_full(*this) && std::all_of(earlier_.begin(), earlier_.end(), is_full);
}

bool ReferenceBucket::IsFull(int64_t t) {
  t = Advance(t);
  if (IsTokenBucket()) return tokens_ == (requests_ > 0 ? capacity_ : 0);
  if (IsQueue()) return free_at_ <= t;
  if (spec_.align == Align::kFirstHit) return t >= window_end_;
  return current_ == 0 && previous_ == 0 && hits_.empty();
}

Rational ReferenceBucket::OnGrid(const Rational& time) const {
  Int parts = requests_ == 0 ? 1 : requests_;
  if (parts > kCountMax) parts /= std::gcd(spec_.requests, static_cast<uint64_t>(period_));
  return Rational((time * parts).Ceil(), parts);
}

void ReferenceBucket::Change(const LimitSpec& to, int64_t t) {
  if (to == spec_) return;
  if (!asked_) return Become(to);
  t = Advance(t);
  const int blocks = BlockMatters(t) ? blocks_in_a_row_ : 0;
  ChangeAlone(to, t);
  blocks_in_a_row_ = std::min(blocks, static_cast<int>(to.block.size()));
  if (blocks_in_a_row_ == 0) return;
  blocked_until_ = std::min(blocked_until_, t + BlockLength(blocks_in_a_row_));
  asked_ = true;
  last_ = t;
}

void ReferenceBucket::ChangeAlone(const LimitSpec& to, int64_t t) {
  if (IsFullUnderAll(t)) {
    spec_ = to;
    return Reset();
  }
  const auto is_full = [t](ReferenceBucket bucket) { return bucket.IsFull(t); };
  const bool remembers = !std::all_of(earlier_.begin(), earlier_.end(), is_full);
  const bool hid_use = remembers && hides_use_;
  const Int had = capacity_;
  ReferenceBucket replaced = *this;
  replaced.earlier_.clear();
  earlier_.push_back(std::move(replaced));
  const bool was_token_bucket = IsTokenBucket();
  const bool same_period = to.align == spec_.align && (period_ == 0 || to.period == spec_.period);
  const Algorithm was = spec_.algorithm;
  const Int remaining = Remaining(t);
  Adopt(to);
  const bool mints = hid_use && !IsBucket() && capacity_ > had;
  const bool kept =
      same_period && !mints && (was == to.algorithm || (was_token_bucket && IsTokenBucket()));
  hides_use_ = hid_use || (!kept && (remembers || capacity_ < had));
  if (IsTokenBucket() && requests_ == 0) {
    Become(to);
  } else if (kept && IsTokenBucket()) {
    const Rational missing = Max(0, Rational(capacity_) - tokens_) / rate_;
    tokens_ = Rational(capacity_) - Min(kOwedMost, OnGrid(missing)) * rate_;
  } else if (kept && IsQueue()) {
    free_at_ = OnGrid(free_at_);
  } else if (!kept) {
    HEADGATE_CHECK(!IsQueue() || requests_ > 0);
    Become(to);
    if (IsTokenBucket()) tokens_ = std::min(remaining, capacity_);
    if (IsQueue() && remaining <= capacity_)
      free_at_ = Rational(t) + Rational(capacity_ + 1 - remaining) * Interval();
    if (!IsBucket()) {
      Advance(t);
      if (const Int used = std::max<Int>(0, capacity_ - remaining); used > 0)
        DecideAlone(static_cast<Cost>(used), t);
    }
  }
}

}  // namespace headgate::model
