#include "headgate/limiter/memory_decider.h"

#include "headgate/limiter/permit_decision.h"

namespace headgate::limiter {

using Event = PermitEvent::Kind;

bool MemoryDecider::AskPermits(std::span<PermitEntry> batch, Namer, Pending*, base::Instant now) {
  for (PermitEntry& entry : batch) {
    const permit::Answer answer = permits_.Do(entry.key, entry.ask, now);
    entry.settled = SettledOf(answer, entry.ask, Mode::kMemory);
    entry.watch(Event::kExpired, answer.expired);
    if (entry.hold == nullptr) continue;
    PermitHold& hold = *entry.hold;
    if (!Gives(answer, hold.owner())) continue;
    entry.watch(hold.is_named() ? Event::kAcquired : Event::kTaken);
    hold.Add(
        {.key = entry.key, .ask = entry.ask, .watch = entry.watch, .is_named = hold.is_named()},
        permit_source(), now);
  }
  return true;
}

void MemoryDecider::GiveBack(HeldPermit& held, const permit::Id& id, base::Instant now) {
  const permit::Answer answer =
      permits_.Do(held.key, {.kind = permit::Ask::Kind::kRelease, .id = id}, now);
  held.watch(Event::kExpired, answer.expired);
  const bool was_held = answer.outcome == permit::Answer::Outcome::kReleased;
  if (held.is_named) {
    if (was_held) held.watch(Event::kReleased);
  } else {
    held.watch(was_held ? Event::kGivenBack : Event::kEnded);
  }
}

void MemoryDecider::Renew(HeldPermit& held, base::Instant now) {
  held.watch(Event::kExpired, permits_.Do(held.key, held.ask, now).expired);
}

}  // namespace headgate::limiter
