#include "headgate/jwt/base64url.h"

#include <cstdint>

#include "headgate/base/text.h"

namespace headgate::jwt {
namespace {

// 0 to 63, or -1.
int SixBits(char c) {
  if (base::IsUpper(c)) return c - 'A';
  if (base::IsLower(c)) return c - 'a' + 26;
  if (base::IsDigit(c)) return c - '0' + 52;
  if (c == '-') return 62;
  return c == '_' ? 63 : -1;
}

}  // namespace

bool DecodeBase64Url(std::string_view text, std::string& out) {
  if (text.size() % 4 == 1) return false;
  uint32_t bits = 0;
  int bit_count = 0;
  for (const char c : text) {
    const int value = SixBits(c);
    if (value < 0) return false;
    bits = (bits << 6 | static_cast<uint32_t>(value)) & 0xfff;
    bit_count += 6;
    if (bit_count >= 8) {
      bit_count -= 8;
      out.push_back(static_cast<char>(bits >> bit_count & 0xff));
    }
  }
  return (bits & ((1u << bit_count) - 1)) == 0;
}

}  // namespace headgate::jwt
