// Makes keys and signed tokens for tests.
#pragma once

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rsa.h>

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/escaping.h"
#include "headgate/base/check.h"
#include "headgate/jwt/keys.h"

namespace headgate::jwt {

std::string EncodeBase64Url(std::string_view bytes);

// A new key pair.
class TestSigner {
 public:
  explicit TestSigner(Algorithm algorithm);

  // The public key as a JSON Web Key, with these members added: R"(,"kid":"a")".
  std::string PublicKey(std::string_view members = {}) const;
  // A key set of this key alone.
  std::string KeySet(std::string_view members = {}) const {
    return "{\"keys\":[" + PublicKey(members) + "]}";
  }
  // A token with the header {"alg":…}, and these members added to it.
  std::string Sign(std::string_view claims, std::string_view header_members = {}) const;
  // A token with any header.
  std::string SignWithHeader(std::string_view header, std::string_view claims) const;

 private:
  std::string Signature(std::string_view message) const;

  const Algorithm algorithm_;
  const std::string secret_ = std::string(64, 's');  // for HS*
  std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> pair_{nullptr, &EVP_PKEY_free};
};

namespace signing {

inline const unsigned char* Bytes(std::string_view text) {
  return static_cast<const unsigned char*>(static_cast<const void*>(text.data()));
}

inline std::string Text(const unsigned char* bytes, size_t size) {
  return {static_cast<const char*>(static_cast<const void*>(bytes)), size};
}

inline std::string NumberOf(EVP_PKEY* key, const char* name, int size = 0) {
  BIGNUM* number = nullptr;
  HEADGATE_CHECK(EVP_PKEY_get_bn_param(key, name, &number) == 1);
  std::vector<unsigned char> bytes(static_cast<size_t>(size > 0 ? size : BN_num_bytes(number)));
  BN_bn2binpad(number, bytes.data(), static_cast<int>(bytes.size()));
  BN_free(number);
  return Text(bytes.data(), bytes.size());
}

inline bool IsHmac(Algorithm algorithm) { return algorithm <= Algorithm::kHs512; }

inline const EVP_MD* DigestOf(Algorithm algorithm) {
  if (algorithm == Algorithm::kHs384) return EVP_sha384();
  return algorithm == Algorithm::kHs512 ? EVP_sha512() : EVP_sha256();
}

}  // namespace signing

inline std::string EncodeBase64Url(std::string_view bytes) {
  return absl::WebSafeBase64Escape({bytes.data(), bytes.size()});
}

inline TestSigner::TestSigner(Algorithm algorithm) : algorithm_(algorithm) {
  if (algorithm == Algorithm::kEs256) {
    pair_.reset(EVP_EC_gen("P-256"));
  } else if (algorithm == Algorithm::kEdDsa) {
    pair_.reset(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
  } else if (!signing::IsHmac(algorithm)) {
    pair_.reset(EVP_RSA_gen(2048u));
  }
}

inline std::string TestSigner::PublicKey(std::string_view members) const {
  std::string key = "{";
  if (signing::IsHmac(algorithm_)) {
    key += R"("kty":"oct","k":")" + EncodeBase64Url(secret_);
  } else if (algorithm_ == Algorithm::kEs256) {
    key += R"("kty":"EC","crv":"P-256","x":")" +
           EncodeBase64Url(signing::NumberOf(pair_.get(), OSSL_PKEY_PARAM_EC_PUB_X, 32)) +
           R"(","y":")" +
           EncodeBase64Url(signing::NumberOf(pair_.get(), OSSL_PKEY_PARAM_EC_PUB_Y, 32));
  } else if (algorithm_ == Algorithm::kEdDsa) {
    std::array<unsigned char, 32> raw{};
    size_t size = raw.size();
    EVP_PKEY_get_raw_public_key(pair_.get(), raw.data(), &size);
    key +=
        R"("kty":"OKP","crv":"Ed25519","x":")" + EncodeBase64Url(signing::Text(raw.data(), size));
  } else {
    key += R"("kty":"RSA","n":")" +
           EncodeBase64Url(signing::NumberOf(pair_.get(), OSSL_PKEY_PARAM_RSA_N)) + R"(","e":")" +
           EncodeBase64Url(signing::NumberOf(pair_.get(), OSSL_PKEY_PARAM_RSA_E));
  }
  return key.append(R"(","alg":")").append(Name(algorithm_)).append("\"").append(members) + "}";
}

inline std::string TestSigner::Sign(std::string_view claims,
                                    std::string_view header_members) const {
  std::string header = R"({"alg":")";
  header.append(Name(algorithm_)).append("\"").append(header_members).append("}");
  return SignWithHeader(header, claims);
}

inline std::string TestSigner::SignWithHeader(std::string_view header,
                                              std::string_view claims) const {
  const std::string message = EncodeBase64Url(header) + "." + EncodeBase64Url(claims);
  return message + "." + EncodeBase64Url(Signature(message));
}

inline std::string TestSigner::Signature(std::string_view message) const {
  std::vector<unsigned char> bytes(1024);
  if (signing::IsHmac(algorithm_)) {
    unsigned int size = 0;
    HMAC(signing::DigestOf(algorithm_), secret_.data(), static_cast<int>(secret_.size()),
         signing::Bytes(message), message.size(), bytes.data(), &size);
    return signing::Text(bytes.data(), size);
  }
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        &EVP_MD_CTX_free);
  EVP_PKEY_CTX* options = nullptr;
  const EVP_MD* const digest = algorithm_ == Algorithm::kEdDsa ? nullptr : EVP_sha256();
  HEADGATE_CHECK(EVP_DigestSignInit(context.get(), &options, digest, nullptr, pair_.get()) == 1);
  if (algorithm_ == Algorithm::kPs256) {
    EVP_PKEY_CTX_set_rsa_padding(options, RSA_PKCS1_PSS_PADDING);
    EVP_PKEY_CTX_set_rsa_pss_saltlen(options, RSA_PSS_SALTLEN_DIGEST);
  }
  size_t size = bytes.size();
  HEADGATE_CHECK(EVP_DigestSign(context.get(), bytes.data(), &size, signing::Bytes(message),
                                message.size()) == 1);
  if (algorithm_ != Algorithm::kEs256) return signing::Text(bytes.data(), size);
  const unsigned char* der = bytes.data();
  const std::unique_ptr<ECDSA_SIG, decltype(&ECDSA_SIG_free)> pair(
      d2i_ECDSA_SIG(nullptr, &der, static_cast<long>(size)), &ECDSA_SIG_free);
  std::array<unsigned char, 64> halves{};
  BN_bn2binpad(ECDSA_SIG_get0_r(pair.get()), halves.data(), 32);
  BN_bn2binpad(ECDSA_SIG_get0_s(pair.get()), halves.data() + 32, 32);
  return signing::Text(halves.data(), halves.size());
}

}  // namespace headgate::jwt
