// The words of an API key's limit as JSON (key_limit.h), and the members of one of its objects.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "headgate/rule/problem.h"
#include "headgate/rule/read/document.h"
#include "headgate/rule/read/limit_choices.h"
#include "headgate/rule/read/scalar.h"

namespace headgate::rule::read {

inline constexpr std::string_view kKeyLimitForm =
    R"(the shortest form is {"Limit": 10, "WindowSeconds": 20})";

// In the order of kKeyWords.
enum class KeyWord : uint8_t {
  kAlgorithm,
  kAlign,
  kBlock,
  kBurst,
  kCountDenied,
  kFallbackShare,
  kLimit,
  kLimits,
  kMaxDelay,
  kName,
  kOnStoreFailure,
  kOverdraw,
  kQueue,
  kShadowMode,
  kSharing,
  kStrict,
  kTimezone,
  kTtl,
  kUnlimited,
  kWindow,
  kWindowSeconds,
};
inline constexpr std::array<std::string_view, 21> kKeyWords{
    "Algorithm", "Align",      "Block",        "Burst",  "CountDenied",    "FallbackShare",
    "Limit",     "Limits",     "MaxDelay",     "Name",   "OnStoreFailure", "Overdraw",
    "Queue",     "ShadowMode", "Sharing",      "Strict", "Timezone",       "Ttl",
    "Unlimited", "Window",     "WindowSeconds"};

inline std::string_view TextOf(KeyWord word) { return kKeyWords[static_cast<size_t>(word)]; }
// Whether the word belongs to one limit. The others belong to the whole rule, beside `Limits`.
bool IsOfLimit(KeyWord word);

// The members of one object, by word. Values of a wrong type are reported, and read as absent.
class KeyLimitMembers {
 public:
  // Both must outlive this object.
  KeyLimitMembers(const DocumentNode& object, ProblemList& problems);

  const DocumentNode* value(KeyWord word) const { return values_[static_cast<size_t>(word)]; }
  bool has(KeyWord word) const { return value(word) != nullptr; }
  // Whether nothing has been reported.
  bool good() const { return good_; }

  void Report(Mark mark, std::string message, std::string hint);
  // At the value of the word, or at the object if the word is absent.
  void Report(KeyWord word, std::string message, std::string hint);

  std::optional<uint64_t> WholeNumber(KeyWord word);
  bool Truth(KeyWord word);
  std::string_view Text(KeyWord word);
  template <typename Value, size_t N>
  std::optional<Value> OneOf(KeyWord word, const std::array<Choice<Value>, N>& choices,
                             std::initializer_list<std::string_view> others = {}) {
    const std::string_view text = Text(word);
    if (text.empty()) return std::nullopt;
    std::string hint;
    if (const auto chosen = ChoiceByName(choices, text, hint, others)) return chosen;
    ReportInvalid(word, std::move(hint));
    return std::nullopt;
  }

 private:
  Scalar ScalarOf(KeyWord word) const;
  void ReportInvalid(KeyWord word, std::string hint);
  void Add(const DocumentNode& name, const DocumentNode& member);

  const Mark mark_;
  ProblemList& problems_;
  std::array<const DocumentNode*, kKeyWords.size()> values_{};
  bool good_ = true;
};

}  // namespace headgate::rule::read
