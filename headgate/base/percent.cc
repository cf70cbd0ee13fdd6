#include "headgate/base/percent.h"

#include "headgate/base/text.h"

namespace headgate::base {

std::optional<std::string> PercentDecoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded.push_back(text[i]);
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = HexValue(text[i + 1]);
    const int low = HexValue(text[i + 2]);
    if (high < 0 || low < 0 || high + low == 0) return std::nullopt;
    decoded.push_back(static_cast<char>(high * 16 + low));
    i += 2;
  }
  return decoded;
}

std::string PercentEncoded(std::string_view text, std::string_view kept) {
  std::string encoded;
  for (const char c : text) {
    if (IsLetterOrDigit(c) || kept.find(c) != std::string_view::npos) {
      encoded.push_back(c);
    } else {
      AppendPercent(c, encoded);
    }
  }
  return encoded;
}

void AppendPercent(char byte, std::string& out) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  const auto value = static_cast<unsigned char>(byte);
  out.append({'%', kDigits[value >> 4], kDigits[value & 15]});
}

}  // namespace headgate::base
