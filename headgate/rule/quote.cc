#include "headgate/rule/quote.h"

#include <fmt/format.h>

#include "headgate/base/text.h"
#include "headgate/base/utf8.h"

namespace headgate::rule {
namespace {

constexpr size_t kQuotedBytesMax = 64;

bool IsContinuation(unsigned char byte) { return (byte & 0xC0) == 0x80; }

// Whether `text` begins with a character that turns the order of those around it: U+061C, U+200E,
// U+200F, U+202A to U+202E, or U+2066 to U+2069 (Unicode Standard Annex 9, section 2).
bool BeginsWithBidiControl(std::string_view text) {
  if (text.starts_with("\xD8\x9C")) return true;
  if (text.size() < 3 || text[0] != '\xE2') return false;
  const auto last = static_cast<unsigned char>(text[2]);
  if (text[1] == '\x80') return last == 0x8E || last == 0x8F || (last >= 0xAA && last <= 0xAE);
  return text[1] == '\x81' && last >= 0xA6 && last <= 0xA9;
}

}  // namespace

std::string Printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto first = static_cast<unsigned char>(text[0]);
    const base::Utf8Prefix character = base::FirstUtf8(text);
    // Terminals interpret the C1 controls too.
    if (!character.well_formed || first < 0x20 || first == 0x7F ||
        base::BeginsWithC1Control(text) || BeginsWithBidiControl(text)) {
      base::AppendHex(first, out += "\\x");
      text.remove_prefix(1);
      continue;
    }
    out += text.substr(0, character.bytes);
    text.remove_prefix(character.bytes);
  }
  return out;
}

std::string PrintableLines(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    out.append(Printable(line)).append("\n");
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return out;
}

std::string Quote(std::string_view text) {
  std::string escaped;
  std::string_view shown = text;
  if (shown.size() > kQuotedBytesMax) {
    size_t end = kQuotedBytesMax;
    while (end > kQuotedBytesMax - 4 && IsContinuation(static_cast<unsigned char>(shown[end])))
      --end;
    shown = shown.substr(0, end);
  }
  for (const char c : shown) {
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return fmt::format("\"{}{}\"", Printable(escaped), shown.size() < text.size() ? "…" : "");
}

}  // namespace headgate::rule
