#include "headgate/limiter/unavailable.h"

#include <fmt/format.h>

#include <string_view>

namespace headgate::limiter {
namespace {

std::string_view DescribeNoAnswer(NoAnswer why) {
  switch (why) {
    case NoAnswer::kUnreachable:
      return "the shared store cannot be reached";
    case NoAnswer::kBusy:
      return "the shared store, or this key in it, has too many calls at once";
    case NoAnswer::kLocked:
      return "other instances had the lock of the key for longer than store_lock_timeout";
    case NoAnswer::kRefused:
      return "the shared store refuses access to its user";
    case NoAnswer::kDamaged:
      return "the bucket in the shared store is damaged until a reset removes it";
    case NoAnswer::kNotStorable:
      return "the bucket is too large for the shared store";
  }
  return "";
}

}  // namespace

std::string LabelOf(const rule::Rule* rule) {
  return rule != nullptr ? fmt::format("rule {}", rule->label()) : "the request's own limit";
}

absl::Status Unavailable(Operation operation, const rule::Rule* rule, bool perhaps_done,
                         NoAnswer why) {
  const std::string of = LabelOf(rule);
  const std::string_view cause = perhaps_done && why == NoAnswer::kUnreachable
                                     ? "the shared store has not answered in time"
                                     : DescribeNoAnswer(why);
  const auto message = [&] {
    switch (operation) {
      case Operation::kRefund:
        return perhaps_done ? fmt::format("{}: {} may have been refunded", cause, of)
                            : fmt::format("{}: nothing was refunded to {}", cause, of);
      case Operation::kReset:
        return perhaps_done ? fmt::format("{}: the buckets of {} may have been reset", cause, of)
                            : fmt::format("{}: no bucket of {} was reset", cause, of);
      default:
        return fmt::format("{}, and {} then refuses requests", cause, of);
    }
  };
  return absl::UnavailableError(message());
}

}  // namespace headgate::limiter
