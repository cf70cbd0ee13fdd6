// DEL, EXISTS, TTL and PTTL, for counters and for the buckets of CL.THROTTLE and GCRA. A bucket is
// a key that expires when it is full again.
#pragma once

#include <optional>
#include <string_view>

#include "headgate/front/resp/counter_verbs.h"
#include "headgate/front/resp/turn.h"
#include "headgate/limiter/own_limits.h"
#include "headgate/wire/resp_parser.h"

namespace headgate::front::resp {

// One per loop.
class KeyVerbs {
 public:
  KeyVerbs(limiter::Checker& checker, CounterVerbs& counters)
      : own_(checker), counters_(counters) {}

  // Resets the buckets, and removes the counters. The reply is the number of keys that existed;
  // with a shared store every key counts, and it is an error if the store cannot be asked.
  Answered Del(const wire::RespParser& command, const Turn& turn);

  // Errors with a shared store.
  Answered Exists(const wire::RespParser& command, const Turn& turn);
  Answered Ttl(base::Duration unit, const wire::RespParser& command, const Turn& turn);

 private:
  // How long the key exists in this process's memory: until the counter expires, or the bucket is
  // full. Empty if it does not exist; kForever for a counter that does not expire.
  static constexpr base::Duration kForever = base::Duration::max();
  std::optional<base::Duration> Life(std::string_view key, base::Instant now);
  class Deletion;
  Answered DelShared(const wire::RespParser& command, const Turn& turn);

  const limiter::OwnLimits own_;
  CounterVerbs& counters_;
};

}  // namespace headgate::front::resp
