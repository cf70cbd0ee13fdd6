#include "headgate/permit/permit_set.h"

#include <algorithm>
#include <utility>

namespace headgate::permit {

using base::Duration;
using base::Instant;

namespace {

bool EndsBefore(const Permit& a, const Permit& b) { return a.end < b.end; }

}  // namespace

PermitSet::PermitSet(std::vector<Permit> permits) : permits_(std::move(permits)) {
  std::stable_sort(permits_.begin(), permits_.end(), EndsBefore);
}

Answer PermitSet::Do(const Ask& ask, Instant now) {
  now = base::Clamp(now);
  Answer answer{.expired = DropEnded(now)};
  switch (ask.kind) {
    case Ask::Kind::kAcquire: {
      const Instant end = now + std::clamp(ask.ttl, Duration(1), kTtlMax);
      if (const auto held = Find(ask.id); held != permits_.end()) {
        answer.outcome = Answer::Outcome::kHeld;
        if (held->end >= end) break;
        permits_.erase(held);
      } else if (permits_.size() >= ask.max) {
        break;
      } else {
        answer.outcome = Answer::Outcome::kGranted;
      }
      Insert({.id = ask.id, .end = end});
      break;
    }
    case Ask::Kind::kRelease:
      if (const auto held = Find(ask.id); held != permits_.end()) {
        permits_.erase(held);
        answer.outcome = Answer::Outcome::kReleased;
      } else {
        answer.outcome = Answer::Outcome::kUnknown;
      }
      break;
    case Ask::Kind::kPeek:
      if (permits_.size() < ask.max) answer.outcome = Answer::Outcome::kGranted;
      break;
    case Ask::Kind::kClear:
      answer.outcome = permits_.empty() ? Answer::Outcome::kUnknown : Answer::Outcome::kReleased;
      permits_.clear();
      break;
  }
  answer.in_flight = static_cast<uint32_t>(permits_.size());
  if (!permits_.empty()) {
    answer.first_end_after = permits_.front().end - now;
    answer.last_end_after = permits_.back().end - now;
  }
  return answer;
}

uint32_t PermitSet::CountAt(Instant now) const {
  const auto live =
      std::upper_bound(permits_.begin(), permits_.end(), now,
                       [](Instant t, const Permit& permit) { return t < permit.end; });
  return static_cast<uint32_t>(permits_.end() - live);
}

std::vector<Permit>::iterator PermitSet::Find(const Id& id) {
  return std::find_if(permits_.begin(), permits_.end(),
                      [&](const Permit& permit) { return permit.id == id; });
}

void PermitSet::Insert(const Permit& permit) {
  permits_.insert(std::upper_bound(permits_.begin(), permits_.end(), permit, EndsBefore), permit);
}

uint32_t PermitSet::DropEnded(Instant now) {
  const auto ended = static_cast<ptrdiff_t>(permits_.size() - CountAt(now));
  permits_.erase(permits_.begin(), permits_.begin() + ended);
  return static_cast<uint32_t>(ended);
}

}  // namespace headgate::permit
