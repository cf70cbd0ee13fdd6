#include "headgate/base/random_secret.h"

#include <sys/random.h>

#include <cerrno>

#include "headgate/base/check.h"

namespace headgate::base {

HashSecret RandomHashSecret() {
  HashSecret secret{};
  ssize_t count = 0;
  do {
    count = ::getrandom(secret.bytes.data(), secret.bytes.size(), 0);
  } while (count < 0 && errno == EINTR);
  // getrandom() returns up to 256 bytes without a short read.
  HEADGATE_CHECK(count == static_cast<ssize_t>(secret.bytes.size()));
  return secret;
}

}  // namespace headgate::base
