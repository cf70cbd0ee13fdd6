#include "headgate/http/access.h"

namespace headgate::http {

bool Access::Matches(std::string_view candidate) const {
  unsigned difference = candidate.size() == credential.size() ? 0 : 1;
  for (size_t i = 0; i < candidate.size(); ++i) {
    difference |= static_cast<unsigned char>(candidate[i] ^ credential[i % (credential.size() + 1)]);
  }
  return credential_set() && difference == 0;
}

}  // namespace headgate::http
