#include "headgate/limiter/request_permits.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "headgate/limiter/bucket_key.h"
#include "headgate/limiter/work.h"

namespace headgate::limiter {

using Event = PermitEvent::Kind;
using Kind = permit::Ask::Kind;

namespace {

bool IsShadow(const rule::Rule& rule) { return rule.shadow_mode; }

// A peek takes none, and a request that passes because the store is unreachable gets none.
bool HasPermit(const PermitEntry& permit) {
  return permit.ask.kind == Kind::kAcquire && permit.settled.decision.allowed &&
         permit.settled.mode != Mode::kOpen;
}

// The question of a request to the permits of a rule; none for what is about buckets only.
std::optional<Kind> KindOf(const Request& request, const rule::Descriptor& descriptor) {
  switch (request.operation) {
    case Operation::kTake:
      return request.permits != nullptr && descriptor.cost != 0 ? Kind::kAcquire : Kind::kPeek;
    case Operation::kPeek:
      return Kind::kPeek;
    case Operation::kReset:
      return Kind::kClear;
    case Operation::kRefund:
    case Operation::kCharge:
    case Operation::kUndo:
      return std::nullopt;
  }
  __builtin_unreachable();
}

bool MayRepeat(const Task& task) {
  const Request& request = task.request;
  if (request.operation != Operation::kTake || request.permits == nullptr ||
      request.permits->owner() != PermitHold::Owner::kPerhapsOther)
    return false;
  for (size_t i = 0; i < request.descriptors.size(); ++i) {
    const rule::Rule* const rule = task.work.matches.RuleOf(i);
    if (request.descriptors[i].override_limit || (rule != nullptr && !rule->limits.empty()))
      return true;
  }
  return false;
}

void MarkHeld(PermitHold& hold, PermitEntry& entry) {
  entry.hold = &hold;
  entry.ask.kind = Kind::kAcquire;
  entry.settled.was_held = true;
  entry.settled.decision.allowed = true;
  entry.settled.decision.retry_after = base::Duration(0);
}

bool BucketsAllow(const Task& task) {
  return task.work.matches.PassesBy([&](size_t i) {
    const rule::Rule* const rule = task.work.matches.RuleOf(i);
    if (rule != nullptr && rule->shadow_mode) return true;
    return !task.work.permits.Denies(i) && !task.work.buckets.Denies(static_cast<uint32_t>(i));
  });
}

}  // namespace

bool AsksPermits(const Task& task) {
  return task.rules.limits_concurrency && !task.request.skips_permits;
}

bool RequestPermits::Ask(const Task& task, const permit::Id* released) {
  may_repeat_ = released == nullptr && MayRepeat(task);
  const size_t descriptors = task.request.descriptors.size();
  of_descriptor_.assign(descriptors, std::nullopt);
  for (uint32_t i = 0; i < descriptors; ++i) {
    const rule::Rule* const rule = task.work.matches.RuleOf(i);
    if (rule != nullptr && rule->concurrency) Add(task, i, released);
  }
  const size_t count = permits_.size();
  if (may_repeat_) {
    // Each peek is followed by a question that renews the permit of the id, if there is one.
    for (size_t k = 0; k < count; ++k) {
      PermitEntry& renewal = permits_.emplace_back(permits_[k]);
      renewal.ask.kind = Kind::kAcquire;
      renewal.ask.max = 0;
    }
  }
  return Decide(task, permits_, [count](size_t index) { return index % count; });
}

void RequestPermits::Read(const Task& task) {
  if (!may_repeat_) return;
  const size_t count = permits_.size() / 2;
  for (size_t k = 0; k < count; ++k) {
    if (permits_[count + k].settled.was_held) MarkHeld(*task.request.permits, permits_[k]);
  }
  permits_.erase(permits_.begin() + static_cast<ptrdiff_t>(count), permits_.end());
}

// `place` says which of the request's permits an entry is about.
bool RequestPermits::Decide(const Task& task, std::span<PermitEntry> entries,
                            absl::FunctionRef<size_t(size_t)> place) {
  if (entries.empty()) return true;
  const auto name = [&](size_t index, std::string& out) {
    uint32_t i = 0;
    while (of_descriptor_[i] != place(index)) ++i;
    AppendPermits(task.means.naming, task.request.domain, task.request.descriptors[i].entries,
                  task.work.matches[i].match, out);
  };
  task.work.asked = base::Strided<Settled>::Of(entries, &PermitEntry::settled);
  return task.means.decider.AskPermits(entries, name, task.pending(), task.now);
}

void RequestPermits::Add(const Task& task, uint32_t descriptor_index, const permit::Id* released) {
  const Request& request = task.request;
  const rule::Descriptor& descriptor = request.descriptors[descriptor_index];
  const Matched& matched = task.work.matches[descriptor_index];
  std::optional<Kind> kind = released != nullptr ? Kind::kRelease : KindOf(request, descriptor);
  if (!kind) return;
  const bool acquires = *kind == Kind::kAcquire;
  if (acquires && may_repeat_) kind = Kind::kPeek;
  const rule::ConcurrencyLimit& limit = *matched.rule->concurrency;
  PermitEntry entry{.key = PermitsKey(task.means.store.hash_secret(), request.domain,
                                      descriptor.entries, matched.match),
                    .ask = {.kind = *kind, .max = limit.max, .ttl = limit.ttl},
                    .terms = task.means.decider.TermsOf(*matched.rule),
                    .watch = {.observers = &task.means.observers,
                              .worker = task.means.worker,
                              .series = task.rules.published[matched.rule->index].permit_series}};
  if (released != nullptr) {
    entry.ask.id = *released;
  } else if (acquires) {
    PermitHold& hold = *request.permits;
    entry.ask.id = hold.IdFrom(task.permit_ids);
    entry.ask.ttl = hold.TtlWithin(limit.ttl);
    if (*kind == Kind::kAcquire) entry.hold = &hold;
  }
  const auto same = std::find_if(permits_.begin(), permits_.end(), [&](const PermitEntry& other) {
    return other.key == entry.key && other.ask.kind == entry.ask.kind;
  });
  of_descriptor_[descriptor_index] = static_cast<uint32_t>(same - permits_.begin());
  if (same == permits_.end()) permits_.push_back(std::move(entry));
}

void RequestPermits::Observe(const Task& task) const {
  if (task.request.operation != Operation::kTake) return;
  // If it may repeat another, the peeks came before acquisitions.
  for (const PermitEntry& entry : permits_) {
    if (!may_repeat_ && entry.ask.kind == Kind::kPeek) entry.watch(Event::kPeekedAt);
    if (entry.ask.kind != Kind::kRelease && !entry.settled.decision.allowed)
      entry.watch(Event::kRefused);
  }
}

void RequestPermits::SpareBuckets(const Task& task) const {
  const auto was_held = [](const PermitEntry& permit) {
    return permit.settled.was_held && permit.hold != nullptr &&
           permit.hold->owner() == PermitHold::Owner::kPerhapsOther;
  };
  if (task.request.operation != Operation::kTake) return;
  bool any_refused = false;
  bool any_held = false;
  for (uint32_t i = 0; i < task.request.descriptors.size(); ++i) {
    const PermitEntry* const permit = Of(i);
    if (permit == nullptr) continue;
    any_refused = any_refused || (Denies(i) && !IsShadow(*task.work.matches.RuleOf(i)));
    any_held = any_held || was_held(*permit);
  }
  RequestBuckets& buckets = task.work.buckets;
  for (size_t k = 0; k < buckets.size(); ++k) {
    const uint32_t descriptor = buckets.source(k).descriptor;
    const bool of_id = descriptor == kOfId;
    const bool refused = (buckets.joined() && any_refused) || (!of_id && Denies(descriptor));
    if (!refused && !any_held) continue;
    buckets.PeekOnly(k);
    if (any_held && !of_id) buckets.entry(k).request.cost = 0;
  }
}

bool RequestPermits::AcquireFound(const Task& task) {
  acquired_.clear();
  acquired_places_.clear();
  if (!may_repeat_ || task.work.id.repeated() || !BucketsAllow(task)) return true;
  for (size_t k = 0; k < permits_.size(); ++k) {
    if (permits_[k].ask.kind != Kind::kPeek || !permits_[k].settled.decision.allowed) continue;
    PermitEntry& acquired = acquired_.emplace_back(permits_[k]);
    acquired.ask.kind = Kind::kAcquire;
    acquired.hold = task.request.permits;
    acquired_places_.push_back(k);
  }
  return Decide(task, acquired_, [&](size_t index) { return acquired_places_[index]; });
}

bool RequestPermits::GiveBackRefused(const Task& task) {
  const std::vector<size_t>& places = acquired_places_;
  if (places.empty()) return true;
  for (size_t k = 0; k < places.size(); ++k) permits_[places[k]] = std::move(acquired_[k]);
  // If the store did not answer, it may have given the permit, and the next attempt finds it held.
  const auto refused = [&](size_t k) {
    const Settled& settled = permits_[k].settled;
    return !settled.decision.allowed && settled.mode != Mode::kClosed;
  };
  // One of two such requests is the first to acquire this permit. It takes the costs of both.
  const auto first = std::find_if_not(places.begin(), places.end(), refused);
  const bool other_takes = first != places.end() && permits_[*first].settled.was_held;
  if (!other_takes && std::none_of(places.begin(), places.end(), refused)) return true;
  const bool gives_all = other_takes || (task.work.buckets.joined() && !BucketsAllow(task));
  return task.work.buckets.GiveBack(task, [&](uint32_t descriptor) {
    if (gives_all) return true;
    const auto& place = of_descriptor_[descriptor];
    return place && std::find(places.begin(), places.end(), *place) != places.end() &&
           refused(*place);
  });
}

void RequestPermits::TellIn(const Task& task, Response& response) const {
  // The permits of all rules end, whichever rule is reported.
  base::Duration ttl{0};
  for (const PermitEntry& permit : permits_) {
    if (HasPermit(permit))
      ttl = ttl > base::Duration(0) ? std::min(ttl, permit.ask.ttl) : permit.ask.ttl;
  }
  const PermitEntry* reported = nullptr;
  const PermitEntry* in_shadow = nullptr;
  for (uint32_t i = 0; i < response.descriptors.size(); ++i) {
    const PermitEntry* const permit = Of(i);
    if (permit == nullptr) continue;
    const rule::Rule& rule = *task.work.matches.RuleOf(i);
    const algorithm::Decision& decision = permit->settled.decision;
    DescriptorAnswer& answer = response.descriptors[i];
    answer.limit = &task.rules.published[rule.index].concurrency;
    answer.decision = decision;
    answer.mode = permit->settled.mode;
    answer.of_permits = true;
    if (IsShadow(rule)) {
      if (HasPermit(*permit)) in_shadow = permit;
      continue;
    }
    if (reported != nullptr && reported->settled.decision.remaining <= decision.remaining) continue;
    reported = permit;
  }
  // No rule denies the request, but a permit in shadow is released and ends like any other.
  if (reported == nullptr) reported = in_shadow;
  if (reported == nullptr) return;
  response.concurrency = {.max = static_cast<uint32_t>(reported->settled.decision.limit),
                          .in_flight = reported->settled.in_flight,
                          .ttl = ttl};
}

absl::Status RequestPermits::TellReleased(const Task& task, Released& released) const {
  released.descriptors.assign(task.request.descriptors.size(), {});
  absl::Status status;
  for (uint32_t i = 0; i < released.descriptors.size(); ++i) {
    const PermitEntry* const permit = Of(i);
    if (permit == nullptr) continue;
    const Settled& settled = permit->settled;
    const rule::Rule* const rule = task.work.matches.RuleOf(i);
    released.descriptors[i] = {.rule = rule,
                               .was_held = settled.decision.allowed,
                               .in_flight = settled.in_flight,
                               .decision = settled.decision};
    if (settled.mode == Mode::kClosed) {
      status = absl::UnavailableError(
          fmt::format("the shared store cannot be reached: no permit of rule {} was released, and "
                      "each ends after its ttl",
                      rule->label()));
    }
  }
  for (const PermitEntry& entry : permits_) {
    if (entry.settled.mode == Mode::kClosed) continue;
    entry.watch(entry.settled.decision.allowed ? Event::kReleased : Event::kUnknown);
  }
  return status;
}

}  // namespace headgate::limiter
