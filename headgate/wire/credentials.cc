#include "headgate/wire/credentials.h"

#include <algorithm>
#include <array>
#include <optional>

#include "headgate/base/text.h"

namespace headgate::wire {
namespace {

constexpr std::string_view kWhitespace = " \t";
constexpr std::string_view kBasic = "Basic";
constexpr std::string_view kBearerScheme = "Bearer";
constexpr std::string_view kTokenScheme = "Token";

// The schemes of IANA's register, and others that APIs use.
constexpr std::array<std::string_view, 19> kSchemes = {
    kBasic,       kBearerScheme,      "Digest",      "DPoP",          "GNAP",
    "HOBA",       "Mutual",           "Negotiate",   "OAuth",         "NTLM",
    kTokenScheme, "PrivateToken",     "SCRAM-SHA-1", "SCRAM-SHA-256", "ApiKey",
    "vapid",      "AWS4-HMAC-SHA256", "Hawk",        "SharedKey"};

struct Split {
  std::string_view scheme{};  // empty: the value is one word
  std::string_view rest{};

  bool Is(std::string_view other) const { return base::EqualsIgnoreCase(scheme, other); }
};

// Rails' form `Token token="k1"` is split like `Token k1`.
Split SplitCredentials(std::string_view value) {
  constexpr std::string_view kTokenParameter = "token=\"";
  value = base::Trimmed(value);
  const size_t end = value.find_first_of(kWhitespace);
  if (end == value.npos) return {.rest = value};
  Split split{.scheme = value.substr(0, end), .rest = base::Trimmed(value.substr(end))};
  std::string_view& rest = split.rest;
  if (split.Is(kTokenScheme) && rest.starts_with(kTokenParameter) && rest.ends_with('"') &&
      rest.size() > kTokenParameter.size() + 1)
    rest = rest.substr(kTokenParameter.size(), rest.size() - kTokenParameter.size() - 1);
  return split;
}

bool IsOneWord(std::string_view text) { return text.find_first_of(kWhitespace) == text.npos; }

// Whether every reader takes the whole word: Rails and Laravel cut a token at a comma, Rails also
// at `;` and behind a `=`. Padding of `=` at the end stays.
bool IsWhole(std::string_view word) {
  const size_t last = word.find_last_not_of('=');
  return word.find_first_of(",;\"") == word.npos &&
         (last == word.npos || word.substr(0, last).find('=') == word.npos);
}

// Removes a quoted string or another value without spaces and commas. False if there is none.
bool TakeParameterValue(std::string_view& text) {
  size_t end = std::min(text.find_first_of(" \t,"), text.size());
  if (text.starts_with('"')) {
    end = 1;
    while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? size_t{2} : size_t{1};
    if (end++ >= text.size()) return false;
  } else if (end == 0 || text.front() == '=' || text.substr(0, end).find('"') != text.npos) {
    return false;
  }
  text.remove_prefix(end);
  return true;
}

// Whether the text is a list of parameters: `realm="x, y", nonce=z`. There is no space around their
// `=`: otherwise a reader could take the first name for a credential of one word.
bool AreParameters(std::string_view text) {
  while (true) {
    const size_t equals = text.find('=');
    if (equals == 0 || equals == text.npos) return false;
    if (text.substr(0, equals).find_first_of(" \t,\"") != text.npos) return false;
    text.remove_prefix(equals + 1);
    if (!TakeParameterValue(text)) return false;
    text = base::Trimmed(text);
    if (text.empty()) return true;
    if (!text.starts_with(',')) return false;
    text = base::Trimmed(text.substr(1));
    if (text.empty()) return true;
  }
}

std::optional<int> Base64Value(char c) {
  if (base::IsUpper(c)) return c - 'A';
  if (base::IsLower(c)) return c - 'a' + 26;
  if (base::IsDigit(c)) return c - '0' + 52;
  if (c == '+') return 62;
  if (c == '/') return 63;
  return std::nullopt;
}

// The decoded text, if it is encoded in the one form of RFC 4648, 4: padded, without other
// characters, and with unused bits of 0.
std::optional<std::string> DecodeBase64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  size_t padding = 0;
  while (padding < 2 && text.ends_with('=')) {
    text.remove_suffix(1);
    ++padding;
  }
  std::string decoded;
  uint32_t bits = 0;
  int bit_count = 0;
  for (const char c : text) {
    const auto value = Base64Value(c);
    if (!value) return std::nullopt;
    bits = (bits << 6 | static_cast<uint32_t>(*value)) & 0xffff;
    bit_count += 6;
    if (bit_count < 8) continue;
    bit_count -= 8;
    decoded.push_back(static_cast<char>(bits >> bit_count & 0xff));
  }
  if ((bits & ((1u << bit_count) - 1)) != 0) return std::nullopt;
  return decoded;
}

bool IsValid(const Split& split) {
  if (split.Is(kBasic)) return DecodeBase64(split.rest).has_value();
  if (split.Is(kBearerScheme) || split.Is(kTokenScheme))
    return IsOneWord(split.rest) && IsWhole(split.rest);
  return IsOneWord(split.rest) || AreParameters(split.rest);
}

}  // namespace

bool HasCredentials(std::string_view header) {
  return base::EqualsIgnoreCase(header, "Authorization") ||
         base::EqualsIgnoreCase(header, "Proxy-Authorization");
}

bool CanonicalCredentials(std::string_view value, std::string& out) {
  const Split split = SplitCredentials(value);
  if (!IsValid(split)) return false;
  if (!split.scheme.empty()) {
    const auto known = std::find_if(kSchemes.begin(), kSchemes.end(), [&](std::string_view scheme) {
      return base::EqualsIgnoreCase(scheme, split.scheme);
    });
    if (known != kSchemes.end()) {
      out.append(*known);
    } else {
      for (const char c : split.scheme) out.push_back(base::ToLower(c));
    }
    out.push_back(' ');
  }
  out.append(split.rest);
  return true;
}

Lookup BearerOf(std::string_view value, std::string_view& token) {
  const Split split = SplitCredentials(value);
  if (split.rest.empty()) return Lookup::kAbsent;
  if (split.scheme.empty() && base::EqualsIgnoreCase(split.rest, kBearerScheme))
    return Lookup::kAbsent;
  if (!IsValid(split)) return Lookup::kInvalid;
  if (!IsOneWord(split.rest)) return Lookup::kAbsent;
  if (split.Is(kBasic) && DecodeBase64(split.rest)->find(':') != std::string::npos) {
    return Lookup::kAbsent;
  }
  token = split.rest;
  return Lookup::kFound;
}

}  // namespace headgate::wire
