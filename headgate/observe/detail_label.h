// The label of a decision whose rule asks for metrics labelled with the request's own values, in
// the form of Envoy's service: "key_value.key.key_value".
//
//   detailed_metric    every entry with its value; if a pattern shares its bucket,
//                      the pattern replaces the values
//   value_to_metric    the rule's own path, plus the values of the marked entries
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "headgate/limiter/observer.h"

namespace headgate::observe {

struct LabelStep {
  std::string_view text;  // a key, or a whole "key_pattern"
  std::optional<std::string_view> value{};
};

struct DetailLabel {
  std::array<LabelStep, rule::kEntriesMax> steps;
  size_t step_count = 0;

  // The event must have a rule. The views point to the event's memory.
  static DetailLabel Of(const limiter::DecisionEvent& event);

  // The text, cut to `bytes_max`.
  std::string Text(size_t bytes_max) const;
};

}  // namespace headgate::observe
