#include "headgate/base/crc32c.h"

#include <boost/crc.hpp>

namespace headgate::base {
namespace {

uint32_t Reversed(uint32_t bits) {
  uint32_t reversed = 0;
  for (int i = 0; i < 32; ++i, bits >>= 1) reversed = reversed << 1 | (bits & 1);
  return reversed;
}

}  // namespace

uint32_t Crc32c(std::string_view bytes, uint32_t before) {
  // Boost expects the initial state with its bits reversed.
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc(Reversed(~before));
  crc.process_bytes(bytes.data(), bytes.size());
  return crc.checksum();
}

}  // namespace headgate::base
