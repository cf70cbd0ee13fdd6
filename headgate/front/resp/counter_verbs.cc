#include "headgate/front/resp/counter_verbs.h"

#include <fmt/format.h>

#include "headgate/base/decimal.h"
#include "headgate/base/hash.h"
#include "headgate/front/resp/increx_arguments.h"
#include "headgate/front/resp/throttle_reply.h"
#include "headgate/front/resp/verb_replies.h"

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

// An increment whose answer comes later.
class CounterVerbs::Late final : public LateReply {
 public:
  explicit Late(const CounterVerbs& verbs) : LateReply(CommandKind::kCount), verbs_(verbs) {}

  Answered Write(std::string& output, base::Instant /*now*/) override {
    if (counts.waiting()) return Answered::kLater;
    return verbs_.Reply(counts.TakeNext(), kind_of_change, version, output);
  }

  limiter::PendingCounts counts{[this] { Wake(); }};
  CounterChange::Kind kind_of_change{};
  wire::RespVersion version{};

 private:
  const CounterVerbs& verbs_;
};

CounterVerbs::CounterVerbs(limiter::Checker& checker) : own_(checker) {}

CounterVerbs::~CounterVerbs() = default;

Answered CounterVerbs::Answer(const wire::RespParser& command, wire::RespVersion version,
                              const Turn& turn) {
  const auto change = ReadIncrex(command);
  if (!change.ok()) return WriteError(change.status(), turn.output);
  if (next_ == nullptr) next_ = std::make_unique<Late>(*this);
  next_->kind_of_change = change->kind;
  next_->version = version;
  Ask(command[1], *change, next_->counts, turn.now);
  if (!next_->counts.waiting()) return next_->Write(turn.output, turn.now);
  turn.queue.Add(std::move(next_));
  return Answered::kLater;
}

Answered CounterVerbs::Reply(const limiter::CountAnswer& answer, CounterChange::Kind kind,
                             wire::RespVersion version, std::string& output) const {
  if (!answer.ok()) {
    if (!own_.may_wait()) return WriteError(answer.status(), output);
    own_.Observe(limiter::Outcome::kUnavailable, 1);
    return WriteError(UnansweredError(answer.status()), output);
  }
  if (const absl::Status error = ErrorOf(answer->outcome); !error.ok())
    return WriteError(error, output);
  own_.Observe(
      answer->outcome == Outcome::kApplied ? limiter::Outcome::kAllowed : limiter::Outcome::kDenied,
      1);
  WriteReply(*answer, kind, wire::RespWriter(output, version));
  return Answered::kWell;
}

void CounterVerbs::Delete(std::string_view key, limiter::PendingCounts& counts, base::Instant now) {
  // A change by 0 with an expiry in the past removes the counter, whatever its value.
  Ask(key,
      {.kind = CounterChange::Kind::kDecimal,
       .by = base::Decimal::Integer(0),
       .expiry = {.kind = CounterExpiry::Kind::kAt, .time = std::chrono::milliseconds(1)}},
      counts, now);
}

void CounterVerbs::Ask(std::string_view key, const CounterChange& change,
                       limiter::PendingCounts& counts, base::Instant now) {
  own_.Increment(key, change, name_, counts, now);
}

}  // namespace headgate::front::resp
