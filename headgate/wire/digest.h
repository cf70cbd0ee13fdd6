// Digests that others can recompute: of a script, as servers name it, and of a key's name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace headgate::wire {

enum class Digest : uint8_t { kSha1, kSha256 };

// In lower-case hex digits.
std::string DigestHex(Digest digest, std::string_view text);

}  // namespace headgate::wire
