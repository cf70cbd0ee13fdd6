// Reads claims of the tokens that requests carry. Checking a signature takes up to 0.2 ms, so the
// results for recent tokens are kept: the claims of valid ones, and the hashes of ones with a wrong
// signature. They are kept apart, so that wrong tokens cannot displace valid ones.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/hash.h"
#include "headgate/base/random_secret.h"
#include "headgate/jwt/verifier.h"
#include "headgate/mapping/described_request.h"

namespace headgate::mapping {

// The place of an issuer's tokens in a request, and how they are verified.
struct TokenIssuer {
  std::string name{};  // as attributes name it
  // The header or cookie. `Bearer` and the spaces before a token are removed.
  std::string header = "Authorization";
  std::string cookie{};  // not empty: a cookie instead
  std::shared_ptr<const jwt::Verifier> verifier{};
};

enum class ClaimLookup : uint8_t {
  kFound,
  kAbsent,     // no token, or it does not have the claim
  kExpired,    // the token was valid once
  kNotValid,   // there is a token that no issuer at this place of requests has signed
  kAmbiguous,  // the header or cookie comes twice, or is malformed
};

// For one thread.
class TokenReader {
 public:
  // The most tokens whose claims are kept, and their bytes: 4 KiB for each, where most take less
  // than 2 KiB and none takes more than 64 KiB. One request may exceed both by its own tokens.
  static constexpr size_t kKeptMax = 1024;
  static constexpr size_t kKeptBytesMax = kKeptMax * 4096;

  // From now on, reads tokens of these issuers. They must outlive the reader's use.
  void SetIssuers(std::span<const TokenIssuer> issuers);
  // A new request begins.
  void Begin();
  size_t kept_bytes() const { return kept_bytes_; }
  // Why a token of the present request was refused; the first reason if there are several.
  jwt::Refusal refusal() const { return refusal_; }

  // Appends the claim as text: a string, a number or a boolean. A token that is present but not
  // valid does not count as absent: a backend may accept a token that is refused here ("Bearer
  // TOKEN="), and a client must not lose its claims by sending one. A valid token of another
  // issuer, and credentials of another scheme that cannot hold a token (Basic), are as if there
  // were no token.
  ClaimLookup Claim(uint32_t issuer, std::span<const std::string> names,
                    const DescribedRequest& request, int64_t now_s, std::string& text);

 private:
  struct Kept {
    std::string token;
    uint32_t issuer = 0;
    jwt::Verifier::Token verified{};

    size_t bytes() const { return sizeof(Kept) + token.capacity() + verified.claims.bytes(); }
  };
  struct Current {
    uint32_t issuer = 0;
    const jwt::Verifier::Token* token = nullptr;  // null: none that is valid
    ClaimLookup lookup = ClaimLookup::kAbsent;    // kFound exactly if there is a valid token
    jwt::Refusal refusal = jwt::Refusal::kNone;
  };
  // A token with a wrong signature.
  struct Wrong {
    base::Hash128 token{};
    uint32_t issuer = 0;
    bool operator==(const Wrong&) const = default;
  };
  static constexpr size_t kWrongMax = 1024;

  Current TokenOf(uint32_t issuer, const DescribedRequest& request, int64_t now_s);
  // Sets the token, or why there is none.
  void Verify(std::string_view token, int64_t now_s, Current& current);
  void Forget(std::unique_ptr<Kept>& slot);
  // The reason why there is no token, if one that is not valid was found for the current issuer.
  ClaimLookup WithoutToken(const Current& current, const DescribedRequest& request, int64_t now_s);

  std::span<const TokenIssuer> issuers_;
  std::vector<Current> current_;             // of the present request
  std::vector<std::unique_ptr<Kept>> kept_;  // a slot per hash; a newer token replaces an older one
  std::string cookie_;                       // decoded, for a moment
  size_t kept_bytes_ = 0;
  size_t next_forgotten_ = 0;  // the slot
  const base::HashSecret wrong_secret_ = base::RandomHashSecret();
  std::vector<Wrong> wrong_;  // a slot per hash; empty before the first one
  jwt::Refusal refusal_ = jwt::Refusal::kNone;
};

}  // namespace headgate::mapping
