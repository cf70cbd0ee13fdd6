// The rights of a client.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace headgate::access {

enum class Right : uint8_t {
  kCheck,   // decide and peek
  kRefund,  // give back
  kRead,    // see rules, metrics, buckets and clients
  kAdmin,   // everything, including resets
};

// "check", "refund", "read" or "admin".
std::string_view Name(Right right);
std::optional<Right> RightByName(std::string_view name);

class Rights {
 public:
  constexpr Rights() = default;
  static constexpr Rights Of(Right right) { return Rights(Bit(right)); }
  static constexpr Rights All() { return Of(Right::kAdmin); }

  constexpr Rights With(Right right) const {
    return Rights(static_cast<uint8_t>(bits_ | Bit(right)));
  }
  constexpr bool Has(Right right) const { return (bits_ & (Bit(right) | Bit(Right::kAdmin))) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  bool operator==(const Rights&) const = default;

 private:
  static constexpr uint8_t Bit(Right right) {
    return static_cast<uint8_t>(1u << static_cast<uint8_t>(right));
  }
  explicit constexpr Rights(uint8_t bits) : bits_(bits) {}

  uint8_t bits_ = 0;
};

}  // namespace headgate::access
