// DynamoDB's clock, from the Date fields of its answers, for instances whose own clock is wrong.
//
// A Date has whole seconds. DynamoDB wrote it between the sending of a request and the arrival of
// the answer, so one answer tells how far our clock is ahead to within a second and the time of the
// call:
//
//   sent − (date + 1 s)  <  ahead  ≤  received − date
//
// Seconds begin at different moments of different calls, so the bounds of many answers together are
// much closer: between the answers right before and right after the end of a second, only the
// duration of the calls is uncertain. The bounds are widened as time passes, since no two clocks
// run at the same rate.
//
// A clock that is certainly too far away is corrected (cas/clock_offset.h). Any thread may call.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "headgate/base/clock.h"
#include "headgate/store/cas/clock_offset.h"

namespace headgate::store::dynamodb {

class ServerTime {
 public:
  // The clock of decisions, which must outlive this object.
  explicit ServerTime(const base::DisciplinedClock& clock) : clock_(clock) {}
  ServerTime(const ServerTime&) = delete;

  // The time of our clock, uncorrected.
  base::Instant OurTime() const { return clock_.Now(); }
  // An answer with this Date came at `received` to a request that was sent at `sent`. Returns the
  // text of an alarm if our clock is found to be too far away. Ignores text that is not a date.
  std::optional<std::string> OnAnswer(base::Instant sent, base::Instant received,
                                      const std::string& date);

  // DynamoDB's time, if our clock is too far away; nothing if it is near enough or nothing is
  // known.
  std::optional<base::Instant> Now() const;
  // How far our clock is ahead, as last measured; nothing before.
  std::optional<base::Duration> offset() const { return offset_.last(); }

 private:
  const base::DisciplinedClock& clock_;
  std::mutex mutex_;
  // Guarded by mutex_: the bounds between which our clock is ahead, and the time at which they
  // held.
  bool is_known_ = false;
  base::Duration ahead_least_{0};
  base::Duration ahead_most_{0};
  base::Instant known_at_{0};
  cas::ClockOffset offset_;  // measured under mutex_, read without it
};

}  // namespace headgate::store::dynamodb
