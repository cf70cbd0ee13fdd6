#include "headgate/front/resp/throttle_group.h"

#include <fmt/format.h>

#include <array>

#include "headgate/front/resp/decide_on_turn.h"
#include "headgate/front/resp/throttle_arguments.h"
#include "headgate/front/resp/throttle_reply.h"
#include "headgate/front/resp/throttle_script.h"
#include "headgate/front/resp/verb_replies.h"

namespace headgate::front::resp {
namespace {

// The words of one key: the key, and the numbers of its limit and quantity.
constexpr size_t kWordsPerKey = 5;

}  // namespace

Answered ThrottleGroup::Answer(const wire::RespParser& command, const Turn& turn) {
  if (const absl::Status status = Read(command); !status.ok())
    return WriteError(status, turn.output);
  return DecideOnTurn(
      own_, batch_, [&](size_t index) { return command[1 + kWordsPerKey * index]; },
      [this](base::Strided<const limiter::Settled> settled, std::string& output) {
        const absl::Status status = Reply(settled, output);
        return status.ok() ? Answered::kWell : WriteError(status, output);
      },
      turn);
}

absl::Status ThrottleGroup::Read(const wire::RespParser& command) {
  const size_t keys = (command.size() - 1) / kWordsPerKey;
  if (command.size() != 1 + kWordsPerKey * keys) {
    return absl::InvalidArgumentError(
        "syntax error: HG.CHECKM key max_burst count period quantity [key max_burst count period "
        "quantity ...]");
  }
  if (keys > kKeysMax)
    return absl::InvalidArgumentError(fmt::format("more than {} keys", kKeysMax));
  batch_.clear();
  limits_.clear();
  for (size_t i = 0; i < keys; ++i) {
    const size_t first = 1 + kWordsPerKey * i;
    CommandWords words;
    words.Add(command[0]);
    for (size_t k = first; k < first + kWordsPerKey; ++k) words.Add(command[k]);
    ThrottleArguments arguments;
    HEADGATE_RETURN_IF_ERROR(ReadArguments(ThrottleForm::kCell, words, arguments));
    HEADGATE_RETURN_IF_ERROR(CheckArguments(arguments));
    if (arguments.quantity == 0) return absl::InvalidArgumentError("quantity must be at least 1");
    HEADGATE_ASSIGN_OR_RETURN(const algorithm::Limit limit, LimitOf(arguments.limit));
    HEADGATE_ASSIGN_OR_RETURN(store::LimitHandle handle, own_.Intern(limit));
    batch_.push_back(
        {.request = {.key = own_.HashOf(command[first]),
                     .limit = handle.get(),
                     .cost = static_cast<algorithm::Cost>(arguments.quantity),
                     .joined = i == 0 ? store::Joined::kNo : store::Joined::kOtherRule},
         .terms = own_.terms()});
    limits_.push_back(std::move(handle));
  }
  return absl::OkStatus();
}

absl::Status ThrottleGroup::Reply(base::Strided<const limiter::Settled> settled,
                                  std::string& output) const {
  bool limited = false;
  bool unavailable = false;
  for (size_t i = 0; i < settled.size(); ++i) {
    if (limiter::OutcomeOf(settled[i].decision, settled[i].mode) == limiter::Outcome::kNeverFits &&
        IsOfCounter(settled[i].decision))
      return absl::FailedPreconditionError(std::string(kWrongType));
  }
  for (size_t i = 0; i < settled.size(); ++i) {
    const limiter::Outcome outcome = limiter::OutcomeOf(settled[i].decision, settled[i].mode);
    own_.Observe(outcome, 1);
    limited = limited || !settled[i].decision.allowed;
    unavailable = unavailable || outcome == limiter::Outcome::kUnavailable;
  }
  const bool passes = own_.passthrough();
  if (unavailable && !passes) return absl::UnavailableError(std::string(kStoreUnreachable));
  wire::RespWriter reply(output, wire::RespVersion::k2);
  reply.Array(1 + settled.size());
  reply.Integer(limited && !passes ? 1 : 0);
  for (size_t i = 0; i < settled.size(); ++i) {
    std::array<char, kThrottleReplyBytesMax> bytes;
    const algorithm::Decision& decision = settled[i].decision;
    const char* const end =
        WriteThrottleReply(bytes.data(), passes ? limiter::PassedThrough(decision) : decision);
    output.append(bytes.data(), static_cast<size_t>(end - bytes.data()));
  }
  return absl::OkStatus();
}

}  // namespace headgate::front::resp
