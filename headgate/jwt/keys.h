// The keys that verify tokens: a JSON Web Key Set (RFC 7517), or a secret.
//
// Each key states its algorithm (RFC 7518); a token never chooses it. Weak keys are refused:
// OpenSSL accepts keys with which anybody can sign, such as an RSA exponent of 1 or an Ed25519
// point of low order.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/status.h"

// OpenSSL's EVP_PKEY.
struct evp_pkey_st;

namespace headgate::jwt {

enum class Algorithm : uint8_t { kHs256, kHs384, kHs512, kRs256, kPs256, kEs256, kEdDsa };

// "HS256", …
std::string_view Name(Algorithm algorithm);

struct Key {
  Algorithm algorithm = Algorithm::kHs256;
  std::string id{};                           // `kid`, or empty
  std::string secret{};                       // for HS*
  std::shared_ptr<evp_pkey_st> public_key{};  // for the others
};

// The most keys of a set.
inline constexpr size_t kKeysMax = 64;
// The most keys with which one token is compared: a signature takes up to 0.2 ms.
inline constexpr size_t kTriedMax = 4;

struct KeySet {
  std::vector<Key> keys;
  // For people: which keys are not used because they are malformed or weak, and what is wrong with
  // the others.
  std::vector<std::string> warnings;
};

// The keys of a set that can verify signatures. Keys for other purposes are skipped; so are
// malformed or weak ones, with a warning. InvalidArgument if the text is not a key set, if no key
// is left, or if more than kTriedMax keys could have signed a token that names its key.
absl::StatusOr<KeySet> ReadKeySet(std::string_view json);

// A secret that signer and verifier share. InvalidArgument if it is shorter than the digest (RFC
// 7518, 3.2), or looks like a public key in PEM form.
absl::StatusOr<Key> SecretKey(std::string secret, Algorithm algorithm);

// Whether `signature` is the signature of `message` by this key.
bool IsSignature(const Key& key, std::string_view message, std::string_view signature);

}  // namespace headgate::jwt
