#include "headgate/jwt/verifier.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>

#include "headgate/base/text.h"
#include "headgate/jwt/base64url.h"

namespace headgate::jwt {
namespace {

using Kind = JsonMembers::Kind;
using Member = JsonMembers::Member;

// The only members of a header that are read. Anybody can write a header, so the rest is skipped.
constexpr std::array<std::string_view, 3> kOfHeader = {"alg", "kid", "crit"};

struct Words {
  std::string_view name;
  std::string_view text;
};
constexpr std::array<Words, kRefusals> kWords = {{
    {"", ""},
    {"too_long", "the token is too long"},
    {"not_three_parts", "the token is not header.claims.signature"},
    {"not_base64", "a part of the token is not base64url"},
    {"header", "the header of the token is not a JSON object"},
    {"critical", "the token has critical extensions"},
    {"unnamed_key", "the token names no key (kid), and more keys fit than are tried"},
    {"signature", "no key verifies the token's signature"},
    {"claims", "the claims of the token are not a JSON object"},
    {"bad_time", "exp or nbf of the token is not a time"},
    {"not_yet", "the token is not valid yet"},
    {"issuer", "the token is of another issuer"},
    {"audience", "the token is for another audience"},
    {"expired", "the token has expired"},
}};

std::string_view TextOf(const std::optional<Member>& member) {
  return member && member->kind == Kind::kString ? member->text : std::string_view();
}

// The whole seconds of a NumericDate (RFC 7519, section 2), rounded down. Empty if it is not a
// positive decimal number below 10^12.
std::optional<int64_t> SecondsOf(const Member& member) {
  if (member.kind != Kind::kNumber) return std::nullopt;
  int64_t seconds = 0;
  const char* const end = member.text.data() + member.text.size();
  const auto [rest, error] = std::from_chars(member.text.data(), end, seconds);
  if (error != std::errc() || seconds < 0 || seconds >= 1'000'000'000'000) return std::nullopt;
  if (rest == end) return seconds;
  const bool fraction = *rest == '.' && std::all_of(rest + 1, end, base::IsDigit);
  return fraction ? std::optional(seconds) : std::nullopt;
}

bool NamesAny(const JsonMembers& claims, const std::vector<std::string>& audiences) {
  std::vector<std::string_view> named = claims.StringsIn("aud");
  if (const std::string_view one = TextOf(claims.Find("aud")); !one.empty()) named.push_back(one);
  return std::any_of(named.begin(), named.end(), [&](std::string_view name) {
    return std::find(audiences.begin(), audiences.end(), name) != audiences.end();
  });
}

}  // namespace

std::string_view Name(Refusal refusal) { return kWords[static_cast<size_t>(refusal)].name; }
std::string_view Describe(Refusal refusal) { return kWords[static_cast<size_t>(refusal)].text; }

Refusal Verifier::Verify(std::string_view token, int64_t now_s, Token& result) const {
  if (token.size() > kTokenBytesMax) return Refusal::kTooLong;
  const size_t first = token.find('.');
  const size_t second = first == token.npos ? first : token.find('.', first + 1);
  if (second == token.npos || token.find('.', second + 1) != token.npos)
    return Refusal::kNotThreeParts;
  std::string header_json;
  std::string claims_json;
  std::string signature;
  if (!DecodeBase64Url(token.substr(0, first), header_json) ||
      !DecodeBase64Url(token.substr(first + 1, second - first - 1), claims_json) ||
      !DecodeBase64Url(token.substr(second + 1), signature)) {
    return Refusal::kNotBase64;
  }
  JsonMembers header;
  if (!header.ParseOnly(header_json, kOfHeader)) return Refusal::kHeader;
  if (!options_.unverified) {
    if (header.Find("crit")) return Refusal::kCritical;
    const Refusal refusal = CheckSignature(token.substr(0, second), signature, header);
    if (refusal != Refusal::kNone) return refusal;
  }
  if (!result.claims.Parse(claims_json)) return Refusal::kClaims;
  return CheckClaims(now_s, result);
}

Refusal Verifier::CheckSignature(std::string_view message, std::string_view signature,
                                 const JsonMembers& header) const {
  const std::string_view algorithm = TextOf(header.Find("alg"));
  const std::string_view id = TextOf(header.Find("kid"));
  std::array<const Key*, kTriedMax> fitting{};
  size_t count = 0;
  for (const Key& key : keys_) {
    if (!(id.empty() || key.id.empty() || key.id == id) || algorithm != Name(key.algorithm))
      continue;
    if (count == kTriedMax) return Refusal::kUnnamedKey;
    fitting[count++] = &key;
  }
  return std::any_of(fitting.begin(), fitting.begin() + count,
                     [&](const Key* key) { return IsSignature(*key, message, signature); })
             ? Refusal::kNone
             : Refusal::kSignature;
}

Refusal Verifier::CheckClaims(int64_t now_s, Token& token) const {
  const int64_t leeway_s = std::chrono::floor<std::chrono::seconds>(options_.leeway).count();
  token.valid_until_s = std::numeric_limits<int64_t>::max();
  if (const auto member = token.claims.Find("exp")) {
    const auto expires_s = SecondsOf(*member);
    if (!expires_s) return Refusal::kBadTime;
    token.valid_until_s = *expires_s + leeway_s;
  }
  if (const auto member = token.claims.Find("nbf")) {
    const auto begins_s = SecondsOf(*member);
    if (!begins_s) return Refusal::kBadTime;
    if (now_s < *begins_s - leeway_s) return Refusal::kNotYet;
  }
  if (!options_.issuer.empty() && TextOf(token.claims.Find("iss")) != options_.issuer)
    return Refusal::kIssuer;
  if (!options_.audiences.empty() && !NamesAny(token.claims, options_.audiences))
    return Refusal::kAudience;
  return now_s < token.valid_until_s ? Refusal::kNone : Refusal::kExpired;
}

}  // namespace headgate::jwt
