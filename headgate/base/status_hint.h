// An error with a hint: the message says what is wrong, the hint what to do about it.
#pragma once

#include <string>
#include <string_view>

#include "absl/strings/cord.h"
#include "headgate/base/status.h"

namespace headgate::base {

inline constexpr std::string_view kHintPayload = "headgate/hint";

inline absl::Status WithHint(absl::Status status, std::string_view hint) {
  status.SetPayload(absl::string_view(kHintPayload.data(), kHintPayload.size()),
                    absl::Cord(absl::string_view(hint.data(), hint.size())));
  return status;
}

// Empty if it has none.
inline std::string HintOf(const absl::Status& status) {
  const auto hint = status.GetPayload(absl::string_view(kHintPayload.data(), kHintPayload.size()));
  return hint ? std::string(*hint) : std::string();
}

}  // namespace headgate::base
