// Hashes of passwords as they are kept in the file of users: scrypt (RFC 7914) in the PHC string
// format,
//
//   $scrypt$ln=15,r=8,p=1$<salt>$<hash>      salt and hash in base64 without padding
//
// To compute one takes tens of milliseconds and tens of MiB, by intention.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "headgate/base/status.h"

namespace headgate::access {

struct PasswordHash {
  // Work: 2^log_n blocks of 128 * r bytes, p times.
  uint32_t log_n = 0;
  uint32_t r = 0;
  uint32_t p = 0;
  std::string salt;
  std::string hash;

  bool operator==(const PasswordHash&) const = default;
};

// Bytes that nobody can guess.
std::string RandomBytes(size_t count);

// Whether both take the same time to compute.
bool HaveSameCost(const PasswordHash& a, const PasswordHash& b);
// The cost of new hashes: 32 MiB.
PasswordHash DefaultCost();
// A hash of this cost that no password matches.
PasswordHash HashOfNobody(const PasswordHash& cost);

// Hashes the password with a new salt.
std::string HashPassword(std::string_view password);

// InvalidArgument if the text is not such a hash, or if the hash needs more than 256 MiB or eight
// passes.
absl::StatusOr<PasswordHash> ParsePasswordHash(std::string_view text);

// Compares in constant time. False, too, if there is not enough memory.
bool Matches(const PasswordHash& hash, std::string_view password);

}  // namespace headgate::access
