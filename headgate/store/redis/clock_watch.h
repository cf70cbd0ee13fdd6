// Whether our clock has missed a pause. Leases are counted by CLOCK_BOOTTIME, which counts while
// the machine is suspended. Some virtual machines are stopped without their knowing: then the store
// counts on, and a lease that is over there would be spent here. A server's clock tells: it cannot
// move further between two answers than ours did, but for what two clocks may differ by.
//
// A server whose clock is set forward looks the same, and costs the leases that are held. A pause
// that is shorter than the margin of leases shows in nothing, and needs not.
#pragma once

#include <deque>
#include <optional>

#include "headgate/base/clock.h"
#include "headgate/base/time.h"

namespace headgate::store::redis {

// Of one server. Not thread-safe.
class ClockWatch {
 public:
  // Allowed for: a rate that differs, and small steps of the server's clock. Over the life of a
  // lease and a second that is what its margin leaves, 5 % of 2 s.
  static constexpr int64_t kDriftPerMille = 25;
  static constexpr base::Duration kStep = std::chrono::milliseconds(25);

  // Answers are compared with those of the last `memory`, and at least with the last one.
  explicit ClockWatch(base::Duration memory) : memory_(memory) {}

  // The server's clock was `clock` at a moment between these two of ours. Returns how much further
  // than ours it has moved, where that is more than is allowed for; from then on it is compared
  // with this answer.
  std::optional<base::Duration> OnAnswer(base::Instant clock, base::BootTime asked,
                                         base::BootTime answered);

  // It is another server.
  void Reset() { answers_.clear(); }

 private:
  static constexpr size_t kAnswersMax = 8;

  struct Answer {
    base::Instant clock;
    base::BootTime asked;
  };

  const base::Duration memory_;
  std::deque<Answer> answers_;
};

}  // namespace headgate::store::redis
