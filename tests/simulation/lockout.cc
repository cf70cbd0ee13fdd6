#include "tests/simulation/lockout.h"

#include <algorithm>

namespace headgate::simulation {

using base::Duration;
using base::Instant;

void Lockout::OnAnswer(uint64_t leased, uint64_t holders, Duration at, Instant wall) {
  leased_ = leased;
  holders_ = holders;
  const uint64_t room = consumed_.Room(at, wall);
  const Sample sample{.at = at,
                      .room = (room - std::min(room, leased + kept_)) / (2 * (holders + 1))};
  while (!least_.empty() && least_.back().room >= sample.room) least_.pop_back();
  least_.push_back(sample);
}

bool Lockout::IsLockedOut(uint64_t cost, Duration at, Instant wall) {
  OnAnswer(leased_, holders_, at, wall);
  if (at < blind_until_ + term_ || at < term_) return false;
  // An earlier sample has the state at the beginning of the term.
  while (least_.size() > 1 && least_[1].at <= at - term_) least_.pop_front();
  return least_.front().at <= at - term_ && least_.front().room >= cost;
}

}  // namespace headgate::simulation
