// Which of a cluster's 16,384 slots a key is in: CRC16 (XMODEM) of the key, or of the part between
// its first `{` and the next `}` if that part is not empty.
// https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/
#pragma once

#include <cstdint>
#include <string_view>

namespace headgate::store::redis {

inline constexpr uint16_t kSlotCount = 16384;

uint16_t Crc16(std::string_view bytes);

uint16_t KeySlot(std::string_view key);

}  // namespace headgate::store::redis
