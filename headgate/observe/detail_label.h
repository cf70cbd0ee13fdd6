// The label of a decision whose rule asks for metrics by the request's own values, in the form of
// Envoy's service: "key_value.key.key_value".
//
//   detailed_metric    every entry with its value; a pattern that shares its bucket stands for the
//   values value_to_metric    the rule's own path, with the value of the entries that are marked
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

  // Reads only; the views are those of the event. The event has a rule.
  static DetailLabel Of(const limiter::DecisionEvent& event);

  // Text, or its beginning if it is longer than `bytes_max`.
  std::string Text(size_t bytes_max) const;
};

}  // namespace headgate::observe
