#include "headgate/jwt/keys.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>

#include <algorithm>
#include <array>
#include <optional>

#include "headgate/jwt/base64url.h"
#include "headgate/wire/json.h"

namespace headgate::jwt {
namespace {

using wire::Json;

constexpr std::array<std::string_view, 7> kNames = {"HS256", "HS384", "HS512", "RS256",
                                                    "PS256", "ES256", "EdDSA"};

std::optional<Algorithm> AlgorithmByName(std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Algorithm>(found - kNames.begin());
}

absl::StatusOr<std::string> Decoded(const Json& object, std::string_view name) {
  std::string bytes;
  const std::string_view text = object[name].text();
  if (text.empty() || !DecodeBase64Url(text, bytes))
    return absl::InvalidArgumentError(fmt::format("\"{}\" is missing or is not base64url", name));
  return bytes;
}

std::shared_ptr<evp_pkey_st> Owned(EVP_PKEY* key) {
  return std::shared_ptr<evp_pkey_st>(key, &EVP_PKEY_free);
}

// A key of this type, made from its parameters; null if OpenSSL refuses it.
std::shared_ptr<evp_pkey_st> MakeKey(const char* type, OSSL_PARAM_BLD* builder) {
  const std::unique_ptr<OSSL_PARAM, decltype(&OSSL_PARAM_free)> parameters(
      OSSL_PARAM_BLD_to_param(builder), &OSSL_PARAM_free);
  const std::unique_ptr<EVP_PKEY_CTX, decltype(&EVP_PKEY_CTX_free)> context(
      EVP_PKEY_CTX_new_from_name(nullptr, type, nullptr), &EVP_PKEY_CTX_free);
  EVP_PKEY* key = nullptr;
  if (parameters == nullptr || context == nullptr || EVP_PKEY_fromdata_init(context.get()) != 1 ||
      EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_PUBLIC_KEY, parameters.get()) != 1) {
    EVP_PKEY_free(key);
    return nullptr;
  }
  return Owned(key);
}

using Builder = std::unique_ptr<OSSL_PARAM_BLD, decltype(&OSSL_PARAM_BLD_free)>;
using Number = std::unique_ptr<BIGNUM, decltype(&BN_free)>;

const unsigned char* Bytes(const std::string& text) {
  return static_cast<const unsigned char*>(static_cast<const void*>(text.data()));
}

Number ToNumber(const std::string& bytes) {
  return {BN_bin2bn(Bytes(bytes), static_cast<int>(bytes.size()), nullptr), &BN_free};
}

absl::StatusOr<std::shared_ptr<evp_pkey_st>> RsaKey(const Json& object) {
  HEADGATE_ASSIGN_OR_RETURN(const std::string modulus, Decoded(object, "n"));
  HEADGATE_ASSIGN_OR_RETURN(const std::string exponent, Decoded(object, "e"));
  const Number n = ToNumber(modulus);
  const Number e = ToNumber(exponent);
  if (BN_num_bits(n.get()) < 2048 || BN_num_bits(n.get()) > 4096 || BN_is_odd(n.get()) == 0)
    return absl::InvalidArgumentError("an RSA modulus is an odd number of 2048 to 4096 bits");
  if (BN_is_odd(e.get()) == 0 || BN_is_one(e.get()) != 0 || BN_num_bits(e.get()) > 64)
    return absl::InvalidArgumentError(
        "an RSA exponent is an odd number from 3 on, of at most 64 bits");
  const Builder builder(OSSL_PARAM_BLD_new(), &OSSL_PARAM_BLD_free);
  OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_N, n.get());
  OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_E, e.get());
  auto key = MakeKey("RSA", builder.get());
  if (key == nullptr) return absl::InvalidArgumentError("OpenSSL refuses this RSA key");
  return key;
}

absl::StatusOr<std::shared_ptr<evp_pkey_st>> P256Key(const Json& object) {
  HEADGATE_ASSIGN_OR_RETURN(const std::string x, Decoded(object, "x"));
  HEADGATE_ASSIGN_OR_RETURN(const std::string y, Decoded(object, "y"));
  if (x.size() != 32 || y.size() != 32)
    return absl::InvalidArgumentError("a coordinate of P-256 has 32 bytes");
  const std::string point = '\x04' + x + y;  // uncompressed (SEC 1, 2.3.3)
  const Builder builder(OSSL_PARAM_BLD_new(), &OSSL_PARAM_BLD_free);
  OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0);
  OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(),
                                   point.size());
  auto key = MakeKey("EC", builder.get());
  if (key == nullptr) return absl::InvalidArgumentError("the point is not on the curve P-256");
  return key;
}

