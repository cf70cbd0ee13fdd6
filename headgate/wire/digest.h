// Digests of texts: plain digests, which everybody can recompute, and digests with a secret key.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace headgate::wire {

enum class Digest : uint8_t { kSha1, kSha256 };

// In lower-case hex digits.
std::string DigestHex(Digest digest, std::string_view text);

// HMAC-SHA-256 (RFC 2104). Does not allocate.
using Mac = std::array<char, 32>;
Mac HmacSha256(std::string_view key, std::string_view text);
// Takes the same time for all texts of the same length.
bool EqualSecrets(std::string_view a, std::string_view b);

}  // namespace headgate::wire
