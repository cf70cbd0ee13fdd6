#include "headgate/store/bucket_codec.h"

#include <array>
#include <limits>

#include "headgate/store/big_endian.h"

namespace headgate::store {
namespace {

using algorithm::Algorithm;
using algorithm::Align;
using algorithm::BucketState;
using algorithm::Limit;
using algorithm::LimitSpec;
using base::Instant;

// The first byte of the limit: the algorithm in the lower three bits, align in the next two.
constexpr int kAlignShift = 3;
constexpr uint8_t kCountDenied = 1 << 5;
constexpr uint8_t kHasBurst = 1 << 6;

constexpr size_t kHitBytes = 12;
constexpr size_t kLeaseBytes = 32;
constexpr size_t kVarintBytesMax = 10;
static_assert(2 + 3 * kVarintBytesMax + 12 + kHitBytes * algorithm::kLogRequestsMax <=
              kValueBytesMax);

// Seven bits per byte, lowest first; the eighth bit says that more bytes follow.
char* WriteVarint(uint64_t value, char* at) {
  for (; value >= 0x80; value >>= 7) *at++ = static_cast<char>(value | 0x80);
  *at++ = static_cast<char>(value);
  return at;
}

std::optional<uint64_t> TakeVarint(std::string_view& in) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64 && !in.empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(in.front());
    in.remove_prefix(1);
    value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

// No bucket takes longer than this to be as if never used (limit.h).
constexpr uint64_t kAheadMax = static_cast<uint64_t>(base::kDurationMax.count());

bool IsInstant(uint64_t ns) { return ns <= static_cast<uint64_t>(base::kInstantMax.ns); }

Instant InstantOf(uint64_t ns) { return Instant::FromNanos(static_cast<int64_t>(ns)); }

// Reads the optional time that precedes items of `unit_bytes` each. Returns false if the time is
// out of range.
bool TakeRemembered(Unpacker& in, size_t unit_bytes, StoredBucket& bucket) {
  if (in.rest().size() % unit_bytes != sizeof(uint64_t)) return true;
  const uint64_t until = in.U64();
  if (until > static_cast<uint64_t>(base::kInstantMax.ns) + kAheadMax) return false;
  bucket.remembered_until = InstantOf(until);
  return true;
}

bool TakeLeases(Unpacker& in, StoredBucket& bucket) {
  if (in.rest().size() % kLeaseBytes != 0) return false;
  if (!in.rest().empty() && !algorithm::KeepsLeases(bucket.limit.algorithm())) return false;
  bucket.leases.reserve(in.rest().size() / kLeaseBytes);
  while (!in.rest().empty()) {
    algorithm::Lease lease{
        .id = {.node = in.U64(), .number = in.U64()}, .granted = in.U32(), .reported = in.U32()};
    const uint64_t expires_at = in.U64();
    if (!IsInstant(expires_at)) return false;
    lease.expires_at = InstantOf(expires_at);
    bucket.leases.push_back(lease);
  }
  return true;
}

bool TakeHits(Unpacker& in, StoredBucket& bucket) {
  if (in.rest().size() % kHitBytes != 0) return false;
  uint64_t sum = 0;
  uint64_t latest = 0;
  while (!in.rest().empty()) {
    const uint64_t at = in.U64();
    const uint32_t cost = in.U32();
    if (!IsInstant(at) || at < latest) return false;
    latest = at;
    sum += cost;
    bucket.hits.Append({InstantOf(at), cost});
  }
  return sum == bucket.state.count;
}

}  // namespace

bool IsSound(const Limit& limit, const BucketState& state, Instant now) {
  if (state.seen.ns < 0 || state.seen > base::kInstantMax) return false;
  const uint64_t edge_max = static_cast<uint64_t>(now.ns) + kAheadMax;
  switch (limit.algorithm()) {
    case Algorithm::kTokenBucket:
    case Algorithm::kLeakyBucket:
    case Algorithm::kLeakyBucketQueue:
      return state.edge <= edge_max && (state.count == 0 || state.count < limit.requests());
    case Algorithm::kFixedWindow:
      return state.edge <= edge_max;
    case Algorithm::kSlidingWindowCounter:
    case Algorithm::kSlidingWindowLog:
      return true;
  }
  return false;
}

void AppendLimit(const LimitSpec& spec, std::string& out) {
  std::array<char, 2 + 3 * kVarintBytesMax> bytes;
  char* at = bytes.data();
  *at++ = kFormatVersion;
  *at++ = static_cast<char>(static_cast<uint8_t>(spec.algorithm) |
                            static_cast<uint8_t>(spec.align) << kAlignShift |
                            (spec.count_denied ? kCountDenied : 0) | (spec.burst ? kHasBurst : 0));
  at = WriteVarint(spec.requests, at);
  at = WriteVarint(static_cast<uint64_t>(spec.period.count()), at);
  if (spec.burst) at = WriteVarint(*spec.burst, at);
  out.append(bytes.data(), at);
}

std::optional<Limit> TakeLimit(std::string_view& in) {
  if (in.size() < 2 || in.front() != kFormatVersion) return std::nullopt;
  const auto first = static_cast<uint8_t>(in[1]);
  in.remove_prefix(2);
  const auto algorithm = static_cast<uint8_t>(first & 7);
  if (algorithm > static_cast<uint8_t>(Algorithm::kSlidingWindowLog) || first >= 0x80)
    return std::nullopt;
  LimitSpec spec{.algorithm = static_cast<Algorithm>(algorithm),
                 .align = static_cast<Align>(first >> kAlignShift & 3),
                 .count_denied = (first & kCountDenied) != 0};
  const auto requests = TakeVarint(in);
  const auto period = TakeVarint(in);
  if (!requests || !period || *period > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    return std::nullopt;
  spec.requests = *requests;
  spec.period = base::Duration(static_cast<int64_t>(*period));
  if ((first & kHasBurst) != 0) {
    spec.burst = TakeVarint(in);
    if (!spec.burst) return std::nullopt;
  }
  auto limit = Limit::Make(spec);
  if (!limit.ok()) return std::nullopt;
  return *std::move(limit);
}

std::optional<StoredBucket> ParseBucket(std::string_view bytes) {
  auto limit = TakeLimit(bytes);
  if (!limit) return std::nullopt;
  const bool is_log = limit->algorithm() == Algorithm::kSlidingWindowLog;
  StoredBucket bucket{.limit = *std::move(limit)};
  Unpacker in(bytes);
  if (!is_log) bucket.state.edge = in.U64();
  bucket.state.count = in.U32();
  const uint64_t seen = in.U64();
  if (!in.complete() || !IsInstant(seen)) return std::nullopt;
  bucket.state.seen = InstantOf(seen);
  if (!IsSound(bucket.limit, bucket.state, bucket.state.seen)) return std::nullopt;
  if (!TakeRemembered(in, is_log ? kHitBytes : kLeaseBytes, bucket)) return std::nullopt;
  if (!(is_log ? TakeHits(in, bucket) : TakeLeases(in, bucket))) return std::nullopt;
  return bucket;
}

void AppendBucket(const StoredBucket& bucket, std::string& out) {
  AppendLimit(bucket.limit.spec(), out);
  Packer pack(out);
  const bool is_log = bucket.limit.algorithm() == Algorithm::kSlidingWindowLog;
  if (!is_log) pack.U64(bucket.state.edge);
  pack.U32(bucket.state.count).U64(static_cast<uint64_t>(bucket.state.seen.ns));
  if (bucket.remembered_until > bucket.state.seen)
    pack.U64(static_cast<uint64_t>(bucket.remembered_until.ns));
  if (is_log) {
    bucket.hits.ForEach([&](algorithm::Hit hit) {
      pack.U64(static_cast<uint64_t>(hit.at.ns)).U32(hit.cost);
      return true;
    });
    return;
  }
  for (const algorithm::Lease& lease : bucket.leases) {
    pack.U64(lease.id.node).U64(lease.id.number).U32(lease.granted).U32(lease.reported);
    pack.U64(static_cast<uint64_t>(lease.expires_at.ns));
  }
}

}  // namespace headgate::store
