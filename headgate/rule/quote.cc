#include "headgate/rule/quote.h"

#include <fmt/format.h>

namespace headgate::rule {
namespace {

constexpr size_t kQuotedBytesMax = 64;

bool IsContinuation(unsigned char byte) { return (byte & 0xC0) == 0x80; }

// How many bytes the UTF-8 character at the front of `text` has; 0 where there is none. C1 controls (U+0080 to U+009F)
// count as none: terminals obey them too.
size_t CharacterLength(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xF0 && first <= 0xF4 ? 4 : first >= 0xE0 ? 3 : first >= 0xC2 ? 2 : 0;
  if (first > 0xF4 || length == 0 || text.size() < length) return 0;
  const auto second = static_cast<unsigned char>(text[1]);
  const bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool surrogate_or_beyond = (first == 0xED && second >= 0xA0) || (first == 0xF4 && second >= 0x90);
  const bool control = first == 0xC2 && second < 0xA0;
  if (overlong || surrogate_or_beyond || control) return 0;
  for (size_t i = 1; i < length; ++i) {
    if (!IsContinuation(static_cast<unsigned char>(text[i]))) return 0;
  }
  return length;
}

}  // namespace

std::string Printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto first = static_cast<unsigned char>(text[0]);
    const size_t length = CharacterLength(text);
    if (length == 0 || first < 0x20 || first == 0x7F) {
      out += fmt::format("\\x{:02x}", first);
      text.remove_prefix(1);
      continue;
    }
    out += text.substr(0, length);
    text.remove_prefix(length);
  }
  return out;
}

std::string Quote(std::string_view text) {
  std::string escaped;
  std::string_view shown = text;
  if (shown.size() > kQuotedBytesMax) {
    size_t end = kQuotedBytesMax;
    while (end > kQuotedBytesMax - 4 && IsContinuation(static_cast<unsigned char>(shown[end]))) --end;
    shown = shown.substr(0, end);
  }
  for (const char c : shown) {
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return fmt::format("\"{}{}\"", Printable(escaped), shown.size() < text.size() ? "…" : "");
}

}  // namespace headgate::rule
