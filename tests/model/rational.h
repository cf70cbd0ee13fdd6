// Exact fractions of 128-bit integers for the reference model. Slow but safe: an operation whose
// result does not fit stops the test instead of giving a wrong result.
#pragma once

#include <cstdint>

#include "headgate/base/check.h"

namespace headgate::model {

using Int = __int128;

class Rational {
 public:
  constexpr Rational(Int whole = 0)
      : numerator_(whole), denominator_(1) {}  // NOLINT: a whole number is a fraction
  // `denominator` > 0.
  Rational(Int numerator, Int denominator) : numerator_(numerator), denominator_(denominator) {
    HEADGATE_CHECK(denominator > 0);
  }

  friend Rational operator+(const Rational& a, const Rational& b) {
    if (a.denominator_ == b.denominator_) return {Add(a.numerator_, b.numerator_), a.denominator_};
    const Int common = Gcd(a.denominator_, b.denominator_);
    const Int a_times = b.denominator_ / common, b_times = a.denominator_ / common;
    return {Add(Multiply(a.numerator_, a_times), Multiply(b.numerator_, b_times)),
            Multiply(a.denominator_, a_times)};
  }
  friend Rational operator-(const Rational& a, const Rational& b) {
    return a + Rational(-b.numerator_, b.denominator_);
  }
  friend Rational operator*(const Rational& a, const Rational& b) {
    const Int g = Gcd(a.numerator_, b.denominator_), h = Gcd(b.numerator_, a.denominator_);
    return {Multiply(a.numerator_ / g, b.numerator_ / h),
            Multiply(a.denominator_ / h, b.denominator_ / g)};
  }
  // `b` > 0.
  friend Rational operator/(const Rational& a, const Rational& b) {
    return a * Rational(b.denominator_, b.numerator_);
  }

  friend bool operator<(const Rational& a, const Rational& b) { return (a - b).numerator_ < 0; }
  friend bool operator<=(const Rational& a, const Rational& b) { return (a - b).numerator_ <= 0; }
  friend bool operator>(const Rational& a, const Rational& b) { return b < a; }
  friend bool operator>=(const Rational& a, const Rational& b) { return b <= a; }
  friend bool operator==(const Rational& a, const Rational& b) { return (a - b).numerator_ == 0; }

  Int Floor() const {
    const Int quotient = numerator_ / denominator_;
    return numerator_ % denominator_ < 0 ? quotient - 1 : quotient;
  }
  Int Ceil() const { return -Rational(-numerator_, denominator_).Floor(); }

 private:
  // Never 0, so it can be a divisor.
  static Int Gcd(Int a, Int b) {
    if (a < 0) a = -a;
    if (b < 0) b = -b;
    while (b != 0) {
      const Int rest = a % b;
      a = b;
      b = rest;
    }
    return a == 0 ? 1 : a;
  }
  static Int Add(Int a, Int b) {
    Int sum;
    HEADGATE_CHECK(!__builtin_add_overflow(a, b, &sum));
    return sum;
  }
  static Int Multiply(Int a, Int b) {
    Int product;
    HEADGATE_CHECK(!__builtin_mul_overflow(a, b, &product));
    return product;
  }

  Int numerator_;
  Int denominator_;
};

inline const Rational& Min(const Rational& a, const Rational& b) { return b < a ? b : a; }
inline const Rational& Max(const Rational& a, const Rational& b) { return a < b ? b : a; }

}  // namespace headgate::model