// The y coordinates of all points of small order, in all encodings, without the sign bit. With such
// a key, signatures can be forged.
constexpr std::array<std::string_view, 7> kSmallOrder = {
    std::string_view("\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
                     "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
                     32),
    std::string_view("\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
                     "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
                     32),
    std::string_view("\x26\xe8\x95\x8f\xc2\xb2\x27\xb0\x45\xc3\xf4\x89\xf2\xef\x98\xf0"
                     "\xd5\xdf\xac\x05\xd3\xc6\x33\x39\xb1\x38\x02\x88\x6d\x53\xfc\x05",
                     32),
    std::string_view("\xc7\x17\x6a\x70\x3d\x4d\xd8\x4f\xba\x3c\x0b\x76\x0d\x10\x67\x0f"
                     "\x2a\x20\x53\xfa\x2c\x39\xcc\xc6\x4e\xc7\xfd\x77\x92\xac\x03\x7a",
                     32),
    std::string_view("\xec\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"
                     "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
                     32),
    std::string_view("\xed\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"
                     "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
                     32),
    std::string_view("\xee\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"
                     "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
                     32)};

absl::StatusOr<std::shared_ptr<evp_pkey_st>> Ed25519Key(const Json& object) {
  HEADGATE_ASSIGN_OR_RETURN(const std::string x, Decoded(object, "x"));
  if (x.size() != 32) return absl::InvalidArgumentError("a key of Ed25519 has 32 bytes");
  std::string unsigned_x = x;
  unsigned_x.back() = static_cast<char>(unsigned_x.back() & 0x7f);
  if (std::find(kSmallOrder.begin(), kSmallOrder.end(), unsigned_x) != kSmallOrder.end())
    return absl::InvalidArgumentError("this point of Ed25519 has a small order: anybody can sign");
  EVP_PKEY* const key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, Bytes(x), x.size());
  if (key == nullptr) return absl::InvalidArgumentError("OpenSSL refuses this Ed25519 key");
  return Owned(key);
}

bool IsHmac(Algorithm algorithm) {
  return algorithm == Algorithm::kHs256 || algorithm == Algorithm::kHs384 ||
         algorithm == Algorithm::kHs512;
}

// The algorithm of a key, if it is one that verifies tokens.
std::optional<Algorithm> AlgorithmOf(const Json& object) {
  const std::string_view type = object["kty"].text();
  const std::string_view stated = object["alg"].text();
  const std::string_view curve = object["crv"].text();
  if (const std::string_view use = object["use"].text(); !use.empty() && use != "sig") return {};
  const auto algorithm = AlgorithmByName(stated);
  if (!stated.empty() && !algorithm) return std::nullopt;
  if (type == "RSA") {
    if (!algorithm) return Algorithm::kRs256;
    if (algorithm == Algorithm::kRs256 || algorithm == Algorithm::kPs256) return algorithm;
  } else if (type == "EC" && curve == "P-256") {
    if (algorithm.value_or(Algorithm::kEs256) == Algorithm::kEs256) return Algorithm::kEs256;
  } else if (type == "OKP" && curve == "Ed25519") {
    if (algorithm.value_or(Algorithm::kEdDsa) == Algorithm::kEdDsa) return Algorithm::kEdDsa;
  } else if (type == "oct") {
    if (IsHmac(algorithm.value_or(Algorithm::kHs256))) return algorithm.value_or(Algorithm::kHs256);
  }
  return std::nullopt;
}

// Whether an object, except for the items of the arrays in it, has two members of one name. Readers
// differ in which of the two they take.
bool HasNameTwice(const Json& object) {
  std::vector<std::string_view> names;
  for (const Json::Member& member : object.members()) {
    if (HasNameTwice(member.value)) return true;
    names.push_back(member.name);
  }
  std::sort(names.begin(), names.end());
  return std::adjacent_find(names.begin(), names.end()) != names.end();
}

