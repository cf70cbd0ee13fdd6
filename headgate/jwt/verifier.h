// Checks JSON Web Tokens (RFC 7519) and reads their claims.
//
//   token ──▶ a key with the token's `kid` ──▶ signature, by the key's algorithm ──▶ exp, nbf,
//   iss, aud ──▶ claims
//
// The header of a token chooses nothing: its `alg` must be the key's, `kid` only looks up, and the
// rest is skipped, such as `jku`, `x5u` and `jwk`. A token with `crit` is refused, because no
// extension is understood (RFC 8725).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/status.h"
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

// Immutable, so any number of threads may use it.
class Verifier {
 public:
  Verifier(VerifierOptions options, std::vector<Key> keys)
      : options_(std::move(options)), keys_(std::move(keys)) {}

  struct Token {
    JsonMembers claims;
    // The first second at which the token is no longer valid; the maximum if it has no `exp`.
    int64_t valid_until_s = 0;
  };
  // OutOfRange if the token was valid once, and Unauthenticated otherwise; with the reason, which
  // holds nothing of the token. `now_s`: Unix time.
  absl::Status Verify(std::string_view token, int64_t now_s, Token& result) const;

 private:
  bool HasSignature(std::string_view message, std::string_view signature,
                    const JsonMembers& header) const;
  absl::Status CheckClaims(int64_t now_s, Token& token) const;

  const VerifierOptions options_;
  const std::vector<Key> keys_;
};

}  // namespace headgate::jwt
