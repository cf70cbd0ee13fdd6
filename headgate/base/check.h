// CHECK: our own bug stops the process, with the condition and the place. Never for input from
// outside.
#pragma once

namespace headgate::base {

[[noreturn]] void CheckFailed(const char* condition, const char* file, int line) noexcept;

}  // namespace headgate::base

#define HEADGATE_CHECK(condition)     \
  ((condition) ? static_cast<void>(0) \
               : ::headgate::base::CheckFailed(#condition, __FILE__, __LINE__))

// Off in release builds; only for hot loops that have been proven by tests.
#ifdef NDEBUG
#define HEADGATE_DCHECK(condition) static_cast<void>(0)
#else
#define HEADGATE_DCHECK(condition) HEADGATE_CHECK(condition)
#endif
