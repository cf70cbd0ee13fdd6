#include "headgate/front/resp/increx_arguments.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <string_view>

#include "headgate/base/decimal.h"
#include "headgate/base/text.h"

namespace headgate::front::resp {
namespace {

using algorithm::CounterChange;
using algorithm::CounterExpiry;
using base::Decimal;
using Kind = CounterExpiry::Kind;

absl::Status SyntaxError() { return absl::InvalidArgumentError("syntax error"); }

struct ExpiryOption {
  std::string_view name;
  Kind kind;
  int64_t unit_ms;  // 0: the option has no value
};
constexpr std::array kExpiryOptions{
    ExpiryOption{"ex", Kind::kIn, 1000},       ExpiryOption{"px", Kind::kIn, 1},
    ExpiryOption{"exat", Kind::kAt, 1000},     ExpiryOption{"pxat", Kind::kAt, 1},
    ExpiryOption{"persist", Kind::kRemove, 0},
};

// The words of the command, before they are parsed as numbers: BYFLOAT decides the kind of the
// bounds' numbers, and may come last.
struct Words {
  std::optional<std::string_view> by_integer, by_float, least, most, time;
  const ExpiryOption* expiry = nullptr;
  bool saturates = false;
  bool only_if_none = false;
};

// Each option at most once.
bool SetOnce(bool& flag) { return !std::exchange(flag, true); }

absl::StatusOr<Words> Sort(const wire::RespParser& command) {
  Words words;
  struct Valued {
    std::string_view name;
    std::optional<std::string_view>& value;
  };
  const std::array valued{Valued{"byint", words.by_integer}, Valued{"byfloat", words.by_float},
                          Valued{"lbound", words.least}, Valued{"ubound", words.most}};
  // Takes the value of the option at `i`.
  const auto take = [&](size_t& i, std::optional<std::string_view>& value) {
    if (value || i + 1 == command.size()) return false;
    value = command[++i];
    return true;
  };
  const auto read = [&](size_t& i) {
    const std::string_view word = command[i];
    if (base::EqualsIgnoreCase(word, "saturate")) return SetOnce(words.saturates);
    if (base::EqualsIgnoreCase(word, "enx")) return SetOnce(words.only_if_none);
    for (const auto& [name, value] : valued) {
      if (base::EqualsIgnoreCase(word, name)) return take(i, value);
    }
    for (const ExpiryOption& option : kExpiryOptions) {
      if (!base::EqualsIgnoreCase(word, option.name)) continue;
      if (words.expiry != nullptr) return false;
      words.expiry = &option;
      return option.unit_ms == 0 || take(i, words.time);
    }
    return false;
  };
  for (size_t i = 2; i < command.size(); ++i) {
    if (!read(i)) return SyntaxError();
  }
  const bool persists = words.expiry != nullptr && words.expiry->kind == Kind::kRemove;
  if ((words.by_integer && words.by_float) || (persists && words.only_if_none))
    return SyntaxError();
  return words;
}

absl::StatusOr<Decimal> ReadNumber(std::string_view name, std::string_view text,
                                   CounterChange::Kind kind) {
  if (kind == CounterChange::Kind::kInteger) {
    const std::optional<int64_t> integer = base::ParseStrictInteger(text);
    if (integer) return Decimal::Integer(*integer);
    return absl::InvalidArgumentError(fmt::format("{} is not an integer or out of range", name));
  }
  Decimal number;
  switch (base::ParseDecimal(text, number)) {
    case base::DecimalProblem::kNone:
      return number;
    case base::DecimalProblem::kNotANumber:
      return absl::InvalidArgumentError(fmt::format("{} is not a valid float", name));
    case base::DecimalProblem::kDoesNotFit:
      return absl::InvalidArgumentError(
          fmt::format("{} has more than {} decimals, or its digits need more than 64 bits", name,
                      Decimal::kScaleMax));
  }
  __builtin_unreachable();
}

absl::StatusOr<CounterExpiry> ReadExpiry(const Words& words) {
  if (words.expiry == nullptr) {
    if (words.only_if_none) return absl::InvalidArgumentError("ENX flag requires an expiration");
    return CounterExpiry{};
  }
  CounterExpiry expiry{.kind = words.expiry->kind, .only_if_none = words.only_if_none};
  if (!words.time) return expiry;
  const std::optional<int64_t> time = base::ParseStrictInteger(*words.time);
  if (!time) return absl::InvalidArgumentError("value is not an integer or out of range");
  if (*time <= 0 || *time > algorithm::kCounterExpiryMax.count() / words.expiry->unit_ms)
    return absl::InvalidArgumentError("invalid expire time in 'increx' command");
  expiry.time = std::chrono::milliseconds(*time * words.expiry->unit_ms);
  return expiry;
}

}  // namespace

absl::StatusOr<CounterChange> ReadIncrex(const wire::RespParser& command) {
  HEADGATE_ASSIGN_OR_RETURN(const Words words, Sort(command));
  CounterChange change{
      .kind = words.by_float ? CounterChange::Kind::kDecimal : CounterChange::Kind::kInteger,
      .saturates = words.saturates};
  struct Number {
    std::string_view name;
    const std::optional<std::string_view>& text;
    Decimal& value;
  };
  for (const auto& [name, text, value] :
       {Number{"Increment", words.by_float ? words.by_float : words.by_integer, change.by},
        Number{"LBOUND", words.least, change.least}, Number{"UBOUND", words.most, change.most}}) {
    if (!text) continue;
    HEADGATE_ASSIGN_OR_RETURN(value, ReadNumber(name, *text, change.kind));
  }
  if (change.least.wide() > change.most.wide())
    return absl::InvalidArgumentError("LBOUND can't be greater than UBOUND");
  HEADGATE_ASSIGN_OR_RETURN(change.expiry, ReadExpiry(words));
  return change;
}

}  // namespace headgate::front::resp
