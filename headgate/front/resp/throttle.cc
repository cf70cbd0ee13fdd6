#include "headgate/front/resp/throttle.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <limits>

#include "headgate/algorithm/limit.h"
#include "headgate/base/hash.h"
#include "headgate/front/resp/throttle_rate.h"
#include "headgate/wire/resp_writer.h"

namespace headgate::front::resp {
namespace {

using algorithm::Decision;

constexpr int64_t kNsPerSecond = 1'000'000'000;
// This many digits cannot overflow.
constexpr size_t kDigitsSafe = 18;
// The longest part of an argument that an error repeats.
constexpr size_t kEchoedMax = 128;
constexpr size_t kReplyBytesMax = 4 + 5 * wire::kRespNumberBytesMax;

int64_t SecondsUp(base::Duration d) { return (d.count() + (kNsPerSecond - 1)) / kNsPerSecond; }

char* WriteReply(char* at, const Decision& decision) {
  constexpr std::string_view kHead = "*5\r\n:0\r\n";
  std::memcpy(at, kHead.data(), kHead.size());
  if (!decision.allowed) at[5] = '1';
  at += kHead.size();
  // Fits into 63 bits, because CheckArguments bounds max_burst + 1.
  at = wire::WriteRespNumber(at, ':', static_cast<int64_t>(decision.limit));
  at = wire::WriteRespNumber(at, ':', static_cast<int64_t>(decision.remaining));
  const bool wait = !decision.allowed && !decision.never_fits();
  at = wire::WriteRespNumber(at, ':', wait ? SecondsUp(decision.retry_after) : -1);
  return wire::WriteRespNumber(at, ':', SecondsUp(decision.reset_after));
}

absl::Status Negative(std::string_view name, int64_t value) {
  return absl::InvalidArgumentError(fmt::format("{} must not be negative: {}", name, value));
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

bool ThrottleBatch::Add(const wire::RespParser& command, const ThrottleTurn& turn) {
  Arguments arguments;
  if (absl::Status status = ReadArguments(command, arguments); !status.ok())
    return Refuse(status, turn);
  const store::LimitEntry* limit = limits_.Find(arguments.limit);
  if (limit == nullptr || arguments.quantity < 0) [[unlikely]] {
    if (absl::Status status = CheckArguments(arguments); !status.ok()) return Refuse(status, turn);
    auto made = MakeLimit(arguments.limit);
    if (!made.ok()) return Refuse(made.status(), turn);
    // The collected requests may still use the limit that this one replaces.
    if (!Flush(turn)) return false;
    limit = limits_.Put(arguments.limit, *std::move(made));
  }
  if (checker_.may_wait()) keys_[size_] = command[1];
  store::TakeRequest& request = batch_[size_++].request;
  request.key = base::HashBytes(checker_.store().hash_secret(), base::KeyKind::kRaw, command[1]);
  request.limit = limit;
  request.cost = static_cast<algorithm::Cost>(arguments.quantity);
  request.operation = arguments.quantity == 0 ? store::Operation::kPeek : store::Operation::kTake;
  return true;
}

absl::Status ThrottleBatch::ReadArguments(const wire::RespParser& command, Arguments& arguments) {
  if (command.size() < 5 || command.size() > 6) [[unlikely]] {
    return absl::InvalidArgumentError(
        "Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]");
  }
  int64_t* const targets[] = {&arguments.limit.max_burst, &arguments.limit.count,
                              &arguments.limit.period_s, &arguments.quantity};
  for (size_t i = 2; i < command.size(); ++i) {
    const std::optional<int64_t> number = ParseInteger(command[i]);
    if (!number) [[unlikely]] {
      return absl::InvalidArgumentError(
          fmt::format("Couldn't parse as integer: {}", command[i].substr(0, kEchoedMax)));
    }
    *targets[i - 2] = *number;
  }
  return absl::OkStatus();
}

absl::Status ThrottleBatch::CheckArguments(const Arguments& arguments) {
  const ThrottleLimit& limit = arguments.limit;
  if (limit.max_burst < 0) return Negative("max_burst", limit.max_burst);
  if (limit.count < 0) return Negative("count per period", limit.count);
  if (limit.period_s < 0) return Negative("period", limit.period_s);
  if (limit.count == 0 || limit.period_s == 0)
    return absl::InvalidArgumentError("Zero rates are not supported");
  if (arguments.quantity < 0) return Negative("quantity", arguments.quantity);
  if (limit.max_burst == std::numeric_limits<int64_t>::max()) {
    return absl::InvalidArgumentError(
        fmt::format("max_burst must be less than {}", limit.max_burst));
  }
  return absl::OkStatus();
}

absl::StatusOr<store::LimitHandle> ThrottleBatch::MakeLimit(const ThrottleLimit& limit) {
  HEADGATE_ASSIGN_OR_RETURN(const ThrottleRate rate, RateOf(limit.count, limit.period_s));
  HEADGATE_ASSIGN_OR_RETURN(
      const algorithm::Limit made,
      algorithm::Limit::Make({.requests = rate.requests,
                              .period = rate.period,
                              .burst = static_cast<uint64_t>(limit.max_burst) + 1}));
  return checker_.store().limits().Intern(made);
}

// The words before the message are redis-cell's, because its clients may search for them.
bool ThrottleBatch::Refuse(const absl::Status& status, const ThrottleTurn& turn) {
  if (!Flush(turn)) return false;
  counters_.errors.Add();
  const absl::string_view message = status.message();
  wire::RespWriter(turn.output, wire::RespVersion::k2)
      .Error(fmt::format("Cell error: Store error: {}",
                         std::string_view(message.data(), message.size())));
  return true;
}

bool ThrottleBatch::Flush(const ThrottleTurn& turn) {
  const size_t count = std::exchange(size_, 0);
  if (count == 0) return true;
  const std::span<limiter::BatchEntry> batch = std::span(batch_).first(count);
  const auto name = [this](size_t index, std::string& out) {
    limiter::AppendThrottleBucket(checker_.naming(), keys_[index], out);
  };
  if (!checker_.decider().Decide(batch, name, &turn.pending, turn.now)) return false;
  Reply(base::Strided<const limiter::Settled>::Of(batch, &limiter::BatchEntry::settled),
        turn.output);
  return true;
}

bool ThrottleBatch::AnswerSettled(const ThrottleTurn& turn) {
  if (turn.pending.waiting()) return false;
  Reply(turn.pending.settled(), turn.output);
  turn.pending.Forget();
  return true;
}

void ThrottleBatch::Reply(base::Strided<const limiter::Settled> settled, std::string& output) {
  std::array<char, kCommandsMax * kReplyBytesMax> replies;
  char* at = replies.data();
  const auto send = [&] {
    output.append(replies.data(), static_cast<size_t>(at - replies.data()));
    at = replies.data();
  };
  std::array<uint64_t, limiter::kOutcomeCount> counts{};
  for (size_t i = 0; i < settled.size(); ++i) {
    const limiter::Outcome outcome = limiter::OutcomeOf(settled[i]);
    ++counts[static_cast<size_t>(outcome)];
    if (outcome != limiter::Outcome::kUnavailable) [[likely]] {
      at = WriteReply(at, settled[i].decision);
      continue;
    }
    send();
    counters_.errors.Add();
    wire::RespWriter(output, wire::RespVersion::k2).Error("ERR the shared store cannot be reached");
  }
  send();
  for (const limiter::Outcome outcome :
       {limiter::Outcome::kAllowed, limiter::Outcome::kDenied, limiter::Outcome::kNeverFits,
        limiter::Outcome::kUnavailable}) {
    const uint64_t count = counts[static_cast<size_t>(outcome)];
    if (count > 0) checker_.ObserveOwnLimits(outcome, count);
  }
}

}  // namespace headgate::front::resp
