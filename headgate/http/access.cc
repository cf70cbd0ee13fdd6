#include "headgate/http/access.h"

#include <openssl/crypto.h>

namespace headgate::http {

bool Access::Matches(std::string_view candidate) const {
  return credential_set() && candidate.size() == credential.size() &&
         CRYPTO_memcmp(candidate.data(), credential.data(), credential.size()) == 0;
}

}  // namespace headgate::http
