#include "headgate/http/http2/field_rules.h"

#include <algorithm>
#include <array>

#include "headgate/base/text.h"
#include "headgate/http/token.h"

namespace headgate::http::http2 {
namespace {

using CharTable = std::array<bool, 256>;

constexpr CharTable kNameChars = [] {
  CharTable table{};
  for (size_t i = 0; i < table.size(); ++i) {
    const char c = static_cast<char>(i);
    table[i] = IsTokenChar(c) && !base::IsUpper(c);
  }
  return table;
}();

// Everything but the control characters of ASCII without TAB.
constexpr CharTable kValueChars = [] {
  CharTable table{};
  for (size_t i = 0; i < table.size(); ++i) {
    const char c = static_cast<char>(i);
    table[i] = c == '\t' || !base::IsControl(c);
  }
  return table;
}();

constexpr size_t Index(char c) { return static_cast<unsigned char>(c); }

bool IsBlank(char c) { return c == ' ' || c == '\t'; }

struct Special {
  std::string_view name;
  FieldKind kind;
};
constexpr std::array<Special, 11> kSpecials = {{
    {"te", FieldKind::kTe},
    {"host", FieldKind::kHost},
    {"expect", FieldKind::kExpect},
    {"cookie", FieldKind::kCookie},
    {"upgrade", FieldKind::kConnectionSpecific},
    {"connection", FieldKind::kConnectionSpecific},
    {"keep-alive", FieldKind::kConnectionSpecific},
    {"http2-settings", FieldKind::kHttp2Settings},
    {"content-length", FieldKind::kContentLength},
    {"proxy-connection", FieldKind::kConnectionSpecific},
    {"transfer-encoding", FieldKind::kConnectionSpecific},
}};

}  // namespace

bool IsFieldName(std::string_view name) {
  return !name.empty() &&
         std::all_of(name.begin(), name.end(), [](char c) { return kNameChars[Index(c)]; });
}

bool IsFieldValue(std::string_view value) {
  if (value.empty()) return true;
  if (IsBlank(value.front()) || IsBlank(value.back())) return false;
  return std::all_of(value.begin(), value.end(), [](char c) { return kValueChars[Index(c)]; });
}

FieldKind KindOf(std::string_view name) {
  for (const Special& special : kSpecials) {
    if (base::EqualsIgnoreCase(name, special.name)) return special.kind;
  }
  return FieldKind::kOrdinary;
}

bool IsImplied(FieldKind kind) {
  switch (kind) {
    case FieldKind::kConnectionSpecific:
    case FieldKind::kTe:
    case FieldKind::kHost:
    case FieldKind::kContentLength:
    case FieldKind::kExpect:
    case FieldKind::kHttp2Settings:
      return true;
    case FieldKind::kOrdinary:
    case FieldKind::kCookie:
      break;
  }
  return false;
}

std::optional<uint64_t> ParseLength(std::string_view value) {
  constexpr uint64_t kMax = INT64_MAX;
  if (value.empty() || (value.size() > 1 && value.front() == '0')) return std::nullopt;
  uint64_t length = 0;
  for (const char c : value) {
    if (!base::IsDigit(c)) return std::nullopt;
    const auto digit = static_cast<uint64_t>(c - '0');
    if (length > (kMax - digit) / 10) return std::nullopt;
    length = length * 10 + digit;
  }
  return length;
}

}  // namespace headgate::http::http2
