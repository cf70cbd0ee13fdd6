// The words of a limit that have a fixed set of values, for rule files and limits of keys.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/algorithm/limit.h"
#include "headgate/rule/problem.h"
#include "headgate/rule/rule_set.h"

namespace headgate::rule::read {

template <typename Value>
struct Choice {
  std::string_view name;
  Value value;
};

inline constexpr std::array<Choice<algorithm::Align>, 2> kAligns{
    {{"epoch", algorithm::Align::kEpoch}, {"first_hit", algorithm::Align::kFirstHit}}};
inline constexpr std::string_view kTimezoneHint =
    "write a name of the IANA database, such as Europe/Berlin; Debian's package tzdata has them";
inline constexpr std::array<Choice<Sharing>, 3> kSharings{
    {{"exact", Sharing::kExact}, {"leased", Sharing::kLeased}, {"strict", Sharing::kStrict}}};
inline constexpr std::array<Choice<OnStoreFailure>, 3> kFailures{
    {{"allow", OnStoreFailure::kAllow},
     {"deny", OnStoreFailure::kDeny},
     {"local", OnStoreFailure::kLocal}}};
// All algorithms except the queue, which is a mode of the leaky bucket, and a second name of the
// token bucket.
inline constexpr auto kAlgorithms = [] {
  std::array<Choice<algorithm::Algorithm>, algorithm::kAlgorithmCount> choices{};
  size_t count = 0;
  for (const algorithm::Traits& traits : algorithm::kAllTraits) {
    if (traits.queues) continue;
    choices[count++] = {traits.word, traits.algorithm};
    if (traits.algorithm == algorithm::Algorithm::kTokenBucket)
      choices[count++] = {"gcra", traits.algorithm};
  }
  return choices;
}();

inline constexpr std::array<Choice<base::QuotaUnit>, 4> kQuotaUnits{
    {{"requests", base::QuotaUnit::kRequests},
     {"tokens", base::QuotaUnit::kTokens},
     {"input-tokens", base::QuotaUnit::kInputTokens},
     {"output-tokens", base::QuotaUnit::kOutputTokens}}};

// The value with this name. If there is none, `hint` lists the names, with `others`, which the
// caller handles itself.
template <typename Value, size_t N>
std::optional<Value> ChoiceByName(const std::array<Choice<Value>, N>& choices,
                                  std::string_view text, std::string& hint,
                                  std::initializer_list<std::string_view> others = {}) {
  std::vector<std::string_view> names;
  for (const auto& [name, value] : choices) {
    if (name == text) return value;
    names.push_back(name);
  }
  names.insert(names.end(), others);
  std::string list;
  for (const std::string_view name : names) list.append(list.empty() ? "" : ", ").append(name);
  hint = DidYouMean(text, names);
  if (hint.empty()) hint = "one of " + list;
  return std::nullopt;
}

// A decimal number above 0 and at most 1, with at most six places, as millionths.
std::optional<uint32_t> ShareByText(std::string_view text);

// A decimal number above 0 and at most 100, with at most four places, as millionths of the whole.
std::optional<uint32_t> PercentByText(std::string_view text);

}  // namespace headgate::rule::read
