// DEL, EXISTS, TTL and PTTL, for the buckets of CL.THROTTLE and GCRA. A bucket is a key that
// expires when it is full again.
#pragma once

#include <vector>

#include "headgate/base/status.h"
#include "headgate/front/resp/throttle.h"
#include "headgate/limiter/checker.h"
#include "headgate/wire/resp_parser.h"

namespace headgate::front::resp {

// One per loop. Its memory is reused for all commands.
class KeyVerbs {
 public:
  explicit KeyVerbs(limiter::Checker& checker) : checker_(checker) {}

  // Resets the buckets. True: the reply, the number of keys that existed, was written. False:
  // nothing was written; call again with the same command when the turn's Pending is ready. With a
  // shared store every key counts. Unavailable if the shared store cannot be asked.
  absl::StatusOr<bool> Del(const wire::RespParser& command, const ThrottleTurn& turn);

  // Write the reply. Unimplemented with a shared store.
  absl::Status Exists(const wire::RespParser& command, const ThrottleTurn& turn);
  absl::Status Ttl(base::Duration unit, const wire::RespParser& command, const ThrottleTurn& turn);

 private:
  base::Hash128 HashOf(std::string_view key) const;
  // The time until the bucket of this process's memory is full; 0 if it is full.
  base::Duration UntilFull(std::string_view key, base::Instant now);
  void Reset(std::string_view key, const store::LimitEntry& limit, base::Instant now);
  absl::StatusOr<bool> DelShared(const wire::RespParser& command, const ThrottleTurn& turn);
  absl::Status ReplyDeleted(base::Strided<const limiter::Settled> settled, std::string& output);

  limiter::Checker& checker_;
  std::vector<limiter::BatchEntry> batch_;
};

}  // namespace headgate::front::resp
