#include "headgate/front/resp/rule_verbs.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "headgate/base/text.h"
#include "headgate/front/resp/commands.h"
#include "headgate/front/resp/throttle_arguments.h"
#include "headgate/front/resp/verb_replies.h"

namespace headgate::front::resp {
namespace {

int64_t MillisecondsUp(base::Duration d) {
  return std::chrono::ceil<std::chrono::milliseconds>(d).count();
}

// RESP integers have 63 bits and a sign; a limit can be larger.
int64_t Saturated(uint64_t n) {
  return static_cast<int64_t>(std::min(n, uint64_t{std::numeric_limits<int64_t>::max()}));
}

void WriteOutcome(const limiter::DescriptorAnswer& outcome, wire::RespWriter& reply) {
  const algorithm::Decision& decision = outcome.decision;
  const bool decided = outcome.has_decision();
  const bool shared = outcome.mode != limiter::Mode::kMemory;
  reply.Map(shared ? 9 : 8);
  reply.Bulk("allowed");
  reply.Boolean(outcome.allowed());
  reply.Bulk("limit");
  decided ? reply.Integer(Saturated(decision.limit)) : reply.Null();
  reply.Bulk("remaining");
  decided ? reply.Integer(Saturated(decision.remaining)) : reply.Null();
  reply.Bulk("retry_after_ms");
  decided&& decision.never_fits() ? reply.Null()
                                  : reply.Integer(MillisecondsUp(decision.retry_after));
  reply.Bulk("reset_after_ms");
  reply.Integer(MillisecondsUp(decision.reset_after));
  reply.Bulk("wait_ms");
  reply.Integer(MillisecondsUp(decision.wait));
  reply.Bulk("rule");
  outcome.rule != nullptr ? reply.Bulk(outcome.rule->label()) : reply.Null();
  reply.Bulk("shadow");
  reply.Boolean(outcome.rule != nullptr && outcome.rule->shadow_mode);
  if (!shared) return;
  reply.Bulk("mode");
  reply.Bulk(Name(outcome.mode));
}

limiter::Operation OperationOf(RuleVerb verb) {
  switch (verb) {
    case RuleVerb::kCheck:
      return limiter::Operation::kTake;
    case RuleVerb::kPeek:
      return limiter::Operation::kPeek;
    case RuleVerb::kRefund:
      return limiter::Operation::kRefund;
    case RuleVerb::kReset:
      return limiter::Operation::kReset;
  }
  __builtin_unreachable();
}

}  // namespace

absl::StatusOr<RuleVerbs::Answered> RuleVerbs::Answer(RuleVerb verb,
                                                      const wire::RespParser& command,
                                                      wire::RespWriter& reply,
                                                      limiter::Pending& pending,
                                                      base::Instant now) {
  HEADGATE_RETURN_IF_ERROR(ReadDescriptors(verb, command));
  HEADGATE_RETURN_IF_ERROR(checker_.Check(
      {.domain = command[1], .descriptors = descriptors_, .operation = OperationOf(verb)},
      response_, now, &pending));
  if (response_.waiting) return Answered::kLater;
  if ((verb == RuleVerb::kRefund || verb == RuleVerb::kReset) && !limiter::AnyRule(response_)) {
    return absl::NotFoundError("no rule applies to any of the descriptors: nothing was changed");
  }
  reply.Map(2);
  reply.Bulk("allowed");
  reply.Boolean(response_.allowed);
  reply.Bulk("decisions");
  reply.Array(response_.descriptors.size());
  for (const limiter::DescriptorAnswer& outcome : response_.descriptors)
    WriteOutcome(outcome, reply);
  return Answered::kNow;
}

absl::Status RuleVerbs::ReadDescriptors(RuleVerb verb, const wire::RespParser& command) {
  entries_.clear();
  descriptors_.clear();
  // Descriptors point to entries, so the vector must not grow.
  entries_.reserve(command.size() / 2);
  size_t i = 2;
  std::optional<uint64_t> cost;
  if (base::EqualsIgnoreCase(command[i], "cost")) {
    if (verb == RuleVerb::kReset)
      return absl::InvalidArgumentError("HG.RESET takes no COST: it gives everything back");
    const std::optional<int64_t> number = ParseInteger(command[i + 1]);
    if (!number || *number < 0) {
      return absl::InvalidArgumentError(
          fmt::format("COST must be a whole number of 0 or more, not '{}'",
                      command[i + 1].substr(0, kEchoedMax)));
    }
    cost = static_cast<uint64_t>(*number);
    i += 2;
  }
  while (i < command.size()) {
    if (!base::EqualsIgnoreCase(command[i], "entries")) {
      return absl::InvalidArgumentError(fmt::format("syntax error: ENTRIES was expected, not '{}'",
                                                    command[i].substr(0, kEchoedMax)));
    }
    const std::string_view count_text =
        i + 1 < command.size() ? command[i + 1] : std::string_view();
    const std::optional<int64_t> count = ParseInteger(count_text);
    if (!count || *count < 1 || *count > static_cast<int64_t>(rule::kEntriesMax)) {
      return absl::InvalidArgumentError(
          fmt::format("ENTRIES needs a number of entries from 1 to {}, not '{}'", rule::kEntriesMax,
                      count_text.substr(0, kEchoedMax)));
    }
    i += 2;
    const auto words = 2 * static_cast<size_t>(*count);
    if (command.size() - i < words) {
      return absl::InvalidArgumentError(
          fmt::format("ENTRIES {} needs {} keys and values, but only {} follow", *count, words,
                      command.size() - i));
    }
    if (descriptors_.size() == rule::kDescriptorsMax) {
      return absl::InvalidArgumentError(
          fmt::format("more than {} descriptors", rule::kDescriptorsMax));
    }
    const size_t first = entries_.size();
    for (const size_t end = i + words; i < end; i += 2) {
      if (command[i].empty())
        return absl::InvalidArgumentError("a key of ENTRIES must not be empty");
      entries_.push_back({command[i], command[i + 1]});
    }
    descriptors_.push_back({.entries = std::span(entries_).subspan(first), .cost = cost});
  }
  if (descriptors_.empty()) return absl::InvalidArgumentError("syntax error: ENTRIES was expected");
  return absl::OkStatus();
}

}  // namespace headgate::front::resp
