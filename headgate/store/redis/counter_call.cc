#include "headgate/store/redis/counter_call.h"

#include "headgate/base/decimal.h"
#include "headgate/store/redis/bucket_call.h"
#include "headgate/store/redis/error_text.h"
#include "headgate/store/redis/script_texts.h"

namespace headgate::store::redis {
namespace {

using algorithm::CounterAnswer;
using algorithm::CounterChange;
using algorithm::CounterExpiry;
using base::ToText;
using wire::RespValue;

std::string_view WordOf(CounterExpiry::Kind kind) {
  switch (kind) {
    case CounterExpiry::Kind::kKeep:
      return "keep";
    case CounterExpiry::Kind::kRemove:
      return "remove";
    case CounterExpiry::Kind::kIn:
      return "in";
    case CounterExpiry::Kind::kAt:
      return "at";
  }
  __builtin_unreachable();
}

}  // namespace

CounterCall::CounterCall(const SharedCount& request)
    : key_(request.name.size() > kNameBytesMax ? HashedName(request.name)
                                               : std::string(request.name)) {
  const CounterChange& change = request.change;
  const auto flag = [](bool set) { return std::string(set ? "1" : "0"); };
  words_ = {change.kind == CounterChange::Kind::kInteger ? "int" : "dec",
            ToText(change.by),
            ToText(change.least),
            ToText(change.most),
            flag(change.saturates),
            std::string(WordOf(change.expiry.kind)),
            std::to_string(change.expiry.time.count()),
            flag(change.expiry.only_if_none)};
}

const Script& CounterCall::script() {
  static const Script script = MakeScript("counter", kCounterText);
  return script;
}

absl::StatusOr<CounterAnswer> CounterCall::Read(const RespValue& reply) {
  if (reply.is_error()) return absl::UnavailableError(WithoutArguments(reply.text));
  if (reply.kind != RespValue::Kind::kArray || reply.items.empty())
    return Unreadable("counter", reply);
  const int64_t outcome = reply.items[0].integer;
  if (outcome < 0 || outcome > static_cast<int64_t>(CounterAnswer::Outcome::kWrongType))
    return Unreadable("counter", reply);
  CounterAnswer answer{.outcome = static_cast<CounterAnswer::Outcome>(outcome)};
  if (reply.items.size() == 1) return answer;
  if (reply.items.size() != 3 ||
      base::ParseDecimal(reply.items[1].text, answer.value) != base::DecimalProblem::kNone ||
      base::ParseDecimal(reply.items[2].text, answer.applied) != base::DecimalProblem::kNone)
    return Unreadable("counter", reply);
  return answer;
}

}  // namespace headgate::store::redis
