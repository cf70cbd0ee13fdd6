// Digits, hexadecimal digits and letter case of ASCII, independent of the locale. Protocols and
// names use only these.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

namespace headgate::base {

constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }
constexpr bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
constexpr bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
constexpr bool IsLetter(char c) { return IsLower(c) || IsUpper(c); }
constexpr bool IsLetterOrDigit(char c) { return IsLetter(c) || IsDigit(c); }

constexpr char ToLower(char c) { return IsUpper(c) ? static_cast<char>(c - 'A' + 'a') : c; }

constexpr bool EqualsIgnoreCase(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
           return ToLower(x) == ToLower(y);
         });
}

// The control characters of ASCII: C0 and DEL.
constexpr bool IsControl(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

// Some proxies pass control characters on, and others stop them.
inline bool HasControls(std::string_view text) {
  return std::any_of(text.begin(), text.end(), IsControl);
}

// Without spaces and tabs at both ends.
constexpr std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Removes the first item of a comma-separated list and the comma behind it. Returns the item,
// trimmed.
constexpr std::string_view TakeListItem(std::string_view& list) {
  const size_t comma = std::min(list.find(','), list.size());
  const std::string_view item = list.substr(0, comma);
  list.remove_prefix(std::min(comma + 1, list.size()));
  return Trimmed(item);
}

// 0 to 15, or -1 if `c` is not a hexadecimal digit of either case.
constexpr int HexValue(char c) {
  if (IsDigit(c)) return c - '0';
  const char lower = ToLower(c);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// Lower case.
inline constexpr char kHexDigits[] = "0123456789abcdef";

// Appends the two lower-case digits of `byte`.
inline void AppendHex(uint8_t byte, std::string& out) {
  out.push_back(kHexDigits[byte >> 4]);
  out.push_back(kHexDigits[byte & 15]);
}

}  // namespace headgate::base
