// Checks JSON Web Tokens (RFC 7519) and reads their claims.
//
//   token ──▶ a key with the token's `kid` ──▶ signature, by the key's algorithm ──▶ exp, nbf,
//   iss, aud ──▶ claims
//
// Anybody can send a token with a wrong signature, so each is compared with kTriedMax keys at most:
// if more keys fit a token without `kid`, the token is refused without a comparison.
//
// The header of a token chooses nothing: its `alg` must be the key's, `kid` only selects the key,
// and the rest is skipped, such as `jku`, `x5u` and `jwk`. A token with `crit` is refused, because
// no extension is understood (RFC 8725).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/time.h"
#include "headgate/jwt/json_members.h"
#include "headgate/jwt/keys.h"

namespace headgate::jwt {

// A longer token is refused.
inline constexpr size_t kTokenBytesMax = 8 * 1024;

struct VerifierOptions {
  std::string issuer{};                  // the required `iss`; empty: any
  std::vector<std::string> audiences{};  // `aud` must name one of them; empty: any
  // How much clocks may differ. At most a minute.
  base::Duration leeway = std::chrono::seconds(30);
  // Reads tokens without checking their signatures. Only for tokens that another server has
  // checked.
  bool unverified = false;
};

// Why a token is refused.
enum class Refusal : uint8_t {
  kNone,  // the token is valid
  kTooLong,
  kNotThreeParts,
  kNotBase64,
  kHeader,    // is not a JSON object
  kCritical,  // has extensions that must be understood
  kUnnamedKey,
  kSignature,
  kClaims,   // are not a JSON object
  kBadTime,  // `exp` or `nbf` is not a time
  kNotYet,
  kIssuer,
  kAudience,
  kExpired,  // it was valid once
};
inline constexpr size_t kRefusals = static_cast<size_t>(Refusal::kExpired) + 1;

// As metrics name it: "signature".
std::string_view Name(Refusal refusal);
// For people: "no key verifies the token's signature". It holds nothing of the token.
std::string_view Describe(Refusal refusal);

// Immutable, so any number of threads may use it.
class Verifier {
 public:
  Verifier(VerifierOptions options, std::vector<Key> keys)
      : options_(std::move(options)), keys_(std::move(keys)) {}

  bool is_unverified() const { return options_.unverified; }

  struct Token {
    JsonMembers claims;
    // The first second at which the token is no longer valid; the maximum if it has no `exp`.
    int64_t valid_until_s = 0;
  };
  // `now_s`: Unix time.
  Refusal Verify(std::string_view token, int64_t now_s, Token& result) const;

 private:
  Refusal CheckSignature(std::string_view message, std::string_view signature,
                         const JsonMembers& header) const;
  Refusal CheckClaims(int64_t now_s, Token& token) const;

  const VerifierOptions options_;
  const std::vector<Key> keys_;
};

}  // namespace headgate::jwt
