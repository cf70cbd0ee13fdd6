// A keyed 128-bit hash that maps keys to buckets. A client that does not know the secret cannot
// find two keys that share a bucket.
//
// Construction: CBC over 16-byte blocks with four AES rounds between the blocks. Every round key is
// secret and random, and the first block holds the length. This is the ALRED pattern of Pelican MAC
// (Daemen & Rijmen, 2005/2014). Four rounds bound the probability that two chosen inputs collide by
// 2^-110 (Keliher & Sui, "Exact maximum expected differential and linear probability for two-round
// AES", IET Inf. Sec. 2007). The hash is for tables only: nothing secret may depend on it. With AES
// instructions, 16 bytes cost about 20 cycles; a portable version computes the same values without
// them.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace headgate::base {

struct Hash128 {
  uint64_t low;
  uint64_t high;
  bool operator==(const Hash128&) const = default;
};

// The round keys. Draw them from the operating system's random source. A snapshot stores them.
struct HashSecret {
  static constexpr int kRoundKeys = 6;
  alignas(16) std::array<uint8_t, 16 * kRoundKeys> bytes;
  bool operator==(const HashSecret&) const = default;
};

// The kind of key that is hashed. It keeps keys of different kinds apart.
enum class KeyKind : uint32_t { kRaw = 1, kRule = 2, kOverride = 3, kPart = 4, kOnce = 5 };

Hash128 HashBytes(const HashSecret& secret, KeyKind kind, std::string_view bytes);

// Computes the same values without AES instructions. HashBytes calls it if the processor has none.
Hash128 HashBytesPortable(const HashSecret& secret, KeyKind kind, std::string_view bytes);

// Hashes a sequence of parts. Different sequences have different hash inputs: ("a", "bc") is not
// ("ab", "c"). Never allocates: a part longer than kPartInline is replaced by its own hash.
class KeyHasher {
 public:
  // Enough for the domain, the limit index, and 32 entries of key and value.
  static constexpr size_t kPartsMax = 72;

  KeyHasher(const HashSecret& secret, KeyKind kind) : secret_(secret), kind_(kind) {}

  // At most kPartsMax parts may be added.
  void Add(std::string_view part);
  Hash128 Finish();

 private:
  static constexpr size_t kPartInline = 48;

  const HashSecret& secret_;
  KeyKind kind_;
  size_t size_ = 0;
  std::array<char, (kPartsMax + 1) * (kPartInline + 1)> buffer_;  // and room for the padding
};

}  // namespace headgate::base
