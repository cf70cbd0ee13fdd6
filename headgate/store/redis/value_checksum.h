// The checksum of a bucket's value in Redis. The scripts write it and check it (scripts/answer.lua,
// scripts/value.lua, scripts/sliding_log.lua); here it is checked for a value that a script
// returns.
//
//   (CRC32C of version and limit + Σ weight · number + SHA-1 of the leases) mod 4,294,967,291
//
// The numbers are the 32-bit words of the state and of "remembered until", and of a block its words
// and its last byte. The modulus is prime and
// above all weights, so a change of one number always changes the sum, except one by the modulus
// itself. Lua has no checksum of its own, and a sum costs it a tenth of redis.sha1hex. Leases are
// too many to sum up in Lua, so redis.sha1hex covers them; few values have some. The hits of a log
// are not covered: the sum of their costs is in the header, which is.
//
// The checksum has the place of "remembered until", as a time within 4.3 s of 1970: versions of
// Headgate that know no checksum see a time that has passed, and ignore it. If that place is taken,
// the checksum is in the number of a last lease of no requests, which those versions drop. A queue
// or a log has no leases, so its value has no checksum then.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace headgate::store::redis {

// The checksum of version and limit, the beginning of a value. An argument of the scripts.
uint32_t LimitChecksum(std::string_view version_and_limit);

// The checksum of a bucket's bytes in the form of bucket_codec.h, which contains no checksum.
uint32_t ValueChecksum(std::string_view bucket);

// The bytes of the bucket in a value; of a list, whose elements are concatenated. Returns nothing
// if the value has a checksum that is wrong, or cannot be a bucket. A value of an earlier version
// of Headgate has no checksum.
std::optional<std::string> BucketOfValue(std::string_view value);

}  // namespace headgate::store::redis