absl::StatusOr<Key> ReadKey(const Json& object, Algorithm algorithm) {
  if (HasNameTwice(object)) return absl::InvalidArgumentError("it has a member twice");
  Key key{.algorithm = algorithm, .id = std::string(object["kid"].text())};
  if (IsHmac(algorithm)) {
    HEADGATE_ASSIGN_OR_RETURN(std::string secret, Decoded(object, "k"));
    HEADGATE_ASSIGN_OR_RETURN(Key secret_key, SecretKey(std::move(secret), algorithm));
    secret_key.id = key.id;
    return secret_key;
  }
  auto public_key = algorithm == Algorithm::kEs256   ? P256Key(object)
                    : algorithm == Algorithm::kEdDsa ? Ed25519Key(object)
                                                     : RsaKey(object);
  if (!public_key.ok()) return public_key.status();
  key.public_key = *std::move(public_key);
  return key;
}

// Checks that no token fits more than kTriedMax keys, whatever key it names.
absl::Status CheckNames(KeySet& set) {
  size_t unnamed_count = 0;
  for (const Key& key : set.keys) {
    if (key.id.empty()) ++unnamed_count;
    const auto fitting = std::count_if(set.keys.begin(), set.keys.end(), [&](const Key& other) {
      return other.algorithm == key.algorithm && (other.id.empty() || other.id == key.id);
    });
    if (fitting > static_cast<std::ptrdiff_t>(kTriedMax)) {
      return absl::InvalidArgumentError(
          fmt::format("{} keys of {} fit a token that {}; at most {} are tried, so give each key a "
                      "\"kid\" of its own",
                      fitting, Name(key.algorithm),
                      key.id.empty() ? std::string("names none by \"kid\"")
                                     : fmt::format("has the \"kid\" '{}'", key.id),
                      kTriedMax));
    }
  }
  if (set.keys.size() > 1 && unnamed_count > 0) {
    set.warnings.push_back(
        fmt::format("{} of {} keys have no \"kid\": every one of them is tried for each token",
                    unnamed_count, set.keys.size()));
  }
  return absl::OkStatus();
}

}  // namespace

std::string_view Name(Algorithm algorithm) { return kNames[static_cast<size_t>(algorithm)]; }

absl::StatusOr<KeySet> ReadKeySet(std::string_view text) {
  const Json set = Json::Parse(text).value_or(nullptr);
  if (!set["keys"].is_array() || HasNameTwice(set))
    return absl::InvalidArgumentError("this is not a JSON Web Key Set: {\"keys\": […]}");
  const std::vector<Json>& keys = set["keys"].items();
  if (keys.size() > kKeysMax)
    return absl::InvalidArgumentError(fmt::format("a set has at most {} keys", kKeysMax));
  KeySet usable;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (!keys[i].is_object())
      return absl::InvalidArgumentError(fmt::format("keys[{}] is no object", i));
    const auto algorithm = AlgorithmOf(keys[i]);
    if (!algorithm) continue;
    auto key = ReadKey(keys[i], *algorithm);
    if (key.ok()) {
      usable.keys.push_back(*std::move(key));
    } else {
      usable.warnings.push_back(
          fmt::format("keys[{}] is not used: {}", i, std::string(key.status().message())));
    }
  }
  if (usable.keys.empty() && !usable.warnings.empty())
    return absl::InvalidArgumentError(fmt::format("{}", fmt::join(usable.warnings, "; ")));
  if (usable.keys.empty())
    return absl::InvalidArgumentError(
        fmt::format("no key of the set verifies signatures of {}", fmt::join(kNames, ", ")));
  HEADGATE_RETURN_IF_ERROR(CheckNames(usable));
  return usable;
}

absl::StatusOr<Key> SecretKey(std::string secret, Algorithm algorithm) {
  const size_t digest_bytes = algorithm == Algorithm::kHs512   ? 64
                              : algorithm == Algorithm::kHs384 ? 48
                                                               : 32;
  if (secret.size() < digest_bytes) {
    return absl::InvalidArgumentError(
        fmt::format("a secret for {} has at least {} bytes, this one has {}", Name(algorithm),
                    digest_bytes, secret.size()));
  }
  if (secret.starts_with("-----BEGIN"))
    return absl::InvalidArgumentError("this is a key in PEM form, which everybody may know");
  Key key{.algorithm = algorithm};
  key.secret = std::move(secret);
  return key;
}

}  // namespace headgate::jwt
