#include "headgate/base/json.h"

#include "headgate/base/digits.h"
#include "headgate/base/text.h"
#include "headgate/base/utf8.h"

namespace headgate::base {
namespace {

bool IsPlain(char c) {
  const auto u = static_cast<unsigned char>(c);
  return u >= 0x20 && u < 0x7F && c != '"' && c != '\\';
}

void AppendEscaped(uint8_t c, std::string& out) {
  switch (c) {
    case '"':
      out.append("\\\"");
      return;
    case '\\':
      out.append("\\\\");
      return;
    case '\n':
      out.append("\\n");
      return;
    case '\r':
      out.append("\\r");
      return;
    case '\t':
      out.append("\\t");
      return;
    default:
      out.append("\\u00");
      AppendHex(c, out);
  }
}

}  // namespace

void AppendJsonString(std::string_view text, std::string& out) {
  out.push_back('"');
  while (!text.empty()) {
    size_t plain = 0;
    while (plain < text.size() && IsPlain(text[plain])) ++plain;
    out.append(text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty()) break;

    const Utf8Prefix first = FirstUtf8(text);
    if (!first.well_formed) {
      out.append("\xEF\xBF\xBD");
    } else if (first.bytes == 1) {
      AppendEscaped(static_cast<uint8_t>(text[0]), out);
    } else if (BeginsWithC1Control(text)) {
      AppendEscaped(static_cast<uint8_t>(text[1]), out);
    } else {
      out.append(text.substr(0, first.bytes));
    }
    text.remove_prefix(first.bytes);
  }
  out.push_back('"');
}

void AppendJsonNumber(uint64_t value, std::string& out) { AppendNumber(value, out); }
void AppendJsonNumber(int64_t value, std::string& out) {
  if (value < 0) out.push_back('-');
  const auto bits = static_cast<uint64_t>(value);
  AppendNumber(value < 0 ? ~bits + 1 : bits, out);
}

void AppendJsonBool(bool value, std::string& out) { out.append(value ? "true" : "false"); }

}  // namespace headgate::base
