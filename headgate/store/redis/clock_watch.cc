#include "headgate/store/redis/clock_watch.h"

#include <algorithm>

namespace headgate::store::redis {

using base::BootTime;
using base::Duration;
using base::Instant;

std::optional<Duration> ClockWatch::OnAnswer(Instant clock, BootTime asked, BootTime answered) {
  while (answers_.size() > 1 && asked - answers_.front().asked > memory_) answers_.pop_front();
  std::optional<Duration> missed;
  for (const Answer& answer : answers_) {
    const Duration ours = answered - answer.asked;  // at least the time between the two readings
    const Duration ahead = clock - answer.clock - ours;
    if (ahead > kStep + ours / 1000 * kDriftPerMille)
      missed = std::max(missed.value_or(ahead), ahead);
  }
  if (missed) answers_.clear();
  answers_.push_back({.clock = clock, .asked = asked});
  if (answers_.size() > kAnswersMax) answers_.pop_front();
  return missed;
}

}  // namespace headgate::store::redis
