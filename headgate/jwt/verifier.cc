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

absl::Status Refused(const char* reason) { return absl::UnauthenticatedError(reason); }

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

absl::Status Verifier::Verify(std::string_view token, int64_t now_s, Token& result) const {
  if (token.size() > kTokenBytesMax) return Refused("the token is too long");
  const size_t first = token.find('.');
  const size_t second = first == token.npos ? first : token.find('.', first + 1);
  if (second == token.npos || token.find('.', second + 1) != token.npos)
    return Refused("the token is not header.claims.signature");
  std::string header_json;
  std::string claims_json;
  std::string signature;
  if (!DecodeBase64Url(token.substr(0, first), header_json) ||
      !DecodeBase64Url(token.substr(first + 1, second - first - 1), claims_json) ||
      !DecodeBase64Url(token.substr(second + 1), signature)) {
    return Refused("a part of the token is not base64url");
  }
  JsonMembers header;
  if (!header.ParseOnly(header_json, kOfHeader))
    return Refused("the header of the token is not a JSON object");
  if (!options_.unverified) {
    if (header.Find("crit")) return Refused("the token has critical extensions");
    if (!HasSignature(token.substr(0, second), signature, header))
      return Refused("no key verifies the token's signature");
  }
  if (!result.claims.Parse(claims_json))
    return Refused("the claims of the token are not a JSON object");
  return CheckClaims(now_s, result);
}

bool Verifier::HasSignature(std::string_view message, std::string_view signature,
                            const JsonMembers& header) const {
  const std::string_view algorithm = TextOf(header.Find("alg"));
  const std::string_view id = TextOf(header.Find("kid"));
  return std::any_of(keys_.begin(), keys_.end(), [&](const Key& key) {
    const bool may_be = id.empty() || key.id.empty() || key.id == id;
    return may_be && algorithm == Name(key.algorithm) && IsSignature(key, message, signature);
  });
}

absl::Status Verifier::CheckClaims(int64_t now_s, Token& token) const {
  const int64_t leeway_s = std::chrono::floor<std::chrono::seconds>(options_.leeway).count();
  token.valid_until_s = std::numeric_limits<int64_t>::max();
  if (const auto member = token.claims.Find("exp")) {
    const auto expires_s = SecondsOf(*member);
    if (!expires_s) return Refused("\"exp\" of the token is not a time");
    token.valid_until_s = *expires_s + leeway_s;
  }
  if (const auto member = token.claims.Find("nbf")) {
    const auto begins_s = SecondsOf(*member);
    if (!begins_s) return Refused("\"nbf\" of the token is not a time");
    if (now_s < *begins_s - leeway_s) return Refused("the token is not valid yet");
  }
  if (!options_.issuer.empty() && TextOf(token.claims.Find("iss")) != options_.issuer)
    return Refused("the token is of another issuer");
  if (!options_.audiences.empty() && !NamesAny(token.claims, options_.audiences))
    return Refused("the token is for another audience");
  if (now_s >= token.valid_until_s) return absl::OutOfRangeError("the token has expired");
  return absl::OkStatus();
}

}  // namespace headgate::jwt
