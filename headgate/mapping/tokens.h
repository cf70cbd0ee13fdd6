// Reads claims of the tokens that requests carry. Checking a signature takes up to 0.1 ms, so the
// results for tokens that were seen lately are kept.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/jwt/verifier.h"
#include "headgate/mapping/request_head.h"

namespace headgate::mapping {

// The place of an issuer's tokens in a request, and how they are verified.
struct TokenIssuer {
  std::string name{};  // as attributes name it
  // The header or cookie. `Bearer ` before a token in a header is removed.
  std::string header = "Authorization";
  std::string cookie{};  // not empty: a cookie instead
  std::shared_ptr<const jwt::Verifier> verifier{};
};

// For one thread.
class TokenReader {
 public:
  // The most tokens whose claims are kept; about 2 KiB each.
  static constexpr size_t kKeptMax = 1024;

  // From now on, reads tokens of these issuers. They must outlive the reader's use.
  void SetIssuers(std::span<const TokenIssuer> issuers);
  // A new request begins.
  void Begin();

  // Appends the claim as text: a string, a number or a boolean. kAbsent if the request has no valid
  // token of this issuer, or the token does not have the claim. kTwice if the header or cookie of
  // the token comes twice: proxies and applications differ in which one they take.
  wire::Lookup Claim(uint32_t issuer, std::span<const std::string> names,
                     const RequestHead& request, int64_t now_s, std::string& text);

 private:
  struct Kept {
    std::string token;
    uint32_t issuer = 0;
    jwt::Verifier::Token verified{};
  };
  struct Current {
    uint32_t issuer = 0;
    const jwt::Verifier::Token* token = nullptr;  // null: none that is valid
    wire::Lookup lookup = wire::Lookup::kAbsent;  // kFound exactly if there is a token
  };

  Current TokenOf(uint32_t issuer, const RequestHead& request, int64_t now_s);
  const jwt::Verifier::Token* Verified(uint32_t issuer, std::string_view token, int64_t now_s);

  std::span<const TokenIssuer> issuers_;
  std::vector<Current> current_;             // of the present request
  std::vector<std::unique_ptr<Kept>> kept_;  // a slot per hash; a newer token replaces an older one
};

}  // namespace headgate::mapping
