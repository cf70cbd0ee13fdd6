#include "headgate/wire/digest.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "headgate/base/check.h"
#include "headgate/base/text.h"

namespace headgate::wire {

std::string DigestHex(Digest digest, std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes;
  unsigned int size = 0;
  const EVP_MD* method = digest == Digest::kSha1 ? EVP_sha1() : EVP_sha256();
  HEADGATE_CHECK(EVP_Digest(text.data(), text.size(), bytes.data(), &size, method, nullptr) == 1);
  std::string hex;
  for (unsigned int i = 0; i < size; ++i) base::AppendHex(bytes[i], hex);
  return hex;
}

Mac HmacSha256(std::string_view key, std::string_view text) {
  Mac mac;
  const auto* const bytes =
      static_cast<const unsigned char*>(static_cast<const void*>(text.data()));
  auto* const out = static_cast<unsigned char*>(static_cast<void*>(mac.data()));
  HEADGATE_CHECK(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), bytes, text.size(),
                      out, nullptr) != nullptr);
  return mac;
}

bool EqualSecrets(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace headgate::wire
