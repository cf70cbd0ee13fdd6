#include "tests/redis/lease_walk.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace headgate::redis_host {
namespace {

using algorithm::Algorithm;
using algorithm::Cost;
using algorithm::LeaseReport;
using algorithm::Limit;
using algorithm::LimitSpec;
using base::Duration;
using base::Instant;
using model::AnySize;
using model::Between;
using model::OneIn;
using store::Operation;

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr uint64_t kU32Max = 0xffff'ffff;
// Leases must end before this time: the two sides saturate later instants differently.
constexpr int64_t kEnd = base::kInstantMax.ns - 10 * kSecondNs;
constexpr size_t kRemembered = 12;

std::string Describe(const LeaseStep& step) {
  std::string text = fmt::format("{} {} ", step.now.ns, model::Describe(step.spec));
  if (step.kind == LeaseStep::Kind::kRequest) {
    return text + fmt::format("operation {} cost {} taken at {}{}\n",
                              static_cast<int>(step.operation), step.cost, step.taken_at.ns,
                              step.keeps_limit ? " keeps the limit" : "");
  }
  text += fmt::format("lease {}/{} cost {} want {} brief {} of {} ttl {}", step.ask.id.node,
                      step.ask.id.number, step.ask.cost, step.ask.want, step.ask.brief,
                      step.ask.parts, step.ask.ttl.count());
  for (const LeaseReport& report : step.reports) {
    text += fmt::format(", {} spent {}{}", report.number, report.spent,
                        report.returned ? " returned" : "");
  }
  return text + "\n";
}

}  // namespace

LeaseWalk::LeaseWalk(uint64_t seed, const LimitSpec& kind)
    : random_(seed), kind_(kind), spec_(OfTheKind()) {
  now_ = OneIn(random_, 4) ? static_cast<int64_t>((uint64_t{1} << 40) + AnySize(random_, 61))
                           : 1'790'000'000 * kSecondNs + static_cast<int64_t>(AnySize(random_, 50));
  const uint64_t first = random_();
  // Ids that share their upper or lower half.
  for (const uint64_t id : {first, first + 1, first + (uint64_t{1} << 32), ~first, uint64_t{1}}) {
    nodes_.push_back({.id = id});
  }
  if (OneIn(random_, 8)) crowd_in_ = Between(random_, 1, 300);
  story_ = fmt::format("{} at {}\n", model::Describe(spec_), now_);
}

bool LeaseWalk::at_the_end_of_time() const { return now_ >= kEnd; }

LimitSpec LeaseWalk::OfTheKind() {
  while (true) {
    LimitSpec spec = model::RandomSpec(random_, kind_.algorithm);
    spec.align = kind_.align;
    // A limit that blocks grants no leases, but may find those of another one.
    if (!OneIn(random_, 4)) spec.block = {};
    if (IsCalendar(spec.align)) spec.period = Duration(0);
    if (Limit::Make(spec).ok()) return spec;
  }
}

