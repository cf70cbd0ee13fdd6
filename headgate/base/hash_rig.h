// Secrets and keys for tests and benchmarks, the same in every run.
#pragma once

#include <array>
#include <cstring>
#include <random>
#include <vector>

#include "headgate/base/hash.h"

namespace headgate::base {

inline HashSecret SecretFromSeed(uint64_t seed) {
  std::mt19937_64 random(seed);
  HashSecret secret;
  for (uint8_t& byte : secret.bytes) byte = static_cast<uint8_t>(random());
  return secret;
}

using KeyBytes = std::array<char, 16>;

// `count` random keys.
inline std::vector<KeyBytes> KeysFromSeed(uint64_t seed, size_t count) {
  std::mt19937_64 random(seed);
  std::vector<KeyBytes> keys(count);
  for (KeyBytes& key : keys) {
    const uint64_t halves[2] = {random(), random()};
    std::memcpy(key.data(), halves, sizeof halves);
  }
  return keys;
}

}  // namespace headgate::base
