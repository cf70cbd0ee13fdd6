// The name of a bucket in a store whose keys people can inspect:
//
//   hg:{r|edge|api_key=k1|path=/search*#0}  of a rule: domain, the matched entries, and the place
//                                           of the limit, the longest period first
//   hg:{p|edge|api_key=k1}          the permits of a rule that limits concurrency
//   hg:{o|edge|api_key=k1#minute}           of a limit that came with the request
//   hg:{t|user123}                          of CL.THROTTLE
//   hg:{i|edge|4f1c-22}                     remembers the id of a request to a domain
//   hg:{h|0f1e…}                            any of them as a keyed hash, to keep keys private
//
// The braces contain the whole name, so a Redis Cluster hashes all of it to choose the slot. Text
// from users is percent-encoded, so it cannot close the braces or produce another bucket's name.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "headgate/base/hash.h"
#include "headgate/rule/descriptor.h"
#include "headgate/rule/rule_set.h"

namespace headgate::limiter {

struct BucketNaming {
  bool hashed = false;
  // The same for the whole fleet. Whoever knows the secret can find two names with one hash.
  base::HashSecret secret{};
};

// Each function appends to `out`.
void AppendRuleBucket(const BucketNaming& naming, std::string_view domain,
                      std::span<const rule::Entry> entries, const rule::Match& match,
                      size_t limit_index, std::string& out);
void AppendPermits(const BucketNaming& naming, std::string_view domain,
                   std::span<const rule::Entry> entries, const rule::Match& match,
                   std::string& out);
void AppendOverrideBucket(const BucketNaming& naming, std::string_view domain,
                          std::span<const rule::Entry> entries, rule::Unit unit, std::string& out);
void AppendOnceBucket(const BucketNaming& naming, std::string_view domain, std::string_view id,
                      std::string& out);
void AppendThrottleBucket(const BucketNaming& naming, std::string_view client_key,
                          std::string& out);
void AppendCounter(const BucketNaming& naming, std::string_view client_key, std::string& out);

// The key as it is in the names of its buckets, for people: edge|api_key=k1|path=/search*. A key of
// more than `bytes_max` bytes is cut, and ends with "…". `out` needs room for 8 * bytes_max bytes.
void AppendShortKey(std::string_view domain, std::span<const rule::Entry> entries,
                    const rule::Match& match, size_t bytes_max, std::string& out);

}  // namespace headgate::limiter
