// CRC32C (Castagnoli, RFC 3720, appendix B.4): tells damaged bytes from whole ones.
#pragma once

#include <cstdint>
#include <string_view>

namespace headgate::base {

// `before` is the checksum of the bytes in front of these: Crc32c(b, Crc32c(a)) is Crc32c(ab).
uint32_t Crc32c(std::string_view bytes, uint32_t before = 0);

}  // namespace headgate::base
