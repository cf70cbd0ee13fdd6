#include "headgate/base/hash.h"

#include <type_traits>

#include "headgate/base/check.h"

#if defined(__x86_64__)
#include <wmmintrin.h>
#endif

namespace headgate::base {
namespace {

// The first block holds the kind and the length of the hashed bytes.
struct Preamble {
  uint64_t kind;
  uint64_t length;
};

constexpr size_t kBlock = 16;

// ---- Portable AES round (FIPS 197, section 5.1): SubBytes, ShiftRows, MixColumns, AddRoundKey.

constexpr uint8_t Double(uint8_t x) { return static_cast<uint8_t>((x << 1) ^ ((x >> 7) * 0x1b)); }

constexpr std::array<uint8_t, 256> MakeSubstitution() {
  std::array<uint8_t, 256> box{};
  uint8_t p = 1, q = 1;
  do {  // p runs through the field by powers of the generator 3, q through the inverses.
    p = static_cast<uint8_t>(p ^ Double(p));
    q = static_cast<uint8_t>(q ^ (q << 1));
    q = static_cast<uint8_t>(q ^ (q << 2));
    q = static_cast<uint8_t>(q ^ (q << 4));
    if (q & 0x80) q = static_cast<uint8_t>(q ^ 0x09);
    auto rotate = [&](int by) { return static_cast<uint8_t>((q << by) | (q >> (8 - by))); };
    box[p] = static_cast<uint8_t>(q ^ rotate(1) ^ rotate(2) ^ rotate(3) ^ rotate(4) ^ 0x63);
  } while (p != 1);
  box[0] = 0x63;
  return box;
}

constexpr std::array<uint8_t, 256> kSubstitution = MakeSubstitution();
static_assert(kSubstitution[0x53] == 0xed);  // FIPS 197, figure 7

using Block = std::array<uint8_t, kBlock>;

void AesRound(Block& state, const uint8_t* round_key) {
  Block next;
  for (size_t column = 0; column < 4; ++column) {
    uint8_t s[4];
    for (size_t row = 0; row < 4; ++row)
      s[row] = kSubstitution[state[((column + row) % 4) * 4 + row]];
    const uint8_t all = s[0] ^ s[1] ^ s[2] ^ s[3];
    for (size_t row = 0; row < 4; ++row) {
      const uint8_t pair = s[row] ^ s[(row + 1) % 4];
      next[column * 4 + row] =
          static_cast<uint8_t>(s[row] ^ all ^ Double(pair) ^ round_key[column * 4 + row]);
    }
  }
  state = next;
}

void XorInto(Block& state, const uint8_t* bytes) {
  for (size_t i = 0; i < kBlock; ++i) state[i] ^= bytes[i];
}

const uint8_t* RoundKey(const HashSecret& secret, size_t index) {
  return secret.bytes.data() + index * kBlock;
}

#if defined(__x86_64__)
#define HEADGATE_AES __attribute__((target("aes,sse2")))

HEADGATE_AES inline __m128i Load(const void* bytes) {
  return _mm_loadu_si128(static_cast<const __m128i*>(bytes));
}

// Loads the last, shorter block, padded with zeros. A separate function, so that the caller's stack
// holds no array that the compiler would protect.
HEADGATE_AES __attribute__((noinline)) __m128i LoadLast(const char* bytes, size_t size) {
  alignas(kBlock) char block[kBlock] = {};
  std::memcpy(block, bytes, size);
  return Load(block);
}

// `is_padded`: zeros follow the bytes up to a whole block.
template <bool is_padded>
HEADGATE_AES Hash128 HashBytesAes(const HashSecret& secret, KeyKind kind, std::string_view bytes) {
  const uint8_t* const keys = secret.bytes.data();
  const __m128i k1 = Load(keys + kBlock), k2 = Load(keys + 2 * kBlock);
  const __m128i k3 = Load(keys + 3 * kBlock), k4 = Load(keys + 4 * kBlock);
  const auto mix = [&](__m128i state, __m128i block) HEADGATE_AES {
    state = _mm_xor_si128(state, block);
    state = _mm_aesenc_si128(state, k1);
    state = _mm_aesenc_si128(state, k2);
    state = _mm_aesenc_si128(state, k3);
    return _mm_aesenc_si128(state, k4);
  };
  const char* data = bytes.data();
  size_t left = bytes.size();
  __m128i state = _mm_xor_si128(
      Load(keys), _mm_set_epi64x(static_cast<int64_t>(left), static_cast<uint32_t>(kind)));
  for (; left >= kBlock; left -= kBlock, data += kBlock) state = mix(state, Load(data));
  if (left > 0) {
    state = mix(state, is_padded ? Load(data) : LoadLast(data, left));
  } else if (bytes.empty()) {
    state = mix(state, _mm_setzero_si128());
  }
  state = _mm_xor_si128(state, Load(keys + 5 * kBlock));
  return {static_cast<uint64_t>(_mm_cvtsi128_si64(state)),
          static_cast<uint64_t>(_mm_cvtsi128_si64(_mm_unpackhi_epi64(state, state)))};
}

const bool kHasAes = __builtin_cpu_supports("aes") != 0;
#endif

// Copies in moves of 16, 8 or 4 bytes, the last of which may overlap the one before, so that no
// function is called.
void CopyShort(std::string_view from, char* out) {
  const auto move = [&]<size_t kSize>(std::integral_constant<size_t, kSize>) {
    for (size_t i = 0; i + kSize < from.size(); i += kSize)
      std::memcpy(out + i, from.data() + i, kSize);
    std::memcpy(out + from.size() - kSize, from.data() + from.size() - kSize, kSize);
  };
  if (from.size() >= 16) return move(std::integral_constant<size_t, 16>{});
  if (from.size() >= 8) return move(std::integral_constant<size_t, 8>{});
  if (from.size() >= 4) return move(std::integral_constant<size_t, 4>{});
  for (size_t i = 0; i < from.size(); ++i) out[i] = from[i];
}

}  // namespace

Hash128 HashBytesPortable(const HashSecret& secret, KeyKind kind, std::string_view bytes) {
  const Preamble preamble{.kind = static_cast<uint32_t>(kind), .length = bytes.size()};
  Block state;
  std::memcpy(state.data(), &preamble, sizeof preamble);
  XorInto(state, RoundKey(secret, 0));
  do {
    Block block{};
    const size_t take = bytes.size() < kBlock ? bytes.size() : kBlock;
    if (take > 0) std::memcpy(block.data(), bytes.data(), take);
    bytes.remove_prefix(take);
    XorInto(state, block.data());
    for (size_t round = 1; round <= 4; ++round) AesRound(state, RoundKey(secret, round));
  } while (!bytes.empty());
  XorInto(state, RoundKey(secret, 5));
  Hash128 hash;
  std::memcpy(&hash, state.data(), sizeof hash);
  return hash;
}

namespace {

template <bool is_padded>
Hash128 HashAsHere(const HashSecret& secret, KeyKind kind, std::string_view bytes) {
#if defined(__x86_64__)
  if (kHasAes) [[likely]]
    return HashBytesAes<is_padded>(secret, kind, bytes);
#endif
  return HashBytesPortable(secret, kind, bytes);
}

}  // namespace

Hash128 HashBytes(const HashSecret& secret, KeyKind kind, std::string_view bytes) {
  return HashAsHere</*is_padded=*/false>(secret, kind, bytes);
}

Hash128 KeyHasher::Finish() {
  std::memset(buffer_.data() + size_, 0, kBlock);
  return HashAsHere</*is_padded=*/true>(secret_, kind_, {buffer_.data(), size_});
}

void KeyHasher::Add(std::string_view part) {
  HEADGATE_CHECK(size_ + kPartInline + 1 + kBlock <= buffer_.size());
  if (part.size() < kPartInline) {
    // The byte before a part is its length; 255 marks a part that was replaced by its hash.
    buffer_[size_++] = static_cast<char>(part.size());
    CopyShort(part, buffer_.data() + size_);
    size_ += part.size();
    return;
  }
  const Hash128 hash = HashBytes(secret_, KeyKind::kPart, part);
  buffer_[size_++] = static_cast<char>(0xff);
  std::memcpy(buffer_.data() + size_, &hash, sizeof hash);
  size_ += sizeof hash;
}

}  // namespace headgate::base
