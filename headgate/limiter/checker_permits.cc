// The part of a Checker that is about rules that limit concurrency.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "headgate/base/check.h"
#include "headgate/base/random_secret.h"
#include "headgate/limiter/bucket_key.h"
#include "headgate/limiter/checker.h"
#include "headgate/limiter/work.h"

namespace headgate::limiter {

using Event = PermitEvent::Kind;
using Kind = permit::Ask::Kind;

namespace {

bool IsShadow(const rule::Rule& rule) { return rule.shadow_mode; }

// A look takes none, and a request that passes because the store is unreachable gets none.
bool HasPermit(const PermitEntry& permit) {
  return permit.ask.kind == Kind::kAcquire && permit.settled.decision.allowed &&
         permit.settled.mode != Mode::kOpen;
}

// The question of a request to the permits of a rule; none for what is about buckets only.
std::optional<Kind> KindOf(const Request& request, const rule::Descriptor& descriptor) {
  switch (request.operation) {
    case Operation::kTake:
      return request.permits != nullptr && descriptor.cost != 0 ? Kind::kAcquire : Kind::kLook;
    case Operation::kPeek:
      return Kind::kLook;
    case Operation::kReset:
      return Kind::kClear;
    case Operation::kRefund:
    case Operation::kCharge:
    case Operation::kUndo:
      return std::nullopt;
  }
  __builtin_unreachable();
}

}  // namespace

// Decides all permits that the request needs, or with `released` releases those of this id. False
// if the answers come later.
bool Checker::AskPermits(const Call& call, const permit::Id* released) {
  const Request& request = call.request;
  work_->may_repeat = released == nullptr && MayRepeat(call);
  work_->permit_of.assign(request.descriptors.size(), std::nullopt);
  for (uint32_t i = 0; i < request.descriptors.size(); ++i) {
    const Matched& matched = work_->matched[i];
    if (matched.rule != nullptr && matched.rule->concurrency)
      AddPermits(call, i, matched, released);
  }
  std::vector<PermitEntry>& permits = work_->permits;
  const size_t count = permits.size();
  if (work_->may_repeat) {
    // Each peek is followed by a question that renews the permit of the id, if there is one.
    for (size_t k = 0; k < count; ++k) {
      PermitEntry& renewal = permits.emplace_back(permits[k]);
      renewal.ask.kind = Kind::kAcquire;
      renewal.ask.max = 0;
    }
  }
  return DecidePermits(call, permits, [count](size_t index) { return index % count; });
}

// Which permits the id of a request that may repeat another holds already.
void Checker::ReadPermits(const Call& call) {
  if (!work_->may_repeat) return;
  std::vector<PermitEntry>& permits = work_->permits;
  const size_t count = permits.size() / 2;
  for (size_t k = 0; k < count; ++k) {
    if (permits[count + k].settled.was_held) MarkHeld(*call.request.permits, permits[k]);
  }
  permits.erase(permits.begin() + static_cast<ptrdiff_t>(count), permits.end());
}

// `place` says which of the request's permits an entry is about.
bool Checker::DecidePermits(const Call& call, std::span<PermitEntry> entries,
                            absl::FunctionRef<size_t(size_t)> place) {
  if (entries.empty()) return true;
  const auto name = [&](size_t index, std::string& out) {
    uint32_t i = 0;
    while (work_->permit_of[i] != place(index)) ++i;
    AppendPermits(naming_, call.request.domain, call.request.descriptors[i].entries,
                  work_->matched[i].match, out);
  };
  work_->asked = base::Strided<Settled>::Of(entries, &PermitEntry::settled);
  return decider_.AskPermits(entries, name, PendingOf(call), call.now);
}

void Checker::AddPermits(const Call& call, uint32_t descriptor_index, const Matched& matched,
                         const permit::Id* released) {
  const Request& request = call.request;
  const rule::Descriptor& descriptor = request.descriptors[descriptor_index];
  std::optional<Kind> kind = released != nullptr ? Kind::kRelease : KindOf(request, descriptor);
  if (!kind) return;
  const bool acquires = *kind == Kind::kAcquire;
  if (acquires && work_->may_repeat) kind = Kind::kLook;
  const rule::ConcurrencyLimit& limit = *matched.rule->concurrency;
  PermitEntry entry{.key = PermitsKey(limiter_.store_.hash_secret(), request.domain,
                                      descriptor.entries, matched.match),
                    .ask = {.kind = *kind, .max = limit.max, .ttl = limit.ttl},
                    .terms = decider_.TermsOf(*matched.rule),
                    .watch = {.observer = limiter_.observer_,
                              .worker = worker_,
                              .series = call.rules.published[matched.rule->index].permit_series}};
  if (released != nullptr) {
    entry.ask.id = *released;
  } else if (acquires) {
    PermitHold& hold = *request.permits;
    if (!std::exchange(hold.has_id_, true)) hold.id_ = NextPermitId();
    if (*kind == Kind::kAcquire) entry.hold = &hold;
    entry.ask.id = hold.id_;
    entry.ask.ttl = std::clamp(hold.ttl_, base::Duration(1), limit.ttl);
  }
  std::vector<PermitEntry>& permits = work_->permits;
  const auto same = std::find_if(permits.begin(), permits.end(), [&](const PermitEntry& other) {
    return other.key == entry.key && other.ask.kind == entry.ask.kind;
  });
  work_->permit_of[descriptor_index] = static_cast<uint32_t>(same - permits.begin());
  if (same == permits.end()) permits.push_back(std::move(entry));
}

// Ids of different checkers and processes differ, because they begin at random.
permit::Id Checker::NextPermitId() {
  std::optional<permit::Id>& id = caches_->permit_id;
  if (!id) {
    const base::HashSecret random = base::RandomHashSecret();
    id.emplace();
    static_assert(sizeof(*id) <= sizeof(random.bytes));
    std::copy_n(random.bytes.begin(), sizeof(*id), static_cast<uint8_t*>(static_cast<void*>(&*id)));
  }
  ++id->low;
  return *id;
}

// Once for each request, when all is decided.
void Checker::ObservePermits(const Call& call) const {
  if (call.request.operation != Operation::kTake) return;
  // If it may repeat another, the looks came before acquisitions.
  for (const PermitEntry& entry : work_->permits) {
    if (!work_->may_repeat && entry.ask.kind == Kind::kLook) entry.watch(Event::kLookedAt);
    if (entry.ask.kind != Kind::kRelease && !entry.settled.decision.allowed)
      entry.watch(Event::kRefused);
  }
}

// Buckets of a rule whose permit was refused are only looked at, in an all-or-nothing domain those
// of all rules. A request whose id holds a permit already was let through before, and takes nothing
// from any bucket.
void Checker::SpareBuckets(const Call& call) {
  const auto was_held = [](const PermitEntry& permit) {
    return permit.settled.was_held && permit.hold != nullptr &&
           permit.hold->owner_ == PermitHold::Owner::kPerhapsOther;
  };
  bool any_refused = false;
  bool any_held = false;
  for (uint32_t i = 0; i < call.request.descriptors.size(); ++i) {
    const PermitEntry* const permit = work_->PermitOf(i);
    if (permit == nullptr) continue;
    any_refused =
        any_refused || (!permit->settled.decision.allowed && !IsShadow(*work_->matched[i].rule));
    any_held = any_held || was_held(*permit);
  }
  if (call.request.operation != Operation::kTake) return;
  for (size_t i = 0; i < work_->batch.size(); ++i) {
    store::TakeRequest& request = work_->batch[i].request;
    const uint32_t descriptor = work_->sources[i].descriptor;
    const PermitEntry* const permit = descriptor == kOfOnce ? nullptr : work_->PermitOf(descriptor);
    const bool refused =
        (work_->joined && any_refused) || (permit != nullptr && !permit->settled.decision.allowed);
    if (!refused && !any_held) continue;
    request.operation = Operation::kPeek;
    request.joined = store::Joined::kNo;
    if (any_held && descriptor != kOfOnce) request.cost = 0;
  }
}

void Checker::ConcludePermits(const Call& call, Response& response) const {
  // The permits of all rules end, whichever rule is reported.
  base::Duration ttl{0};
  for (const PermitEntry& permit : work_->permits) {
    if (HasPermit(permit))
      ttl = ttl > base::Duration(0) ? std::min(ttl, permit.ask.ttl) : permit.ask.ttl;
  }
  const PermitEntry* reported = nullptr;
  const PermitEntry* in_shadow = nullptr;
  for (uint32_t i = 0; i < response.descriptors.size(); ++i) {
    const PermitEntry* const permit = work_->PermitOf(i);
    if (permit == nullptr) continue;
    const rule::Rule& rule = *work_->matched[i].rule;
    const algorithm::Decision& decision = permit->settled.decision;
    DescriptorAnswer& answer = response.descriptors[i];
    answer.limit = &call.rules.published[rule.index].concurrency;
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

absl::Status Checker::Release(const Request& request, const permit::Id& id, Released& released,
                              base::Instant now, Question* question) {
  released.waiting = false;
  HEADGATE_ASSIGN_OR_RETURN(const PublishedRules* const rules, Begin(request, question));
  const Call call{.request = request,
                  .rules = *rules,
                  .question = decider_.may_wait() ? question : nullptr,
                  .now = now};
  Match(call);
  if (!AsksPermits(call) || AskPermits(call, &id)) return AnswerRelease(call, released);
  released.waiting = true;
  Wait(call, Awaits::kPermits);
  return absl::OkStatus();
}

absl::Status Checker::ContinueRelease(Question& question, Released& released, base::Instant now) {
  released.waiting = question.waiting();
  return released.waiting ? absl::OkStatus() : AnswerRelease(TakeBack(question, now), released);
}

absl::Status Checker::AnswerRelease(const Call& call, Released& released) {
  End(call);
  released.descriptors.assign(call.request.descriptors.size(), {});
  absl::Status status;
  for (uint32_t i = 0; i < released.descriptors.size(); ++i) {
    const PermitEntry* const permit = work_->PermitOf(i);
    if (permit == nullptr) continue;
    const Settled& settled = permit->settled;
    released.descriptors[i] = {.rule = work_->matched[i].rule,
                               .was_held = settled.decision.allowed,
                               .in_flight = settled.in_flight,
                               .decision = settled.decision};
    if (settled.mode == Mode::kClosed) {
      status = absl::UnavailableError(
          fmt::format("the shared store cannot be reached: no permit of rule {} was released, and "
                      "each ends after its ttl",
                      work_->matched[i].rule->label()));
    }
  }
  for (const PermitEntry& entry : work_->permits) {
    if (entry.settled.mode == Mode::kClosed) continue;
    entry.watch(entry.settled.decision.allowed ? Event::kReleased : Event::kUnknown);
  }
  return status;
}

}  // namespace headgate::limiter
