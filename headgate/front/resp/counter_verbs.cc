#include "headgate/front/resp/counter_verbs.h"

#include <fmt/format.h>

#include "headgate/base/decimal.h"
#include "headgate/base/hash.h"
#include "headgate/front/resp/increx_arguments.h"
#include "headgate/front/resp/throttle_reply.h"

namespace headgate::front::resp {
namespace {

using algorithm::CounterAnswer;
using algorithm::CounterChange;
using algorithm::CounterExpiry;
using Outcome = CounterAnswer::Outcome;

// In the words of Redis, if it has such an error.
absl::Status ErrorOf(Outcome outcome) {
  switch (outcome) {
    case Outcome::kApplied:
    case Outcome::kRefused:
      return absl::OkStatus();
    case Outcome::kNotAnInteger:
      return absl::FailedPreconditionError("value is not an integer or out of range");
    case Outcome::kNotANumber:
      return absl::FailedPreconditionError("value is not a valid float");
    case Outcome::kAppliedOverflow:
      return absl::OutOfRangeError("applied increment would overflow");
    case Outcome::kTooManyDigits:
      return absl::OutOfRangeError("the value would need more than 64 bits for its digits");
    case Outcome::kWrongType:
      return absl::FailedPreconditionError(std::string(kWrongType));
  }
  __builtin_unreachable();
}

absl::Status UnansweredError(const absl::Status& why) {
  if (absl::IsDeadlineExceeded(why) || absl::IsAborted(why)) {
    return absl::UnavailableError(
        fmt::format("{}: the counter may have been incremented", kStoreUnreachable));
  }
  return absl::UnavailableError(std::string(kStoreUnreachable));
}

void WriteReply(const CounterAnswer& answer, CounterChange::Kind kind, wire::RespWriter reply) {
  reply.Array(2);
  for (const base::Decimal& number : {answer.value, answer.applied}) {
    if (kind == CounterChange::Kind::kInteger) {
      reply.Integer(number.units);
    } else {
      reply.Double(base::ToText(number));
    }
  }
}

}  // namespace

absl::StatusOr<bool> CounterVerbs::Answer(const wire::RespParser& command,
                                          wire::RespVersion version, const ThrottleTurn& turn) {
  HEADGATE_ASSIGN_OR_RETURN(const CounterChange change, ReadIncrex(command));
  if (turn.counts.empty()) Ask(command[1], change, turn);
  if (turn.counts.waiting()) return false;
  const limiter::CountAnswer answer = turn.counts.TakeNext();
  if (!answer.ok()) {
    if (!checker_.may_wait()) return answer.status();
    checker_.ObserveOwnLimits(limiter::Outcome::kUnavailable, 1);
    return UnansweredError(answer.status());
  }
  HEADGATE_RETURN_IF_ERROR(ErrorOf(answer->outcome));
  checker_.ObserveOwnLimits(
      answer->outcome == Outcome::kApplied ? limiter::Outcome::kAllowed : limiter::Outcome::kDenied,
      1);
  WriteReply(*answer, change.kind, wire::RespWriter(turn.output, version));
  return true;
}

bool CounterVerbs::AskAhead(const wire::RespParser& command, const ThrottleTurn& turn) {
  if (turn.counts.size() == kAskedMax) return false;
  const auto change = ReadIncrex(command);
  if (!change.ok()) return false;
  Ask(command[1], *change, turn);
  return true;
}

void CounterVerbs::Delete(std::string_view key, const ThrottleTurn& turn) {
  // A change by 0 with an expiry in the past removes the counter, whatever its value.
  Ask(key,
      {.kind = CounterChange::Kind::kDecimal,
       .by = base::Decimal::Integer(0),
       .expiry = {.kind = CounterExpiry::Kind::kAt, .time = std::chrono::milliseconds(1)}},
      turn);
}

void CounterVerbs::Ask(std::string_view key, const CounterChange& change,
                       const ThrottleTurn& turn) {
  name_.clear();
  if (checker_.may_wait()) limiter::AppendCounter(checker_.naming(), key, name_);
  checker_.decider().Increment(
      {.key = base::HashBytes(checker_.store().hash_secret(), base::KeyKind::kRaw, key),
       .name = name_,
       .change = change},
      turn.counts, turn.now);
}

}  // namespace headgate::front::resp
