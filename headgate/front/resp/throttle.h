// CL.THROTTLE, the verb of redis-cell: a token bucket under a name of the client's choice, whose limit comes with each
// request.
//
//   CL.THROTTLE key max_burst count period_s [quantity]   →   [limited, limit, remaining, retry_after_s, reset_after_s]
//
// Commands that arrive together are decided together: they are collected, decided by one call of the store, and
// answered in their order. Neither allocates, once a limit is known. Specification and differences from redis-cell:
// docs/reference/redis-protocol.md.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "headgate/algorithm/decision.h"
#include "headgate/base/status.h"
#include "headgate/base/time.h"
#include "headgate/front/resp/counters.h"
#include "headgate/front/resp/limit_cache.h"
#include "headgate/store/store.h"
#include "headgate/wire/resp_parser.h"

namespace headgate::front::resp {

// As Rust's i64::from_str, which redis-cell uses: a sign or none, decimal digits, nothing else, within 64 bits.
std::optional<int64_t> ParseInteger(std::string_view text);

// One per loop. Between two calls of OnBytes it is empty.
class ThrottleBatch {
 public:
  ThrottleBatch(store::Store& store, Counters& counters) : store_(store), counters_(counters) {}

  // Takes one command; what has to be answered at once (a full batch, an error) is appended to `output`.
  void Add(const wire::RespParser& command, std::string& output, base::Instant now);

  // Decides what was collected and appends the replies.
  void Flush(std::string& output, base::Instant now);

 private:
  static constexpr size_t kCommandsMax = 64;  // twice the usual depth of a pipeline; the replies fit on the stack

  struct Arguments {
    ThrottleLimit limit;
    int64_t quantity = 1;
  };
  static absl::Status ReadArguments(const wire::RespParser& command, Arguments& arguments);
  static absl::Status CheckArguments(const Arguments& arguments);
  absl::StatusOr<store::LimitHandle> MakeLimit(const ThrottleLimit& limit);
  void Refuse(const absl::Status& status, std::string& output, base::Instant now);

  store::Store& store_;
  Counters& counters_;
  LimitCache limits_;
  size_t size_ = 0;
  std::array<store::TakeRequest, kCommandsMax> requests_;
  std::array<algorithm::Decision, kCommandsMax> decisions_;
};

}  // namespace headgate::front::resp
