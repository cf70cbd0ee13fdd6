#include "headgate/store/dynamodb/server_time.h"

#include <algorithm>
#include <chrono>

#include "headgate/client/http/client.h"

namespace headgate::store::dynamodb {
namespace {

using base::Duration;
using base::Instant;

// Twice the rate at which NTP slews a clock.
constexpr int64_t kDriftPerMille = 1;

}  // namespace

std::optional<std::string> ServerTime::OnAnswer(Instant sent, Instant received,
                                                const std::string& date) {
  const std::optional<base::WallTime> second = client::http::ParseDate(date);
  if (!second) return std::nullopt;
  const Duration least = Duration(sent.ns - second->ns) - std::chrono::seconds(1);
  const Duration most(received.ns - second->ns);
  const std::lock_guard lock(mutex_);
  const Duration drift = std::max(Duration(0), received - known_at_) / 1000 * kDriftPerMille;
  const Duration closer_least = std::max(least, ahead_least_ - drift);
  const Duration closer_most = std::min(most, ahead_most_ + drift);
  // If the new bounds contradict the known ones, one of the clocks was set.
  const bool agrees = is_known_ && closer_least <= closer_most;
  ahead_least_ = agrees ? closer_least : least;
  ahead_most_ = agrees ? closer_most : most;
  known_at_ = agrees ? std::max(received, known_at_) : received;
  is_known_ = true;
  const Duration uncertainty = (ahead_most_ - ahead_least_) / 2;
  return offset_.OnMeasured(ahead_least_ + uncertainty, uncertainty);
}

std::optional<Instant> ServerTime::Now() const {
  const Duration ahead = offset_.correction();
  return ahead == Duration(0) ? std::nullopt : std::optional(clock_.Now() - ahead);
}

}  // namespace headgate::store::dynamodb
