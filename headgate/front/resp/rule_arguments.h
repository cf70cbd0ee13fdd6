// The arguments of the verbs that use rules:
//
//   HG.CHECK   domain [COST n]                   ENTRIES m key value … [ENTRIES m key value …]
//   HG.REFUND  domain [COST n] [ID id]           ENTRIES m key value …
//   HG.ACQUIRE domain [COST n] [ID id] [PX ttl]  ENTRIES m key value …
//   HG.RELEASE domain ID id                      ENTRIES m key value …
//                                                └─ one descriptor ──┘
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "headgate/base/status.h"
#include "headgate/base/time.h"
#include "headgate/rule/descriptor.h"
#include "headgate/wire/resp_parser.h"

namespace headgate::front::resp {

enum class RuleVerb : uint8_t { kCheck, kPeek, kRefund, kReset, kAcquire, kRelease };

// Reused for all commands, together with its memory.
class RuleArguments {
 public:
  // The views are valid until the next call, and only as long as the command.
  absl::Status Read(RuleVerb verb, const wire::RespParser& command);

  std::string_view domain() const { return domain_; }
  std::span<const rule::Descriptor> descriptors() const { return descriptors_; }
  // Empty if the command has none.
  std::string_view id() const { return id_.value_or(std::string_view()); }
  const std::optional<base::Duration>& ttl() const { return ttl_; }

 private:
  enum class Option : uint8_t { kCost, kId, kPx };

  // Whether the word is an option of the verb that has not come yet.
  std::optional<Option> OptionAt(RuleVerb verb, std::string_view word) const;
  absl::Status ReadOption(Option option, std::string_view value);
  absl::Status ReadDescriptors(const wire::RespParser& command, size_t at);

  std::string_view domain_;
  std::optional<uint64_t> cost_;
  std::optional<std::string_view> id_;
  std::optional<base::Duration> ttl_;
  std::vector<rule::Entry> entries_;
  std::vector<rule::Descriptor> descriptors_;
};

}  // namespace headgate::front::resp
