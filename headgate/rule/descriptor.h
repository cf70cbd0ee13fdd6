// How a request describes itself: an ordered list of key/value entries, as Envoy's rate limit
// service defines it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace headgate::rule {

// A request's descriptors, entries and values beyond these are refused by every front.
inline constexpr size_t kDescriptorsMax = 64;
inline constexpr size_t kEntriesMax = 32;

struct Entry {
  std::string_view key;
  std::string_view value;  // may be empty
};

// Envoy's units, by the numbers of its protocol.
enum class Unit : uint8_t {
  kSecond = 1,
  kMinute = 2,
  kHour = 3,
  kDay = 4,
  kMonth = 5,
  kYear = 6,
  kWeek = 7
};

// A limit that the request itself brings; it replaces what the rules say for its descriptor.
struct OverrideLimit {
  uint32_t requests_per_unit = 0;
  Unit unit = Unit::kSecond;
};

struct Descriptor {
  std::span<const Entry> entries;
  std::optional<uint64_t> cost{};  // 1 where it is left out; 0 looks without consuming
  std::optional<OverrideLimit> override_limit{};
};

}  // namespace headgate::rule
