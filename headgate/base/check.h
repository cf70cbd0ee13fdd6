// CHECK stops the process on a bug in Headgate itself and prints the condition and its location.
// Never use it to validate input from outside.
#pragma once

namespace headgate::base {

[[noreturn]] void CheckFailed(const char* condition, const char* file, int line) noexcept;

}  // namespace headgate::base

#define HEADGATE_CHECK(condition)     \
  ((condition) ? static_cast<void>(0) \
               : ::headgate::base::CheckFailed(#condition, __FILE__, __LINE__))

// DCHECK is off in release builds. Use it only in hot loops whose conditions tests have already
// proven.
#ifdef NDEBUG
#define HEADGATE_DCHECK(condition) static_cast<void>(0)
#else
#define HEADGATE_DCHECK(condition) HEADGATE_CHECK(condition)
#endif