LeaseStep LeaseWalk::Next() {
  if (crowd_ == 0) now_ = NextTime();
  if (crowd_in_ > 0 && --crowd_in_ == 0) GatherACrowd();
  LeaseStep step;
  const uint64_t what = random_() % 100;
  if (crowd_ > 0) {
    --crowd_;
    leaves_ = crowd_ == 0;
    step = {.kind = LeaseStep::Kind::kLease,
            .ask = {.id = {.node = 1000 + crowd_, .number = random_()}, .want = 1, .brief = 1}};
    step.ask.ttl = Duration(2 * kSecondNs);
  } else if (what < 50) {
    step = Ask();
  } else if (what < 60 && !asks_.empty()) {
    step = asks_[random_() % asks_.size()];
  } else if (what < 64) {
    step = {.cost = NextCost(), .operation = Operation::kCharge, .keeps_limit = OneIn(random_, 2)};
  } else {
    if (what < 68) ChangeTheLimit();
    step = Request();
  }
  step.spec = spec_;
  step.now = Instant::FromNanos(now_);
  if (story_.size() > 20'000) story_ = "...\n";
  story_ += Describe(step);
  return step;
}

void LeaseWalk::Note(const LeaseStep& step, const store::SharedAnswer& answer) {
  last_ = answer.decision;
  if (step.kind != LeaseStep::Kind::kLease) return;
  granted_ = answer.grant.granted;
  if (granted_ == 0) return;
  for (Node& node : nodes_) {
    if (node.id != step.ask.id.node) continue;
    node.granted.emplace_back(step.ask.id.number, granted_);
    if (node.granted.size() > kRemembered) node.granted.erase(node.granted.begin());
  }
  lease_ends_.push_back((step.now + answer.grant.ttl).ns);
  if (lease_ends_.size() > 3) lease_ends_.erase(lease_ends_.begin());
}

LeaseStep LeaseWalk::Ask() {
  Node& node = nodes_[random_() % nodes_.size()];
  LeaseStep step{.kind = LeaseStep::Kind::kLease};
  step.ask.id = {.node = node.id,
                 .number = OneIn(random_, 10) ? node.numbers_used : ++node.numbers_used};
  const std::array<uint64_t, 6> wants{
      0, 1, Between(random_, 2, 50), last_.remaining, last_.remaining / 3, kU32Max};
  step.ask.want = wants[random_() % wants.size()];
  step.ask.brief = OneIn(random_, 3) ? step.ask.want : wants[random_() % wants.size()];
  step.ask.parts = OneIn(random_, 8) ? static_cast<uint32_t>(AnySize(random_, 32))
                                     : static_cast<uint32_t>(random_() % 5);
  if (OneIn(random_, 2)) step.ask.cost = NextCost();
  const std::array<int64_t, 5> ttls{2 * kSecondNs, 2 * kSecondNs, kSecondNs / 2,
                                    static_cast<int64_t>(AnySize(random_, 31)), 0};
  step.ask.ttl = Duration(std::min(ttls[random_() % ttls.size()], 2 * kSecondNs));
  for (uint64_t i = random_() % 4; i > 0; --i) {
    const uint64_t back = Between(random_, 0, 4);
    const std::array<uint64_t, 5> spent{0, granted_, granted_ / 2, AnySize(random_, 12),
                                        kU32Max + random_() % 3};
    step.reports.push_back({.number = node.numbers_used - std::min(node.numbers_used, back),
                            .spent = spent[random_() % spent.size()],
                            .returned = OneIn(random_, 3)});
  }
  // Leases that have been granted and may be over.
  for (uint64_t i = random_() % 5; i > 0 && !node.granted.empty(); --i) {
    const auto& [number, granted] = node.granted[random_() % node.granted.size()];
    step.reports.push_back(
        {.number = number, .spent = Between(random_, 0, granted), .returned = OneIn(random_, 2)});
  }
  asks_.push_back(step);
  if (asks_.size() > kRemembered) asks_.erase(asks_.begin());
  return step;
}

LeaseStep LeaseWalk::Request() {
  LeaseStep step{.cost = NextCost()};
  const uint64_t what = random_() % 20;
  if (what < 4) step.operation = Operation::kRefund;
  if (what == 4) step.operation = Operation::kPeek;
  if (what == 5 && OneIn(random_, 4)) step.operation = Operation::kReset;
  if (what == 6 || what == 7) {
    step.operation = Operation::kUndo;
    step.taken_at = Instant::FromNanos(
        std::clamp<int64_t>(now_ - static_cast<int64_t>(AnySize(random_, 36)), 0, kEnd));
  }
  return step;
}

// Many nodes that ask one after the other: more than the bucket has places for leases, and more
// than it remembers when they have ended; and a bucket with requests for all of them.
void LeaseWalk::GatherACrowd() {
  crowd_ = algorithm::kLeasesMax + 20;
  spec_ = kind_;
  spec_.requests = 1'000'000'000;
  spec_.period = Duration(IsCalendar(kind_.align) ? 0 : 3600 * kSecondNs);
}

// A limit of the kind that the walk tests, or of any other kind, including queue and log.
void LeaseWalk::ChangeTheLimit() {
  switch (random_() % 3) {
    case 0:
      spec_ = OfTheKind();
      return;
    case 1:
      spec_ = model::RandomChange(random_, spec_);
      return;
    default:
      spec_ = model::RandomSpec(random_, static_cast<Algorithm>(random_() % 6));
  }
}

Cost LeaseWalk::NextCost() {
  const Limit limit = *Limit::Make(spec_);
  const std::array<Cost, 8> costs{1,
                                  1,
                                  Between(random_, 2, 5),
                                  last_.remaining,
                                  last_.remaining + 1,
                                  last_.remaining / 2,
                                  limit.capacity() + random_() % 3 - 1,
                                  AnySize(random_, 64)};
  return costs[random_() % costs.size()];
}

int64_t LeaseWalk::NextTime() {
  // All leases of a crowd end at once.
  if (std::exchange(leaves_, false)) return std::min(now_ + 2 * kSecondNs, kEnd);
  const auto period = static_cast<uint64_t>(std::max<int64_t>(1, spec_.period.count()));
  int64_t step = 0;
  switch (random_() % 16) {
    case 0:
    case 1:
    case 2:
      step = static_cast<int64_t>(AnySize(random_, 31));
      break;
    case 3:
    case 4:
      if (!lease_ends_.empty())
        step = lease_ends_[random_() % lease_ends_.size()] - now_ + Beside();
      break;
    case 5:
      if (!last_.never_fits()) step = last_.retry_after.count() + Beside();
      break;
    case 6:
      step = last_.reset_after.count() + Beside();
      break;
    case 7:
      step = static_cast<int64_t>(period / std::max<uint64_t>(1, spec_.requests)) + Beside();
      break;
    case 8:  // the edge of the next window of the epoch
      step = static_cast<int64_t>(period - static_cast<uint64_t>(now_) % period) + Beside();
      break;
    case 9:
      if (OneIn(random_, 8)) step = static_cast<int64_t>(AnySize(random_, 57));
      break;
    case 10:  // at most jitter, or a clock set back
      step = -static_cast<int64_t>(AnySize(random_, OneIn(random_, 8) ? 61 : 30));
      break;
    default:
      break;
  }
  // Time goes forward from the last answer's time. The last answer itself may be earlier than the
  // one before, if the clock was set back.
  return std::clamp(now_ + std::clamp(step, -(int64_t{1} << 61), int64_t{1} << 61),
                    int64_t{1} << 35, kEnd);
}

}  // namespace headgate::redis_host
