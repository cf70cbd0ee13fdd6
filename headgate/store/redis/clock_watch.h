// Detects that our clock missed a pause. Leases expire by CLOCK_BOOTTIME, which advances while the
// machine is suspended. But some hypervisors stop a virtual machine together with this clock. The
// store's clock keeps running, so a lease that has expired at the store would still be spent here.
// A server's clock reveals this: between two answers it cannot advance further than ours, except
// for the drift of two clocks.
//
// If the clock of a server is set forward, that looks like a pause, and the held leases are lost. A
// pause shorter than the margin of leases goes undetected, and does no harm.
#pragma once

#include <deque>
#include <optional>

#include "headgate/base/clock.h"
#include "headgate/base/time.h"

namespace headgate::store::redis {

// For one server. Not thread-safe.
class ClockWatch {
 public:
  // Tolerances for a different rate, and for small steps of the server's clock. Over the life of a
  // lease plus one second they add up to the lease's margin, 5 % of 2 s.
  static constexpr int64_t kDriftPerMille = 25;
  static constexpr base::Duration kStep = std::chrono::milliseconds(25);

  // An answer is compared with the answers of the last `memory`, and at least with the previous
  // one.
  explicit ClockWatch(base::Duration memory) : memory_(memory) {}

  // The server's clock was `clock` at some moment between `asked` and `answered`. Returns how much
  // further the server's clock has advanced than ours, if that exceeds the tolerances; later
  // answers are then compared with this one.
  std::optional<base::Duration> OnAnswer(base::Instant clock, base::BootTime asked,
                                         base::BootTime answered);

  // Another server answers now.
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
