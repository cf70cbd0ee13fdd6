// Numbers as Redis writes lengths: decimal, with an optional `-`, no leading zeros, and nothing
// before or after.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace headgate::wire {

inline std::optional<int64_t> RespNumber(std::string_view text) {
  const std::string_view digits = text.starts_with('-') ? text.substr(1) : text;
  if (digits.empty() || (digits[0] == '0' && text.size() > 1)) return std::nullopt;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace headgate::wire
