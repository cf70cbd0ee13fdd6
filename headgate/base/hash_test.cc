#include "headgate/base/hash.h"

#include <algorithm>
#include <array>
#include <bit>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "headgate/base/hash_rig.h"

namespace headgate::base {
namespace hash_test {

constexpr std::array kKinds{KeyKind::kRaw, KeyKind::kRule, KeyKind::kOverride, KeyKind::kPart};

std::string AnyBytes(std::mt19937_64& random, size_t size) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

std::pair<uint64_t, uint64_t> Pair(Hash128 hash) { return {hash.low, hash.high}; }

Hash128 HashParts(const HashSecret& secret, const std::vector<std::string>& parts,
                  KeyKind kind = KeyKind::kRule) {
  KeyHasher hasher(secret, kind);
  for (const std::string& part : parts) hasher.Add(part);
  return hasher.Finish();
}

TEST(Hash, IsTheSameWithAndWithoutAesInstructions) {
  std::mt19937_64 random(1);
  const HashSecret secret = SecretFromSeed(1);
  for (size_t size = 0; size <= 200; ++size) {
    for (const KeyKind kind : kKinds) {
      // Keys start at any alignment in network buffers, so test every alignment.
      const std::string bytes = AnyBytes(random, size + size % 17);
      const std::string_view key = std::string_view(bytes).substr(size % 17);
      ASSERT_EQ(Pair(HashBytes(secret, kind, key)), Pair(HashBytesPortable(secret, kind, key)))
          << size;
    }
  }
}

// A snapshot stores hashes, so the function must never change. An independent AES in Python
// computed these values.
TEST(Hash, DoesNotChangeBetweenVersions) {
  HashSecret secret;
  for (size_t i = 0; i < secret.bytes.size(); ++i) secret.bytes[i] = static_cast<uint8_t>(i);
  EXPECT_EQ(HashBytes(secret, KeyKind::kRaw, ""),
            (Hash128{0xa688bc56f756aa9d, 0x357a31aa77a827b9}));
  EXPECT_EQ(HashBytes(secret, KeyKind::kRaw, "user123"),
            (Hash128{0x028da83ce6338eec, 0xbd718758e06501e8}));
  EXPECT_EQ(HashBytes(secret, KeyKind::kRule, "0123456789abcdef"),
            (Hash128{0xb28fe69ef5ec54c7, 0x4b3601586ef550a0}));
  EXPECT_EQ(HashBytes(secret, KeyKind::kOverride, "a key of more than two blocks of 16"),
            (Hash128{0x21f603a93ff4b56f, 0xb971f9c9c1c88a82}));
}

TEST(Hash, TellsKindsLengthsAndContentsApart) {
  const HashSecret secret = SecretFromSeed(2);
  std::set<std::pair<uint64_t, uint64_t>> seen;
  size_t count = 0;
  for (const KeyKind kind : kKinds) {
    for (size_t size = 0; size <= 100; ++size) {
      seen.insert(Pair(HashBytes(secret, kind, std::string(size, '\0'))));
      ++count;
    }
  }
  for (int i = 1; i < 100'000; ++i, ++count)
    seen.insert(Pair(HashBytes(secret, KeyKind::kRaw, std::to_string(i))));
  EXPECT_EQ(seen.size(), count)
      << "zeros that fill up a block are no part of the key, its length is";
}

TEST(Hash, DependsOnEveryBitOfTheSecret) {
  const HashSecret secret = SecretFromSeed(3);
  const Hash128 hash = HashBytes(secret, KeyKind::kRaw, "key");
  for (size_t bit = 0; bit < secret.bytes.size() * 8; ++bit) {
    HashSecret other = secret;
    other.bytes[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
    ASSERT_NE(Pair(HashBytes(other, KeyKind::kRaw, "key")), Pair(hash)) << "bit " << bit;
  }
}

TEST(Hash, FlipsHalfOfItsBitsForEachBitOfTheKey) {
  std::mt19937_64 random(4);
  const HashSecret secret = SecretFromSeed(4);
  std::array<int, 128> flips{};
  int samples = 0;
  for (int i = 0; i < 200; ++i) {
    std::string key = AnyBytes(random, 24);
    const Hash128 hash = HashBytes(secret, KeyKind::kRaw, key);
    for (size_t bit = 0; bit < key.size() * 8; ++bit, ++samples) {
      key[bit / 8] = static_cast<char>(key[bit / 8] ^ (1 << bit % 8));
      const Hash128 other = HashBytes(secret, KeyKind::kRaw, key);
      key[bit / 8] = static_cast<char>(key[bit / 8] ^ (1 << bit % 8));
      for (size_t out = 0; out < 64; ++out) {
        flips[out] += static_cast<int>((hash.low ^ other.low) >> out & 1);
        flips[64 + out] += static_cast<int>((hash.high ^ other.high) >> out & 1);
      }
    }
  }
  // Each output bit is like 38,400 coin tosses; five standard deviations are 490.
  for (const int flipped : flips) EXPECT_NEAR(flipped, samples / 2, 500);
}

TEST(Hash, SpreadsConsecutiveKeysEvenly) {
  const HashSecret secret = SecretFromSeed(5);
  std::array<int, 256> low{}, high{};
  constexpr int kKeys = 256 * 400;
  for (int i = 0; i < kKeys; ++i) {
    const Hash128 hash = HashBytes(secret, KeyKind::kRaw, "user:" + std::to_string(i));
    ++low[hash.low % 256];
    ++high[hash.high >> 56];
  }
  // The expected count is 400, with a standard deviation of 20; this allows six of them.
  for (const auto& places : {low, high}) {
    EXPECT_GT(*std::min_element(places.begin(), places.end()), 280);
    EXPECT_LT(*std::max_element(places.begin(), places.end()), 520);
  }
}

TEST(KeyHasher, TellsSequencesOfPartsApart) {
  const HashSecret secret = SecretFromSeed(6);
  const std::string part_47(47, 'x'), part_48(48, 'x'), part_49(49, 'x');
  const std::vector<std::vector<std::string>> sequences{
      {},
      {""},
      {"", ""},
      {"a", "bc"},
      {"ab", "c"},
      {"abc"},
      {"abc", ""},
      {"", "abc"},
      {"a", "b", "c"},
      {"c", "b", "a"},
      {std::string("\1a", 2)},
      {std::string("\2ab", 3), "c"},
      {std::string(1, '\0')},
      {part_47},
      {part_48},
      {part_49},
      {part_47, "x"},
      {part_48, ""},
      {"x", part_47},
      {std::string(1000, 'x')},
      {std::string(1000, 'x'), std::string(1000, 'y')},
      {std::string(1000, 'y'), std::string(1000, 'x')},
  };
  std::set<std::pair<uint64_t, uint64_t>> seen;
  for (const auto& parts : sequences) seen.insert(Pair(HashParts(secret, parts)));
  EXPECT_EQ(seen.size(), sequences.size());
}

TEST(KeyHasher, IsNotDeceivedByAPartThatLooksLikeTheHashOfALongOne) {
  const HashSecret secret = SecretFromSeed(7);
  const std::string long_part(300, 'k');
  const Hash128 hash = HashBytes(secret, KeyKind::kPart, long_part);
  std::string looks_like(sizeof hash, '\0');
  std::memcpy(looks_like.data(), &hash, sizeof hash);
  EXPECT_NE(Pair(HashParts(secret, {looks_like})), Pair(HashParts(secret, {long_part})));
  EXPECT_NE(Pair(HashParts(secret, {"\xff" + looks_like})), Pair(HashParts(secret, {long_part})));
}

TEST(KeyHasher, SplitsOfOneStringAreAllDifferent) {
  const HashSecret secret = SecretFromSeed(8);
  const std::string whole = "domain/api_key/gold-17/path/search";
  std::set<std::pair<uint64_t, uint64_t>> seen;
  size_t count = 0;
  for (size_t a = 0; a <= whole.size(); ++a) {
    for (size_t b = a; b <= whole.size(); ++b, ++count) {
      seen.insert(
          Pair(HashParts(secret, {whole.substr(0, a), whole.substr(a, b - a), whole.substr(b)})));
    }
  }
  EXPECT_EQ(seen.size(), count);
}

TEST(KeyHasher, TakesAsManyPartsAsItSays) {
  const HashSecret secret = SecretFromSeed(9);
  for (const size_t size : {0u, 47u, 48u, 1000u}) {
    const std::vector<std::string> parts(KeyHasher::kPartsMax, std::string(size, 'p'));
    std::vector<std::string> other = parts;
    other.back() = "q";
    EXPECT_NE(Pair(HashParts(secret, parts)), Pair(HashParts(secret, other)));
  }
}

TEST(KeyHasher, TellsKindsApart) {
  const HashSecret secret = SecretFromSeed(10);
  EXPECT_NE(Pair(HashParts(secret, {"a"}, KeyKind::kRule)),
            Pair(HashParts(secret, {"a"}, KeyKind::kOverride)));
}

}  // namespace hash_test
}  // namespace headgate::base
