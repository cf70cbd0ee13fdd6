#include "headgate/front/resp/rule_arguments.h"

#include <fmt/format.h>

#include <chrono>
#include <limits>

#include "headgate/base/text.h"
#include "headgate/front/resp/throttle_arguments.h"
#include "headgate/front/resp/verb_replies.h"
#include "headgate/permit/permit.h"
#include "headgate/wire/permit_id.h"

namespace headgate::front::resp {
namespace {

using std::chrono::milliseconds;

constexpr int64_t kCostMax = std::numeric_limits<int64_t>::max();  // as over HTTP
constexpr milliseconds kTtlMin = std::chrono::duration_cast<milliseconds>(permit::kTtlMin);
constexpr milliseconds kTtlMax = std::chrono::duration_cast<milliseconds>(permit::kTtlMax);

std::string_view Echoed(std::string_view word) { return word.substr(0, kEchoedMax); }

}  // namespace

absl::Status RuleArguments::Read(RuleVerb verb, const wire::RespParser& command) {
  domain_ = command[1];
  cost_.reset();
  id_.reset();
  ttl_.reset();
  entries_.clear();
  descriptors_.clear();
  size_t at = 2;
  for (; at < command.size(); at += 2) {
    const std::string_view word = command[at];
    if (base::EqualsIgnoreCase(word, "cost") && verb == RuleVerb::kReset)
      return absl::InvalidArgumentError("HG.RESET takes no COST: it gives everything back");
    const std::optional<Option> option = OptionAt(verb, word);
    if (!option) break;
    if (at + 1 == command.size())
      return absl::InvalidArgumentError(fmt::format("syntax error: {} has no value", Echoed(word)));
    HEADGATE_RETURN_IF_ERROR(ReadOption(*option, command[at + 1]));
  }
  if (verb == RuleVerb::kRelease && !id_) {
    return absl::InvalidArgumentError(
        "HG.RELEASE needs ID and the id that HG.ACQUIRE answered, before ENTRIES");
  }
  return ReadDescriptors(command, at);
}

std::optional<RuleArguments::Option> RuleArguments::OptionAt(RuleVerb verb,
                                                             std::string_view word) const {
  const bool acquires = verb == RuleVerb::kAcquire;
  const bool releases = verb == RuleVerb::kRelease;
  const bool has_id = acquires || releases || verb == RuleVerb::kRefund;
  if (!cost_ && !releases && base::EqualsIgnoreCase(word, "cost")) return Option::kCost;
  if (!id_ && has_id && base::EqualsIgnoreCase(word, "id")) return Option::kId;
  if (!ttl_ && acquires && base::EqualsIgnoreCase(word, "px")) return Option::kPx;
  return std::nullopt;
}

absl::Status RuleArguments::ReadOption(Option option, std::string_view value) {
  switch (option) {
    case Option::kCost: {
      const std::optional<int64_t> number = ParseInteger(value);
      if (!number || *number < 0) {
        return absl::InvalidArgumentError(fmt::format(
            "COST must be a whole number from 0 to {}, not '{}'", kCostMax, Echoed(value)));
      }
      cost_ = static_cast<uint64_t>(*number);
      return absl::OkStatus();
    }
    case Option::kId:
      if (value.empty() || value.size() > wire::kPermitIdBytesMax) {
        return absl::InvalidArgumentError(
            fmt::format("ID must have 1 to {} bytes", wire::kPermitIdBytesMax));
      }
      id_ = value;
      return absl::OkStatus();
    case Option::kPx: {
      const std::optional<int64_t> number = ParseInteger(value);
      if (!number || *number < kTtlMin.count() || *number > kTtlMax.count()) {
        return absl::InvalidArgumentError(
            fmt::format("PX must be a whole number of milliseconds from {} to {}, not '{}'",
                        kTtlMin.count(), kTtlMax.count(), Echoed(value)));
      }
      ttl_ = milliseconds(*number);
      return absl::OkStatus();
    }
  }
  __builtin_unreachable();
}

absl::Status RuleArguments::ReadDescriptors(const wire::RespParser& command, size_t at) {
  // Descriptors point to entries, so the vector must not grow.
  entries_.reserve(command.size() / 2);
  while (at < command.size()) {
    if (!base::EqualsIgnoreCase(command[at], "entries")) {
      return absl::InvalidArgumentError(
          fmt::format("syntax error: ENTRIES was expected, not '{}'", Echoed(command[at])));
    }
    const std::string_view count_text =
        at + 1 < command.size() ? command[at + 1] : std::string_view();
    const std::optional<int64_t> count = ParseInteger(count_text);
    if (!count || *count < 1 || *count > static_cast<int64_t>(rule::kEntriesMax)) {
      return absl::InvalidArgumentError(
          fmt::format("ENTRIES needs a number of entries from 1 to {}, not '{}'", rule::kEntriesMax,
                      Echoed(count_text)));
    }
    at += 2;
    const auto words = 2 * static_cast<size_t>(*count);
    if (command.size() - at < words) {
      return absl::InvalidArgumentError(
          fmt::format("ENTRIES {} needs {} keys and values, but only {} follow", *count, words,
                      command.size() - at));
    }
    if (descriptors_.size() == rule::kDescriptorsMax) {
      return absl::InvalidArgumentError(
          fmt::format("more than {} descriptors", rule::kDescriptorsMax));
    }
    const size_t first = entries_.size();
    for (const size_t end = at + words; at < end; at += 2) {
      if (command[at].empty())
        return absl::InvalidArgumentError("a key of ENTRIES must not be empty");
      entries_.push_back({command[at], command[at + 1]});
    }
    descriptors_.push_back({.entries = std::span(entries_).subspan(first), .cost = cost_});
  }
  if (descriptors_.empty()) return absl::InvalidArgumentError("syntax error: ENTRIES was expected");
  return absl::OkStatus();
}

}  // namespace headgate::front::resp
