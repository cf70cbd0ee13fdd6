#include "headgate/limiter/shared/shared_permits.h"

#include <algorithm>
#include <utility>

#include "headgate/base/check.h"
#include "headgate/base/wide.h"
#include "headgate/limiter/permit_decision.h"
#include "headgate/limiter/shared/local_shares.h"

namespace headgate::limiter::shared {

using algorithm::Decision;
using Event = PermitEvent::Kind;
using Kind = permit::Ask::Kind;
using PermitOutcome = permit::Answer::Outcome;
using Place = SharedPermit::Place;

namespace {

bool MayHaveBeenDone(const absl::Status& status) {
  return absl::IsDeadlineExceeded(status) || absl::IsAborted(status);
}

// An ask that takes nothing can be answered without the store. But one with an id that others may
// know, or without a hold, finds out whether the id holds a permit.
bool NeedsNoStore(const PermitEntry& entry, bool may_renew) {
  return entry.ask.max == 0 &&
         (entry.ask.kind == Kind::kPeek || (entry.ask.kind == Kind::kAcquire && !may_renew));
}

}  // namespace

SharedPermits::SharedPermits(store::SharedStore& shared, permit::PermitTable& here,
                             const Instants& instants, base::Duration timeout,
                             std::function<void(Mode)> count)
    : shared_(shared),
      here_(here),
      instants_(instants),
      timeout_(timeout),
      count_(std::move(count)) {}

bool SharedPermits::Ask(std::span<PermitEntry> batch, Decider::Namer name, Pending* pending,
                        const std::shared_ptr<PermitSource>& source, base::Instant now) {
  const std::shared_ptr<Pending::State>& state = pending->state();
  HEADGATE_DCHECK(state->open == 0);
  const size_t first = state->settled.size();
  state->settled.resize(first + batch.size());
  state->open = 1;  // keeps on_ready from being called while this function asks
  for (size_t i = 0; i < batch.size(); ++i) {
    PermitEntry& entry = batch[i];
    const bool may_renew =
        entry.hold == nullptr || entry.hold->owner() == PermitHold::Owner::kPerhapsOther;
    if (NeedsNoStore(entry, may_renew)) {
      state->settled[first + i] = SettledOf({}, entry.ask, Mode::kExact);
      continue;
    }
    Question question{.key = entry.key,
                      .ask = entry.ask,
                      .terms = entry.terms,
                      .watch = entry.watch,
                      .state = state,
                      .index = first + i};
    std::string text;
    name(i, text);
    if (entry.hold != nullptr) {
      question.is_named = entry.hold->is_named();
      question.owner = entry.hold->owner();
      question.permit = std::make_shared<SharedPermit>();
      question.permit->name = text;
      entry.hold->Add({.key = entry.key,
                       .shared = question.permit,
                       .ask = entry.ask,
                       .watch = entry.watch,
                       .is_named = question.is_named},
                      source, now);
    }
    ++state->open;
    shared_.AskPermits(
        {.name = text, .ask = entry.ask, .timeout = timeout_},
        [this, question = std::move(question)](const absl::StatusOr<permit::Answer>& answer) {
          OnAnswer(question, answer);
        });
  }
  if (--state->open > 0) return false;
  for (size_t i = 0; i < batch.size(); ++i) batch[i].settled = state->settled[first + i];
  state->settled.resize(first);
  return true;
}

void SharedPermits::OnAnswer(const Question& question,
                             const absl::StatusOr<permit::Answer>& answer) {
  Settled settled;
  if (answer.ok()) {
    settled = SettledOf(*answer, question.ask, Mode::kExact);
    question.watch(Event::kExpired, answer->expired);
    // Perhaps it was given while the store was unreachable.
    if (answer->outcome == PermitOutcome::kUnknown && question.ask.kind == Kind::kRelease)
      settled = ReleaseHere(question).value_or(settled);
    if (question.permit != nullptr) {
      const bool gives = Gives(*answer, question.owner);
      question.permit->place = gives ? Place::kStore : Place::kNowhere;
      if (gives) question.watch(question.is_named ? Event::kAcquired : Event::kTaken);
    }
  } else {
    settled = WithoutStore(question, answer.status());
  }
  count_(settled.mode);
  if (question.permit != nullptr && question.permit->given_back) {
    // The request was given up meanwhile.
    HeldPermit held{.key = question.key,
                    .shared = question.permit,
                    .watch = question.watch,
                    .is_named = question.is_named};
    GiveBack(held, question.ask.id, instants_.Now());
  }
  question.state->settled[question.index] = settled;
  question.state->Close();
}

Settled SharedPermits::WithoutStore(const Question& question, const absl::Status& why) {
  const permit::Ask& ask = question.ask;
  const std::shared_ptr<SharedPermit>& permit = question.permit;
  if (permit != nullptr) {
    permit->place = Place::kNowhere;
    // A permit that another request may hold stays.
    if (MayHaveBeenDone(why) && question.owner == PermitHold::Owner::kThisRequest)
      shared_.AskPermits({.name = permit->name,
                          .ask = {.kind = Kind::kRelease, .id = ask.id},
                          .timeout = timeout_},
                         [](const absl::StatusOr<permit::Answer>&) {});
  }
  if (ask.kind == Kind::kRelease) {
    if (const std::optional<Settled> here = ReleaseHere(question)) return *here;
  }
  const bool asks = ask.kind == Kind::kAcquire || ask.kind == Kind::kPeek;
  if (!asks || absl::IsUnimplemented(why) ||
      question.terms.on_store_failure == rule::OnStoreFailure::kDeny)
    return {.decision = Decision{.allowed = false, .limit = ask.max}, .mode = Mode::kClosed};
  // A limit of nothing lets no request pass but one that holds a permit.
  const bool never_gives = ask.max == 0 && permit != nullptr;
  if (question.terms.on_store_failure == rule::OnStoreFailure::kAllow && !never_gives)
    return {.decision = Decision{.allowed = true, .limit = ask.max, .remaining = ask.max},
            .mode = Mode::kOpen};
  permit::Ask alone = ask;
  alone.max = ask.max == 0 ? 0 : LocalPart(ask.max, question.terms);
  const permit::Answer answer = here_.Do(question.key, alone, instants_.Now());
  question.watch(Event::kExpired, answer.expired);
  if (permit != nullptr && Gives(answer, question.owner)) {
    permit->place = Place::kHere;
    question.watch(question.is_named ? Event::kAcquired : Event::kTaken);
  }
  return SettledOf(answer, alone, Mode::kLocal);
}

std::optional<Settled> SharedPermits::ReleaseHere(const Question& question) {
  const permit::Answer answer = here_.Do(question.key, question.ask, instants_.Now());
  question.watch(Event::kExpired, answer.expired);
  if (answer.outcome != PermitOutcome::kReleased) return std::nullopt;
  return SettledOf(answer, question.ask, Mode::kLocal);
}

uint32_t SharedPermits::LocalPart(uint32_t max, const SharedTerms& terms) const {
  const uint32_t ppm = terms.fallback_share_ppm;
  const uint64_t part =
      ppm != 0 ? uint64_t{max} * ppm / kWholePpm : max / std::max(1u, shared_.instances());
  return static_cast<uint32_t>(std::max<uint64_t>(1, part));
}

void SharedPermits::GiveBack(HeldPermit& held, const permit::Id& id, base::Instant now) {
  SharedPermit& permit = *held.shared;
  const Place place = std::exchange(permit.place, Place::kNowhere);
  switch (place) {
    case Place::kNowhere:
      return;
    case Place::kAsked:
      permit.place = Place::kAsked;
      permit.given_back = true;
      return;
    case Place::kStore:
      return ReleaseAtStore(permit.name, id, held.watch, held.is_named);
    case Place::kHere:
      break;
  }
  const permit::Answer answer = here_.Do(held.key, {.kind = Kind::kRelease, .id = id}, now);
  held.watch(Event::kExpired, answer.expired);
  const bool was_held = answer.outcome == PermitOutcome::kReleased;
  if (held.is_named) {
    if (was_held) held.watch(Event::kReleased);
  } else {
    held.watch(was_held ? Event::kGivenBack : Event::kEnded);
  }
}

// Answers that are lost are made up for by the next renewal.
void SharedPermits::Renew(HeldPermit& held, base::Instant now) {
  if (held.shared->place == Place::kHere) {
    held.watch(Event::kExpired, here_.Do(held.key, held.ask, now).expired);
  } else if (held.shared->place == Place::kStore) {
    shared_.AskPermits({.name = held.shared->name, .ask = held.ask, .timeout = timeout_},
                       [watch = held.watch](const absl::StatusOr<permit::Answer>& answer) {
                         if (answer.ok()) watch(Event::kExpired, answer->expired);
                       });
  }
}

// If the store does not answer, the permit ends by itself.
void SharedPermits::ReleaseAtStore(const std::string& name, const permit::Id& id,
                                   const PermitWatch& watch, bool is_named) {
  shared_.AskPermits({.name = name, .ask = {.kind = Kind::kRelease, .id = id}, .timeout = timeout_},
                     [watch, is_named](const absl::StatusOr<permit::Answer>& answer) {
                       const bool was_held =
                           answer.ok() && answer->outcome == PermitOutcome::kReleased;
                       if (answer.ok()) watch(Event::kExpired, answer->expired);
                       if (is_named) {
                         if (was_held) watch(Event::kReleased);
                       } else {
                         watch(was_held ? Event::kGivenBack : Event::kEnded);
                       }
                     });
}

}  // namespace headgate::limiter::shared
