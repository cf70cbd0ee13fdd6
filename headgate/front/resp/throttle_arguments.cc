#include "headgate/front/resp/throttle_arguments.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>

#include "headgate/base/text.h"
#include "headgate/front/resp/throttle_rate.h"
#include "headgate/front/resp/throttle_script.h"
#include "headgate/front/resp/verb_replies.h"
#include "headgate/wire/resp_parser.h"

namespace headgate::front::resp {
namespace {

// This many digits cannot overflow.
constexpr size_t kDigitsSafe = 18;
constexpr size_t kFractionDigitsMax = 9;

absl::Status NotAnInteger(std::string_view word) {
  return absl::InvalidArgumentError(
      fmt::format("Couldn't parse as integer: {}", word.substr(0, kEchoedMax)));
}

absl::Status Negative(std::string_view name, int64_t value) {
  return absl::InvalidArgumentError(fmt::format("{} must not be negative: {}", name, value));
}

// The first three arguments of both forms, up to `period`.
template <typename Words>
absl::Status ReadIntegers(const Words& words, size_t end, ThrottleArguments& arguments) {
  int64_t* const targets[] = {&arguments.limit.max_burst, &arguments.limit.count,
                              &arguments.limit.period_s, &arguments.quantity};
  for (size_t i = 2; i < end; ++i) {
    const std::optional<int64_t> number = ParseInteger(words[i]);
    if (!number) [[unlikely]]
      return NotAnInteger(words[i]);
    *targets[i - 2] = *number;
  }
  return absl::OkStatus();
}

// Seconds as a decimal number, exactly: a period is never rounded.
absl::Status ReadPeriod(std::string_view text, ThrottleLimit& limit) {
  const size_t point = std::min(text.find('.'), text.size());
  const std::string_view fraction = text.substr(std::min(point + 1, text.size()));
  const std::optional<int64_t> seconds = ParseInteger(text.substr(0, point));
  const bool digits = fraction.find_first_not_of("0123456789") == std::string_view::npos;
  if (!seconds || !digits || fraction.size() > kFractionDigitsMax ||
      (point < text.size() && fraction.empty())) {
    return absl::InvalidArgumentError(
        fmt::format("the period must be a number of seconds up to {} with at most 9 decimals, not "
                    "'{}'",
                    std::numeric_limits<int64_t>::max(), text.substr(0, kEchoedMax)));
  }
  int64_t ns = 0;
  for (size_t i = 0; i < kFractionDigitsMax; ++i)
    ns = ns * 10 + (i < fraction.size() ? fraction[i] - '0' : 0);
  if (text.starts_with('-')) {
    return absl::InvalidArgumentError(
        fmt::format("period must not be negative: {}", text.substr(0, kEchoedMax)));
  }
  limit.period_s = *seconds;
  limit.period_ns = ns;
  return absl::OkStatus();
}

}  // namespace

std::optional<int64_t> ParseInteger(std::string_view text) {
  bool negative = false;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  if (text.empty()) return std::nullopt;
  uint64_t value = 0;
  if (text.size() <= kDigitsSafe) {
    for (const char c : text) {
      const auto digit = static_cast<unsigned>(c - '0');
      if (digit > 9) return std::nullopt;
      value = value * 10 + digit;
    }
  } else {
    const char* const end = text.data() + text.size();
    const auto [parsed, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || parsed != end) return std::nullopt;
    if (value > uint64_t{std::numeric_limits<int64_t>::max()} + (negative ? 1 : 0))
      return std::nullopt;
  }
  return static_cast<int64_t>(negative ? ~value + 1 : value);
}

template <typename Words>
absl::Status ReadArguments(ThrottleForm form, const Words& words, ThrottleArguments& arguments) {
  if (form == ThrottleForm::kCell) [[likely]] {
    if (words.size() < 5 || words.size() > 6) [[unlikely]] {
      return absl::InvalidArgumentError(
          "Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]");
    }
    return ReadIntegers(words, words.size(), arguments);
  }
  if ((words.size() != 5 && words.size() != 7) ||
      (words.size() == 7 && !base::EqualsIgnoreCase(words[5], "tokens"))) {
    return absl::InvalidArgumentError(
        "syntax error: GCRA key max_burst tokens_per_period period [TOKENS count]");
  }
  HEADGATE_RETURN_IF_ERROR(ReadIntegers(words, 4, arguments));
  HEADGATE_RETURN_IF_ERROR(ReadPeriod(words[4], arguments.limit));
  if (words.size() == 5) return absl::OkStatus();
  const std::optional<int64_t> tokens = ParseInteger(words[6]);
  if (!tokens) return NotAnInteger(words[6]);
  arguments.quantity = *tokens;
  return absl::OkStatus();
}

template absl::Status ReadArguments(ThrottleForm, const wire::RespParser&, ThrottleArguments&);
template absl::Status ReadArguments(ThrottleForm, const CommandWords&, ThrottleArguments&);

absl::Status CheckArguments(const ThrottleArguments& arguments) {
  const ThrottleLimit& limit = arguments.limit;
  if (limit.max_burst < 0) return Negative("max_burst", limit.max_burst);
  if (limit.count < 0) return Negative("count per period", limit.count);
  if (limit.period_s < 0) return Negative("period", limit.period_s);
  if (limit.count == 0 || (limit.period_s == 0 && limit.period_ns == 0))
    return absl::InvalidArgumentError("Zero rates are not supported");
  if (arguments.quantity < 0) return Negative("quantity", arguments.quantity);
  if (limit.max_burst == std::numeric_limits<int64_t>::max()) {
    return absl::InvalidArgumentError(
        fmt::format("max_burst must be less than {}", limit.max_burst));
  }
  return absl::OkStatus();
}

absl::StatusOr<algorithm::Limit> LimitOf(const ThrottleLimit& limit) {
  HEADGATE_ASSIGN_OR_RETURN(const ThrottleRate rate,
                            RateOf(limit.count, limit.period_s, limit.period_ns));
  return algorithm::Limit::Make({.requests = rate.requests,
                                 .period = rate.period,
                                 .burst = static_cast<uint64_t>(limit.max_burst) + 1});
}

}  // namespace headgate::front::resp
