#include "headgate/testing/store_mirror.h"

#include <algorithm>

#include <fmt/format.h>

#include "headgate/algorithm/decide.h"
#include "headgate/base/check.h"
#include "headgate/rule/block_words.h"
#include "headgate/rule/duration.h"

namespace headgate::testing {
namespace {

using algorithm::Algorithm;
using algorithm::Align;
using algorithm::Decision;
using algorithm::LimitSpec;
using base::Duration;
using base::Instant;
using store::Operation;

constexpr Duration kSecond{1'000'000'000};
constexpr size_t kKeys = 12;

LimitSpec Blocking(LimitSpec spec) {
  for (const uint32_t seconds : {3u, 10u, 40u})
    spec.block.Add(algorithm::BlockLengths::Seconds(seconds));
  return spec;
}

// The unit of pauses. Calendar windows have no fixed period, so use a week: ten thousand steps from
// today then stay before base::kInstantMax.
Duration PeriodOf(const LimitSpec& spec) {
  return spec.period.count() > 0 ? spec.period : 7 * 86'400 * kSecond;
}

}  // namespace

std::vector<LimitSpec> ContractLimits() {
  return {
      {.algorithm = Algorithm::kTokenBucket, .requests = 10, .period = 20 * kSecond},
      {.algorithm = Algorithm::kTokenBucket, .requests = 7, .period = 11 * kSecond, .burst = 3},
      {.algorithm = Algorithm::kTokenBucket,
       .requests = 3'000'000'000,
       .period = kSecond,
       .burst = 5},
      {.algorithm = Algorithm::kLeakyBucket, .requests = 5, .period = 20 * kSecond, .burst = 8},
      {.algorithm = Algorithm::kLeakyBucketQueue,
       .requests = 3,
       .period = 20 * kSecond,
       .burst = 4},
      {.algorithm = Algorithm::kFixedWindow, .requests = 10, .period = 20 * kSecond},
      {.algorithm = Algorithm::kFixedWindow,
       .requests = 4,
       .period = 20 * kSecond,
       .count_denied = true},
      {.algorithm = Algorithm::kFixedWindow,
       .requests = 6,
       .period = 20 * kSecond,
       .align = Align::kFirstHit},
      {.algorithm = Algorithm::kFixedWindow, .requests = 9, .align = Align::kCalendarMonth},
      {.algorithm = Algorithm::kFixedWindow, .requests = 8, .align = Align::kCalendarWeek},
      {.algorithm = Algorithm::kFixedWindow,
       .requests = 7,
       .align = Align::kCalendarDay,
       .zone = *base::TimeZone::Load("America/New_York")},
      {.algorithm = Algorithm::kFixedWindow,
       .requests = 9,
       .align = Align::kCalendarMonth,
       .zone = *base::TimeZone::Load("Asia/Kathmandu")},
      {.algorithm = Algorithm::kSlidingWindowCounter, .requests = 10, .period = 20 * kSecond},
      {.algorithm = Algorithm::kSlidingWindowCounter,
       .requests = 5,
       .period = 20 * kSecond,
       .count_denied = true},
      {.algorithm = Algorithm::kSlidingWindowLog, .requests = 10, .period = 20 * kSecond},
      {.algorithm = Algorithm::kSlidingWindowLog, .requests = 4, .period = 20 * kSecond},
      {.algorithm = Algorithm::kTokenBucket,
       .requests = 10,
       .period = 20 * kSecond,
       .overdraw = true},
      {.algorithm = Algorithm::kFixedWindow,
       .requests = 5,
       .period = 20 * kSecond,
       .overdraw = true},
      {.algorithm = Algorithm::kSlidingWindowLog,
       .requests = 5,
       .period = 20 * kSecond,
       .overdraw = true},
      Blocking({.algorithm = Algorithm::kTokenBucket, .requests = 5, .period = 20 * kSecond}),
      Blocking({.algorithm = Algorithm::kLeakyBucketQueue, .requests = 5, .period = 20 * kSecond}),
      Blocking({.algorithm = Algorithm::kFixedWindow, .requests = 5, .period = 20 * kSecond}),
      Blocking(
          {.algorithm = Algorithm::kSlidingWindowCounter, .requests = 5, .period = 20 * kSecond}),
      Blocking({.algorithm = Algorithm::kSlidingWindowLog, .requests = 5, .period = 20 * kSecond}),
  };
}

std::string ToString(const LimitSpec& spec) {
  const std::string burst = spec.burst ? fmt::format(" burst {}", *spec.burst) : "";
  return fmt::format("{} {} per {}{} align {}{}", Name(spec.algorithm), spec.requests,
                     rule::FormatDuration(spec.period), burst, static_cast<int>(spec.align),
                     spec.count_denied ? " count_denied" : "") +
         (spec.zone.is_utc() ? "" : fmt::format(" in {}", spec.zone.name())) +
         (spec.overdraw ? " overdraw" : "") +
         (spec.block.empty() ? "" : " block " + rule::Describe(spec.block));
}

std::string ToString(const Decision& decision) {
  return fmt::format("{} limit {} remaining {} retry {}ns reset {}ns wait {}ns blocked {}ns",
                     decision.allowed ? "allow" : "deny", decision.limit, decision.remaining,
                     decision.retry_after.count(), decision.reset_after.count(),
                     decision.wait.count(), decision.blocked_for.count());
}

store::LimitHandle HandleOf(store::Store& store, const LimitSpec& spec, uint32_t version) {
  const auto limit = algorithm::Limit::Make(spec);
  HEADGATE_CHECK(limit.ok());
  auto handle = store.limits().Intern(*limit, version);
  HEADGATE_CHECK(handle.ok());
  return *std::move(handle);
}

Decision LoneBucket::Ask(const algorithm::Limit& limit, const store::TakeRequest& request,
                         Instant now) {
  switch (request.operation) {
    case Operation::kTake:
      break;
    case Operation::kPeek: {
      algorithm::BucketState state = state_;
      DequeHitLog hits = hits_;
      return Peek(limit, state, hits, request.cost, now);
    }
    case Operation::kRefund: {
      const auto decision = Refund(limit, state_, hits_, request.cost, now);
      HEADGATE_CHECK(decision.ok());
      return *decision;
    }
    case Operation::kCharge:
      return Charge(limit, state_, hits_, request.cost, now);
    case Operation::kUndo: {
      const auto decision = Undo(limit, state_, hits_, request.cost, request.taken_at, now);
      HEADGATE_CHECK(decision.ok());
      return *decision;
    }
    case Operation::kReset:
      algorithm::Reset(limit, state_, hits_);
      remembered_until_ = {};
      return Decide(limit, state_, hits_, 0, now);
  }
  return Decide(limit, state_, hits_, request.cost, now);
}

void LoneBucket::Change(const algorithm::Limit& from, const algorithm::Limit& to, Instant at) {
  algorithm::Change(from, to, state_, hits_, remembered_until_, at);
}

StoreMirror::StoreMirror(store::Store& store, const LimitSpec& spec, Instant start, uint64_t seed)
    : store_(store),
      name_(fmt::format("{} {}", ToString(spec), seed)),
      random_(seed),
      now_(start),
      limit_(HandleOf(store, spec)) {
  while (keys_.size() < kKeys) keys_.push_back(fmt::format("{} {}", name_, keys_.size()));
}

// Pauses of zero, single nanoseconds, parts of a period, and far more than a period.
Duration StoreMirror::DrawPause() {
  const int64_t period = PeriodOf(limit_->limit.spec()).count();
  switch (Draw(8)) {
    case 0:
      return Duration(0);
    case 1:
      return Duration(static_cast<int64_t>(Draw(3)));
    case 2:
      return Duration(period / 10);
    case 3:
      return Duration(period / 2);
    case 4:
      return Duration(static_cast<int64_t>(Draw(static_cast<uint64_t>(2 * period))));
    default:
      return Duration(static_cast<int64_t>(Draw(static_cast<uint64_t>(period) / 4 + 1)));
  }
}

store::TakeRequest StoreMirror::DrawRequest() {
  store::TakeRequest request{.key = {}, .limit = limit_.get(), .history = history_};
  const uint64_t kind = Draw(20);
  const bool queue = limit_->limit.algorithm() == Algorithm::kLeakyBucketQueue;
  if (kind == 0) {
    request.operation = Operation::kReset;
    request.cost = 0;
  } else if (kind <= 2 && !queue) {
    request.operation = Operation::kRefund;
    request.cost = Draw(4);
  } else if (kind == 3 && !queue) {
    request.operation = Operation::kUndo;
    request.cost = Draw(4);
    // Most undos name a take at the time of an earlier step.
    request.taken_at = earlier_[Draw(earlier_.size())] - Duration(Draw(4) == 0 ? 1 : 0);
  } else if (kind == 4) {
    request.operation = Operation::kCharge;
    request.cost = Draw(Draw(4) == 0 ? 2 * limit_->limit.capacity() : 3);
  } else if (kind <= 6) {
    request.operation = Operation::kPeek;
    request.cost = Draw(4);
  } else {
    request.cost = kind == 7 ? limit_->limit.capacity() + Draw(3) : kind <= 10 ? Draw(4) : 1;
  }
  return request;
}

std::string StoreMirror::Step() {
  earlier_[Draw(earlier_.size())] = now_;
  now_ += DrawPause();
  std::vector<store::TakeRequest> batch(1 + Draw(5));
  std::vector<size_t> keys(batch.size());
  for (size_t i = 0; i < batch.size(); ++i) {
    keys[i] = Draw(kKeys);
    batch[i] = DrawRequest();
    batch[i].key = base::HashBytes(store_.hash_secret(), base::KeyKind::kRaw, keys_[keys[i]]);
  }
  std::vector<Decision> decisions(batch.size());
  store_.Take(batch, decisions, now_);
  for (size_t i = 0; i < batch.size(); ++i) {
    const Decision expected = lone_[keys_[keys[i]]].Ask(limit_->limit, batch[i], now_);
    if (decisions[i] == expected) continue;
    return fmt::format("key \"{}\" at {} operation {} cost {}: expected {}, got {}", keys_[keys[i]],
                       now_.ns, static_cast<int>(batch[i].operation), batch[i].cost,
                       ToString(expected), ToString(decisions[i]));
  }
  return "";
}

void StoreMirror::Change(const LimitSpec& spec) {
  const store::LimitHandle to = HandleOf(store_, spec, static_cast<uint32_t>(history_.size() + 1));
  history_.push_back({.before = limit_.get(), .at = now_});
  former_.push_back(limit_);
  for (auto& [key, bucket] : lone_) bucket.Change(limit_->limit, to->limit, now_);
  limit_ = to;
  // A shared store may treat a request in the nanosecond of a change as one nanosecond later
  // (redis-state.md).
  now_ += Duration(1);
}

}  // namespace headgate::testing
