#include "headgate/store/redis/digest.h"

#include <array>

#include <openssl/evp.h>

#include "headgate/base/check.h"

namespace headgate::store::redis {

std::string DigestHex(Digest digest, std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes;
  unsigned int size = 0;
  const EVP_MD* method = digest == Digest::kSha1 ? EVP_sha1() : EVP_sha256();
  HEADGATE_CHECK(EVP_Digest(text.data(), text.size(), bytes.data(), &size, method, nullptr) == 1);
  std::string hex;
  for (unsigned int i = 0; i < size; ++i) {
    hex += "0123456789abcdef"[bytes[i] >> 4];
    hex += "0123456789abcdef"[bytes[i] & 15];
  }
  return hex;
}

}  // namespace headgate::store::redis
