// A request's description of itself: an ordered list of key/value entries, as in Envoy's rate limit
// service.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace headgate::rule {

// Every front refuses requests with more descriptors, and descriptors with more entries, than
// these.
inline constexpr size_t kDescriptorsMax = 64;
inline constexpr size_t kEntriesMax = 32;

// The domain of requests and mappings that name none.
inline constexpr std::string_view kDefaultDomain = "default";

struct Entry {
  std::string_view key;
  std::string_view value;  // may be empty
};

// Envoy's units, with the numbers of its protocol.
enum class Unit : uint8_t {
  kSecond = 1,
  kMinute = 2,
  kHour = 3,
  kDay = 4,
  kMonth = 5,
  kYear = 6,
  kWeek = 7
};

// A limit that the request itself carries. It replaces the limit of the rules for its descriptor.
struct OverrideLimit {
  uint32_t requests_per_unit = 0;
  Unit unit = Unit::kSecond;
};

struct Descriptor {
  std::span<const Entry> entries;
  std::optional<uint64_t> cost{};  // 1 if absent; 0 reads the state without consuming
  std::optional<OverrideLimit> override_limit{};
  // The limit that the request brings for its rule (given_limit.h), from a source that is trusted;
  // empty: none.
  std::string_view given_limit{};
};

}  // namespace headgate::rule
