// A limit in a program of its own: the third request of ann within a minute has to wait.
#include <cstdio>

#include "headgate/library/limiter.h"

int main() {
  auto limiter = headgate::Limiter::Make({.rules = {"api_key: 2/minute"}});
  if (!limiter.ok()) return 1;
  for (const char* key : {"ann", "ann", "ann", "bob"}) {
    if (const auto verdict = limiter->Check("api_key", key)) {
      std::printf("%s passes, %d left\n", key, static_cast<int>(verdict.remaining));
    } else {
      const auto wait = std::chrono::ceil<std::chrono::seconds>(verdict.retry_after);
      std::printf("%s waits %d s\n", key, static_cast<int>(wait.count()));
    }
  }
  return 0;
}
