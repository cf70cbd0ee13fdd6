#include "tests/capacity/overload.h"

#include <algorithm>
#include <utility>

namespace headgate::capacity {

using base::Duration;
using base::Instant;
using std::chrono::milliseconds;

namespace {

Duration Interval(double per_second) { return Duration(static_cast<int64_t>(1e9 / per_second)); }

}  // namespace

double Counts::Goodput() const {
  return static_cast<double>(answered) / std::chrono::duration<double>(time).count();
}

Duration Counts::Percentile(uint32_t percent) {
  if (latencies.empty()) return Duration(0);
  const size_t index = (latencies.size() - 1) * percent / 100;
  std::nth_element(latencies.begin(), latencies.begin() + static_cast<ptrdiff_t>(index),
                   latencies.end());
  return latencies[index];
}

Overload::Overload(const OverloadOptions& options, Guard& guard)
    : options_(options),
      guard_(guard),
      upstream_(options.upstream, options.seed * 2 + 1),
      random_(options.seed * 2) {
  SetPerSecond(options.per_second);
}

void Overload::SetPerSecond(double per_second) {
  options_.per_second = per_second;
  next_arrival_ =
      per_second > 0 ? now_ + DrawExponential(Interval(per_second), random_) : base::kInstantMax;
}

void Overload::Run(Duration time, const std::function<void()>& each_100_ms) {
  const Instant end = now_ + time;
  while (now_ < end) {
    RunUntil(std::min(end, now_ + milliseconds(100)));
    each_100_ms();
  }
}

Counts Overload::TakeCounts() {
  counts_.time = now_ - std::exchange(counts_since_, now_);
  return std::exchange(counts_, Counts{});
}

void Overload::RunUntil(Instant until) {
  while (true) {
    const Instant upstream_at = upstream_.NextAt();
    const Instant next = std::min(next_arrival_, upstream_at);
    if (next > until) break;
    now_ = next;
    if (next_arrival_ <= upstream_at) {
      Arrive();
      next_arrival_ = now_ + DrawExponential(Interval(options_.per_second), random_);
      continue;
    }
    answers_.clear();
    upstream_.Step(answers_);
    for (const Answer& answer : answers_) End(answer);
  }
  now_ = until;
}

void Overload::Arrive() {
  ++counts_.arrived;
  if (in_flight_ >= guard_.limit()) {
    ++counts_.refused_by_limit;
    return guard_.OnRefused(RefusedBy::kLimit, now_);
  }
  if (!PoolAdmits() && !guard_.MayExceedPool(now_)) {
    ++counts_.refused_by_pool;
    return guard_.OnRefused(RefusedBy::kPool, now_);
  }
  ++counts_.sent;
  ++in_flight_;
  guard_.OnSent(now_);
  const uint64_t request = sent_at_.size();
  sent_at_.push_back(now_);
  if (upstream_.OnRequest(request, now_)) End({.request = request, .failed = true});
}

bool Overload::PoolAdmits() {
  const auto per_second = guard_.PerSecond();
  if (options_.pool == Pool::kNone || !per_second) return true;
  if (options_.pool == Pool::kPaced) {
    if (now_ < paced_next_) return false;
    // Up to 10 ms of it may come at once.
    paced_next_ = std::max(paced_next_, now_ - milliseconds(10)) + Interval(*per_second);
    return true;
  }
  if (!cycle_known_ || now_ - cycle_start_ >= options_.cycle) {
    cycle_known_ = true;
    cycle_start_ = now_;
    cycle_left_ =
        static_cast<uint64_t>(*per_second * std::chrono::duration<double>(options_.cycle).count());
  }
  if (cycle_left_ == 0) return false;
  --cycle_left_;
  return true;
}

void Overload::End(const Answer& answer) {
  --in_flight_;
  const Instant sent_at = sent_at_[answer.request];
  if (answer.failed) {
    ++counts_.failed;
  } else {
    ++counts_.answered;
    counts_.latencies.push_back(now_ - sent_at);
  }
  guard_.OnEnd(answer.failed ? RequestEnd::kFailed : RequestEnd::kAnswered, sent_at, now_);
}

}  // namespace headgate::capacity
