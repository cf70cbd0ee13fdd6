// Checks signatures with OpenSSL. In OpenSSL only the result 1 means success; malformed ECDSA
// signatures give -1.
#include <openssl/bn.h>
#include <openssl/crypto.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rsa.h>

#include <array>

#include "headgate/jwt/keys.h"

namespace headgate::jwt {
namespace {

const unsigned char* Bytes(std::string_view text) {
  return static_cast<const unsigned char*>(static_cast<const void*>(text.data()));
}

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};
using DigestContext = std::unique_ptr<EVP_MD_CTX, FreeContext>;

bool IsHmac(const Key& key, const EVP_MD* digest, std::string_view message,
            std::string_view signature) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> expected;
  unsigned int size = 0;
  if (HMAC(digest, key.secret.data(), static_cast<int>(key.secret.size()), Bytes(message),
           message.size(), expected.data(), &size) == nullptr) {
    return false;
  }
  return signature.size() == size && CRYPTO_memcmp(expected.data(), signature.data(), size) == 0;
}

bool Verifies(const DigestContext& context, std::string_view message, std::string_view signature) {
  return EVP_DigestVerify(context.get(), Bytes(signature), signature.size(), Bytes(message),
                          message.size()) == 1;
}

bool IsRsa(const Key& key, bool pss, std::string_view message, std::string_view signature) {
  DigestContext context(EVP_MD_CTX_new());
  EVP_PKEY_CTX* options = nullptr;  // belongs to the context
  if (EVP_DigestVerifyInit(context.get(), &options, EVP_sha256(), nullptr, key.public_key.get()) !=
      1) {
    return false;
  }
  if (pss && (EVP_PKEY_CTX_set_rsa_padding(options, RSA_PKCS1_PSS_PADDING) != 1 ||
              EVP_PKEY_CTX_set_rsa_pss_saltlen(options, RSA_PSS_SALTLEN_DIGEST) != 1)) {
    return false;
  }
  return Verifies(context, message, signature);
}

// JWS has r and s as 32 bytes each (RFC 7518, 3.4); OpenSSL takes them as DER.
bool IsEcdsa(const Key& key, std::string_view message, std::string_view signature) {
  constexpr size_t kHalf = 32;
  if (signature.size() != 2 * kHalf) return false;
  const std::unique_ptr<ECDSA_SIG, decltype(&ECDSA_SIG_free)> pair(ECDSA_SIG_new(),
                                                                   &ECDSA_SIG_free);
  BIGNUM* r = BN_bin2bn(Bytes(signature), kHalf, nullptr);
  BIGNUM* s = BN_bin2bn(Bytes(signature.substr(kHalf)), kHalf, nullptr);
  if (pair == nullptr || ECDSA_SIG_set0(pair.get(), r, s) != 1) {
    BN_free(r);
    BN_free(s);
    return false;
  }
  unsigned char* der = nullptr;
  const int size = i2d_ECDSA_SIG(pair.get(), &der);
  if (size <= 0) return false;
  const std::string bytes(static_cast<const char*>(static_cast<const void*>(der)),
                          static_cast<size_t>(size));
  OPENSSL_free(der);
  DigestContext context(EVP_MD_CTX_new());
  return EVP_DigestVerifyInit(context.get(), nullptr, EVP_sha256(), nullptr,
                              key.public_key.get()) == 1 &&
         Verifies(context, message, bytes);
}

bool IsEdDsa(const Key& key, std::string_view message, std::string_view signature) {
  DigestContext context(EVP_MD_CTX_new());
  return EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.public_key.get()) ==
             1 &&
         Verifies(context, message, signature);
}

}  // namespace

bool IsSignature(const Key& key, std::string_view message, std::string_view signature) {
  switch (key.algorithm) {
    case Algorithm::kHs256:
      return IsHmac(key, EVP_sha256(), message, signature);
    case Algorithm::kHs384:
      return IsHmac(key, EVP_sha384(), message, signature);
    case Algorithm::kHs512:
      return IsHmac(key, EVP_sha512(), message, signature);
    case Algorithm::kRs256:
      return IsRsa(key, false, message, signature);
    case Algorithm::kPs256:
      return IsRsa(key, true, message, signature);
    case Algorithm::kEs256:
      return IsEcdsa(key, message, signature);
    case Algorithm::kEdDsa:
      return IsEdDsa(key, message, signature);
  }
  return false;
}

}  // namespace headgate::jwt
