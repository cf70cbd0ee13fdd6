// 128-bit arithmetic: exact products and quotients of 63-bit numbers. Decisions never use floating
// point.
#pragma once

#include <cstdint>

namespace headgate::base {

using uint128 = unsigned __int128;
using int128 = __int128;

constexpr uint128 WideMul(uint64_t a, uint64_t b) { return uint128{a} * b; }

// The upper half of a product: floor(a·b / 2^64).
constexpr uint64_t MulHigh(uint64_t a, uint64_t b) {
  return static_cast<uint64_t>(WideMul(a, b) >> 64);
}

constexpr uint128 CeilDiv(uint128 a, uint128 b) { return (a + b - 1) / b; }

// Divides by a number that is known in advance, using a multiplication: floor(x / divisor) for
// every x. This is the round-down variant of Granlund & Montgomery, "Division by Invariant Integers
// using Multiplication" (PLDI 1994). The estimate is at most one too small, and one comparison
// corrects it.
class Divider {
 public:
  Divider() = default;
  constexpr explicit Divider(uint64_t divisor)
      : divisor_(divisor),
        reciprocal_(divisor > 1 ? static_cast<uint64_t>((uint128{1} << 64) / divisor)
                                : ~uint64_t{0}) {}

  constexpr uint64_t Quotient(uint64_t x) const {
    const uint64_t estimate = MulHigh(x, reciprocal_);
    return estimate + (x - estimate * divisor_ >= divisor_ ? 1 : 0);
  }
  constexpr uint64_t Remainder(uint64_t x) const { return x - Quotient(x) * divisor_; }
  constexpr uint64_t divisor() const { return divisor_; }

 private:
  uint64_t divisor_ = 1;
  uint64_t reciprocal_ = ~uint64_t{0};
};

}  // namespace headgate::base
