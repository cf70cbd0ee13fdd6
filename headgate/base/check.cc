#include "headgate/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace headgate::base {

void CheckFailed(const char* condition, const char* file, int line) noexcept {
  std::fprintf(stderr, "headgate: CHECK failed: %s at %s:%d\n", condition, file, line);
  std::abort();
}

}  // namespace headgate::base
