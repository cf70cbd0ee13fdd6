// HG.CHECKM: several buckets as CL.THROTTLE has them, all or nothing.
//
//   HG.CHECKM key max_burst count period_s quantity [key max_burst count period_s quantity …]
//     →  [limited, [the reply of CL.THROTTLE], …]
//
// Unless every bucket allows its quantity, nothing is taken from any of them.
#pragma once

#include <vector>

#include "headgate/base/status.h"
#include "headgate/front/resp/throttle.h"
#include "headgate/limiter/own_limits.h"
#include "headgate/wire/resp_parser.h"

namespace headgate::front::resp {

// One per loop. Its memory is reused for all commands.
class ThrottleGroup {
 public:
  static constexpr size_t kKeysMax = 32;

  explicit ThrottleGroup(limiter::Checker& checker) : own_(checker) {}

  // Writes the reply, or an error that says what is wrong with the command; then nothing is taken.
  Answered Answer(const wire::RespParser& command, const Turn& turn);

 private:
  absl::Status Read(const wire::RespParser& command);
  absl::Status Reply(base::Strided<const limiter::Settled> settled, std::string& output) const;

  const limiter::OwnLimits own_;
  std::vector<limiter::BatchEntry> batch_;
  std::vector<store::LimitHandle> limits_;  // pins the limits of batch_
};

}  // namespace headgate::front::resp
