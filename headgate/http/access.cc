#include "headgate/http/access.h"

#include <openssl/crypto.h>

namespace headgate::http {

bool Access::Matches(std::string_view candidate) const {
  const bool same_size = candidate.size() == credential.size();
  const std::string_view other = same_size ? std::string_view(credential) : candidate;
  const bool equal = CRYPTO_memcmp(candidate.data(), other.data(), candidate.size()) == 0;
  return equal && same_size && credential_set();
}

}  // namespace headgate::http
