// CRC32C (Castagnoli, RFC 3720, appendix B.4): tells damaged bytes from whole ones.
#pragma once

#include <cstdint>
#include <string_view>

namespace headgate::base {

uint32_t Crc32c(std::string_view bytes);

}  // namespace headgate::base
