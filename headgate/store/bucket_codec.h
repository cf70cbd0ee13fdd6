// The bytes of a bucket in a shared store. All numbers are big-endian:
//
//   version 1 · limit · edge (8 bytes) · count (4) · seen (8) · [remembered until (8)]
//     · leases (32 bytes each)
//
// If the limit blocks keys, the version is 2, and a block of 9 bytes follows the limit. If the
// limit is in a time zone, the version is 3; if it also blocks keys, the block follows it as well.
//
// A sliding log has neither edge nor leases and ends with its hits (12 bytes each), oldest first.
// The limit comes first, so a reader can check with one comparison whether the bytes belong to the
// limit of a call. A token bucket of 60 per minute takes 29 bytes. docs/reference/redis-state.md,
// "Values", describes the format field by field.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "headgate/algorithm/bucket.h"
#include "headgate/algorithm/lease.h"
#include "headgate/algorithm/limit.h"
#include "headgate/store/hit_list.h"

namespace headgate::store {

inline constexpr char kFormatVersion = 1;
// The version of a limit that blocks keys. Its third byte is the number of lengths, its last ones
// are the lengths.
inline constexpr char kBlockingVersion = 2;
// The version of a limit in a time zone. Its third byte is the number of a block's lengths, or 0.
inline constexpr char kZonedVersion = 3;
inline constexpr size_t kBlockBytes = 9;
// The most bytes of a bucket: a log with all its hits.
inline constexpr size_t kValueBytesMax = 1'200'128;
// A hit of a log, and the most hits of one.
inline constexpr size_t kHitBytes = 12;
inline constexpr uint64_t kHitsMax = algorithm::kLogRequestsMax;

// A bucket with its limit and everything that is stored with it.
struct StoredBucket {
  algorithm::Limit limit;
  algorithm::BucketState state{};
  HitList hits{};                                 // only for a log
  algorithm::RememberedUntil remembered_until{};  // see algorithm::Change
  algorithm::Leases leases{};                     // may include expired ones
};

// Appends version and limit, the beginning of a bucket's bytes. The bytes of one limit are never a
// prefix of those of another.
void AppendLimit(const algorithm::LimitSpec& spec, std::string& out);

// Removes version and limit from the front of `in`; returns nothing if they are missing or invalid.
std::optional<algorithm::Limit> TakeLimit(std::string_view& in);

// Returns nothing if `bytes` are not a bucket of this version or hold values outside the
// algorithms' bounds. Stores are not trusted.
std::optional<StoredBucket> ParseBucket(std::string_view bytes);

// Omits `remembered_until` if it is not after the bucket's latest time.
void AppendBucket(const StoredBucket& bucket, std::string& out);

// Writes a block as bytes, and reads it back. BlockOf returns nothing if there are too few bytes,
// or if the end is too late.
void AppendBlock(const algorithm::Block& block, std::string& out);
std::optional<algorithm::Block> BlockOf(std::string_view bytes);

// Whether a block of this limit can have this end and level, in a bucket of this state.
bool HasSoundBlock(const algorithm::Limit& limit, const algorithm::BucketState& state);

// Whether the algorithms can compute with this state at `now`.
bool IsSound(const algorithm::Limit& limit, const algorithm::BucketState& state, base::Instant now);

}  // namespace headgate::store
