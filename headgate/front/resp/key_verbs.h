// DEL, EXISTS, TTL and PTTL, for counters and for the buckets of CL.THROTTLE and GCRA. A bucket is
// a key that expires when it is full again.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "headgate/base/status.h"
#include "headgate/front/resp/counter_verbs.h"
#include "headgate/front/resp/throttle.h"
#include "headgate/limiter/checker.h"
#include "headgate/wire/resp_parser.h"

namespace headgate::front::resp {

// One per loop. Its memory is reused for all commands.
class KeyVerbs {
 public:
  KeyVerbs(limiter::Checker& checker, CounterVerbs& counters)
      : checker_(checker), counters_(counters) {}

  // Resets the buckets, and removes the counters. True: the reply, the number of keys that existed,
  // was written. False: nothing was written; call again with the same command when the turn's
  // Pending or PendingCounts is ready. With a shared store every key counts. Unavailable if the
  // shared store cannot be asked.
  absl::StatusOr<bool> Del(const wire::RespParser& command, const ThrottleTurn& turn);

  // Write the reply. Unimplemented with a shared store.
  absl::Status Exists(const wire::RespParser& command, const ThrottleTurn& turn);
  absl::Status Ttl(base::Duration unit, const wire::RespParser& command, const ThrottleTurn& turn);

 private:
  base::Hash128 HashOf(std::string_view key) const;
  // How long the key exists in this process's memory: until the counter expires, or the bucket is
  // full. Empty if it does not exist; kForever for a counter that does not expire.
  static constexpr base::Duration kForever = base::Duration::max();
  std::optional<base::Duration> Life(std::string_view key, base::Instant now);
  void Reset(std::string_view key, const store::LimitEntry& limit, base::Instant now);
  absl::StatusOr<bool> DelShared(const wire::RespParser& command, const ThrottleTurn& turn);
  absl::Status ReplyDeleted(base::Strided<const limiter::Settled> settled,
                            const ThrottleTurn& turn);

  limiter::Checker& checker_;
  CounterVerbs& counters_;
  std::vector<limiter::BatchEntry> batch_;
};

}  // namespace headgate::front::resp
