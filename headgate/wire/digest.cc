#include "headgate/wire/digest.h"

#include <array>

#include <openssl/evp.h>

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

}  // namespace headgate::wire
