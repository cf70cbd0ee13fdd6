// What is under a bucket's key. A string for all but the log:
//
//   version 1 · limit · edge (8 bytes) · count (4) · seen (8) · [remembered until (8)] · leases (32 each)
//
// and for the log a list: a header (version · limit · sum of costs (4) · seen (8) · [remembered until (8)]), then each
// hit (at (8), cost (4)), the oldest first. The limit is written shortly, and by this file alone: the scripts only
// compare it. With a limit of 60 a minute a token bucket is 29 bytes. Formats: docs/reference/redis-state.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "headgate/algorithm/bucket.h"
#include "headgate/algorithm/limit.h"
#include "headgate/store/hit_list.h"

namespace headgate::store {

inline constexpr char kFormatVersion = 1;
// The longest value is a log's, with all its hits. The scripts take what is longer for foreign (scripts/clock.lua).
inline constexpr size_t kValueBytesMax = 1'200'128;

// Version and limit. No two limits' prefixes begin alike.
void AppendPrefix(const algorithm::LimitSpec& spec, std::string& out);

// A bucket as it was found, of whatever limit.
struct FoundBucket {
  algorithm::Limit limit;
  algorithm::BucketState state;
  HitList hits;
  base::Instant remembered_until{0};  // algorithm::Change
  std::string_view leases;            // as they were
};

// Whether the kernels can compute with such a state at `now`; a server is not trusted either.
bool IsSound(const algorithm::Limit& limit, const algorithm::BucketState& state, base::Instant now);

enum class ValueShape : uint8_t { kString, kList };  // kList: header and hits, joined

// Nothing where it is not a bucket of this format.
std::optional<FoundBucket> ParseValue(std::string_view bytes, ValueShape shape);

// The value of a bucket under `limit`: for the log its header, and the one hit that it has where it has one.
// `remembered_until` is left out if it is not after the bucket's latest time.
void AppendValue(const algorithm::Limit& limit, const algorithm::BucketState& state, const HitList& hits,
                 base::Instant remembered_until, std::string_view leases, std::string& out);

}  // namespace headgate::store
