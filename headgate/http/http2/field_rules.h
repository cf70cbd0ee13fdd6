// The fields that may stand in a head or in trailers of HTTP/2. Stricter than RFC 9113, 8.2: a head
// that another reader could take differently, once it is written as HTTP/1, is malformed here.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace headgate::http::http2 {

// A token in lower case.
bool IsFieldName(std::string_view name);
// No control characters but TAB, and no space or tab at the ends: readers of HTTP/1 treat those
// differently. Bytes above 0x7f pass as they are, in UTF-8 or not (RFC 9113, 8.2.1; obs-text of RFC
// 9110, 5.5).
bool IsFieldValue(std::string_view value);

// The fields that readers and writers treat specially.
enum class FieldKind : uint8_t {
  kOrdinary,
  kConnectionSpecific,  // RFC 9113, 8.2.2: such a head is malformed
  kTe,
  kHost,
  kContentLength,
  kExpect,
  kHttp2Settings,  // part of an upgrade from HTTP/1: dropped
  kCookie,
};
// `name` may have capitals.
FieldKind KindOf(std::string_view name);

// Whether writers leave a field out, because its meaning is elsewhere in the head.
bool IsImplied(FieldKind kind);

// Digits without a superfluous zero, at most 2^63 - 1.
std::optional<uint64_t> ParseLength(std::string_view value);

}  // namespace headgate::http::http2
