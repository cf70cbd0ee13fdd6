// The bytes of a bucket in a store that machines share. All numbers are big-endian:
//
//   version 1 · limit · edge (8 bytes) · count (4) · seen (8) · [remembered until (8)] · leases (32
//   each)
//
// A sliding log has no edge and no leases; it ends with its hits (12 each), the oldest first. The
// limit comes first, so that whoever reads the bytes can tell with one comparison whether they
// belong to the limit that a call names. A token bucket of 60 a minute is 29 bytes. Format, field
// by field: docs/reference/redis-state.md, "Values".
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
// No bucket has more bytes: the longest is a log with all its hits.
inline constexpr size_t kValueBytesMax = 1'200'128;

// A bucket with its limit and all that is stored of it.
struct StoredBucket {
  algorithm::Limit limit;
  algorithm::BucketState state{};
  HitList hits{};                     // a log's
  base::Instant remembered_until{0};  // see algorithm::Change
  algorithm::Leases leases{};         // expired ones included
};

// Writes version and limit, with which the bytes of a bucket begin. Of two limits, neither's bytes
// begin like the other's.
void AppendLimit(const algorithm::LimitSpec& spec, std::string& out);

// Takes version and limit off the front of `in`; nothing if there are none.
std::optional<algorithm::Limit> TakeLimit(std::string_view& in);

// Nothing if `bytes` are not a bucket of this version, or one that cannot be computed with: stores
// are not trusted.
std::optional<StoredBucket> ParseBucket(std::string_view bytes);

// `remembered_until` is left out if it is not after the bucket's latest time.
void AppendBucket(const StoredBucket& bucket, std::string& out);

// Whether the algorithms can compute with such a state at `now`.
bool IsSound(const algorithm::Limit& limit, const algorithm::BucketState& state, base::Instant now);

}  // namespace headgate::store
