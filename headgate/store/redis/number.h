// Parses numbers in text from people or servers: ports, slots, databases.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace headgate::store::redis {

// Accepts only decimal digits, with a value from 0 to `max`.
inline std::optional<uint32_t> ParseNumber(std::string_view text, uint32_t max) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || number > max)
    return std::nullopt;
  return number;
}

}  // namespace headgate::store::redis
