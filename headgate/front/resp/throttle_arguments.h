// The arguments of the commands that bring their own limit: CL.THROTTLE and GCRA.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "headgate/algorithm/limit.h"
#include "headgate/base/status.h"
#include "headgate/front/resp/limit_cache.h"

namespace headgate::front::resp {

enum class ThrottleForm : uint8_t {
  kCell,  // CL.THROTTLE key max_burst count period_s [quantity], of redis-cell
  kGcra,  // GCRA key max_burst count period [TOKENS quantity], the period with fractions of a
          // second
};

struct ThrottleArguments {
  ThrottleLimit limit;
  int64_t quantity = 1;
};

// Parses like Rust's i64::from_str, which redis-cell uses: an optional sign and decimal digits,
// nothing else, within 64 bits.
std::optional<int64_t> ParseInteger(std::string_view text);

// Reads the words of a command, the first of which is its name. `Words` is a wire::RespParser or
// CommandWords. Does not check ranges.
template <typename Words>
absl::Status ReadArguments(ThrottleForm form, const Words& words, ThrottleArguments& arguments);

// InvalidArgument if a number is out of range.
absl::Status CheckArguments(const ThrottleArguments& arguments);

// InvalidArgument if no limit has this rate.
absl::StatusOr<algorithm::Limit> LimitOf(const ThrottleLimit& limit);

// The words before the message of an error. For CL.THROTTLE the words are redis-cell's, because its
// clients may search for them.
inline std::string_view ErrorPrefix(ThrottleForm form) {
  return form == ThrottleForm::kCell ? "Cell error: Store error: " : "ERR ";
}

}  // namespace headgate::front::resp
