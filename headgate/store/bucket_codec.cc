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
// Stands in place of the algorithm, because `align` has no free value: a fixed window that ends
// with the calendar's week, or with its day.
constexpr uint8_t kWeekWindow = 6;
constexpr uint8_t kDayWindow = 7;
constexpr uint8_t kCountDenied = 1 << 5;
constexpr uint8_t kHasBurst = 1 << 6;
constexpr uint8_t kOverdraw = 1 << 7;

constexpr size_t kLeaseBytes = 32;
constexpr size_t kVarintBytesMax = 10;
// The number of a block's lengths, and these in seconds.
constexpr size_t kLengthsBytesMax = 1 + algorithm::BlockLengths::kMost * sizeof(uint32_t);
// The zone: the length of its name, and the name.
constexpr size_t kZoneBytesMax = 1 + base::TimeZone::kNameBytesMax;
constexpr size_t kLimitBytesMax = 2 + 3 * kVarintBytesMax + kLengthsBytesMax + kZoneBytesMax;
// A flag in the last byte of a block, in a bit above the level.
constexpr uint8_t kUsed = 1 << 7;
// A log that is overdrawn has one hit more than its limit allows. It has no time zone.
static_assert(kLimitBytesMax - kZoneBytesMax + kBlockBytes + 20 +
                  kHitBytes * (algorithm::kLogRequestsMax + 1) <=
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

// No bucket takes longer than this to be fresh again (limit.h).
constexpr uint64_t kAheadMax = static_cast<uint64_t>(base::kDurationMax.count());

bool IsInstant(uint64_t ns) { return ns <= static_cast<uint64_t>(base::kInstantMax.ns); }

Instant InstantOf(uint64_t ns) { return Instant::FromNanos(static_cast<int64_t>(ns)); }

// Reads the optional time that precedes items of `unit_bytes` each. Returns false if the time is
// out of range.
bool TakeRemembered(Unpacker& in, size_t unit_bytes, StoredBucket& bucket) {
  if (in.rest().size() % unit_bytes != sizeof(uint64_t)) return true;
  const algorithm::RememberedUntil until = algorithm::FromWord(in.U64());
  if (until > base::kInstantMax + base::Duration(kAheadMax)) return false;
  bucket.remembered_until = until;
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

bool TakeZone(std::string_view& in, base::TimeZone& zone) {
  if (in.empty()) return false;
  const size_t bytes = static_cast<uint8_t>(in.front());
  in.remove_prefix(1);
  if (bytes > in.size()) return false;
  const auto loaded = base::TimeZone::Load(in.substr(0, bytes));
  in.remove_prefix(bytes);
  // UTC is not a valid zone here: its limits have another version.
  if (!loaded.ok() || loaded->is_utc()) return false;
  zone = *loaded;
  return true;
}

bool TakeLengths(std::string_view& in, uint8_t count, algorithm::BlockLengths& lengths) {
  using Seconds = algorithm::BlockLengths::Seconds;
  Unpacker unpack(in);
  for (uint8_t i = 0; i < count; ++i) {
    const Seconds length(unpack.U32());
    if (length < Seconds(1) || length > algorithm::BlockLengths::kLongest) return false;
    lengths.Add(length);
  }
  in = unpack.rest();
  return unpack.complete();
}

}  // namespace

// The block has begun no later than the latest time of the bucket.
bool HasSoundBlock(const Limit& limit, const BucketState& state) {
  const algorithm::Block& block = state.block;
  const algorithm::BlockLengths& lengths = limit.spec().block;
  if (!block.exists()) return block == algorithm::Block{};
  return block.level < lengths.size() && block.until.ns > 0 &&
         block.until <= state.seen + lengths.at(block.level);
}

void AppendBlock(const algorithm::Block& block, std::string& out) {
  Packer(out)
      .U64(static_cast<uint64_t>(block.until.ns))
      .U8(static_cast<uint8_t>(block.level | (block.used ? kUsed : 0)));
}

std::optional<algorithm::Block> BlockOf(std::string_view bytes) {
  Unpacker in(bytes);
  const uint64_t until = in.U64();
  const uint8_t rest = in.U8();
  if (!in.complete() || until > static_cast<uint64_t>(base::kInstantMax.ns) + kAheadMax)
    return std::nullopt;
  return algorithm::Block{.until = InstantOf(until),
                          .level = static_cast<uint8_t>(rest & ~kUsed),
                          .used = (rest & kUsed) != 0};
}

bool IsSound(const Limit& limit, const BucketState& state, Instant now) {
  if (state.seen.ns < 0 || state.seen > base::kInstantMax) return false;
  const uint64_t edge_max = static_cast<uint64_t>(now.ns) + kAheadMax;
  switch (TraitsOf(limit.algorithm()).state) {
    case algorithm::StateForm::kBucket:
      return state.edge <= edge_max && (state.count == 0 || state.count < limit.requests());
    case algorithm::StateForm::kWindow:
      return state.edge <= edge_max;
    case algorithm::StateForm::kWindows:
    case algorithm::StateForm::kHits:
      return true;
  }
  return false;
}

void AppendLimit(const LimitSpec& spec, std::string& out) {
  std::array<char, kLimitBytesMax> bytes;
  const bool is_week = spec.align == Align::kCalendarWeek;
  const bool is_day = spec.align == Align::kCalendarDay;
  const bool has_zone = !spec.zone.is_utc();
  const uint8_t algorithm = is_week  ? kWeekWindow
                            : is_day ? kDayWindow
                                     : static_cast<uint8_t>(spec.algorithm);
  const uint8_t align = is_week || is_day ? 0 : static_cast<uint8_t>(spec.align);
  char* at = bytes.data();
  *at++ = has_zone ? kZonedVersion : spec.block.empty() ? kFormatVersion : kBlockingVersion;
  *at++ =
      static_cast<char>(algorithm | align << kAlignShift | (spec.count_denied ? kCountDenied : 0) |
                        (spec.burst ? kHasBurst : 0) | (spec.overdraw ? kOverdraw : 0));
  if (has_zone || !spec.block.empty()) *at++ = static_cast<char>(spec.block.size());
  at = WriteVarint(spec.requests, at);
  at = WriteVarint(static_cast<uint64_t>(spec.period.count()), at);
  if (spec.burst) at = WriteVarint(*spec.burst, at);
  out.append(bytes.data(), at);
  Packer pack(out);
  if (has_zone) {
    pack.U8(static_cast<uint8_t>(spec.zone.name().size())).Flush();
    out.append(spec.zone.name());
  }
  for (size_t level = 0; level < spec.block.size(); ++level)
    pack.U32(spec.block.seconds_at(level).count());
}

std::optional<Limit> TakeLimit(std::string_view& in) {
  if (in.size() < 2 || in.front() < kFormatVersion || in.front() > kZonedVersion)
    return std::nullopt;
  const char version = in.front();
  const auto first = static_cast<uint8_t>(in[1]);
  in.remove_prefix(2);
  uint8_t lengths = 0;
  if (version != kFormatVersion) {
    if (in.empty()) return std::nullopt;
    lengths = static_cast<uint8_t>(in.front());
    in.remove_prefix(1);
    if (lengths > algorithm::BlockLengths::kMost) return std::nullopt;
    if (lengths == 0 && version == kBlockingVersion) return std::nullopt;
  }
  const auto algorithm = static_cast<uint8_t>(first & 7);
  const auto align = static_cast<uint8_t>(first >> kAlignShift & 3);
  const bool has_own_align = algorithm == kWeekWindow || algorithm == kDayWindow;
  if (has_own_align && align != 0) return std::nullopt;
  LimitSpec spec{
      .algorithm = has_own_align ? Algorithm::kFixedWindow : static_cast<Algorithm>(algorithm),
      .align = algorithm == kWeekWindow  ? Align::kCalendarWeek
               : algorithm == kDayWindow ? Align::kCalendarDay
                                         : static_cast<Align>(align),
      .count_denied = (first & kCountDenied) != 0,
      .overdraw = (first & kOverdraw) != 0};
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
  if (version == kZonedVersion && !TakeZone(in, spec.zone)) return std::nullopt;
  if (!TakeLengths(in, lengths, spec.block)) return std::nullopt;
  auto limit = Limit::Make(spec);
  if (!limit.ok()) return std::nullopt;
  return *std::move(limit);
}

std::optional<StoredBucket> ParseBucket(std::string_view bytes) {
  auto limit = TakeLimit(bytes);
  if (!limit) return std::nullopt;
  const bool is_log = KeepsHits(limit->algorithm());
  StoredBucket bucket{.limit = *std::move(limit)};
  if (bucket.limit.blocks()) {
    const auto block = BlockOf(bytes);
    if (!block) return std::nullopt;
    bucket.state.block = *block;
    bytes.remove_prefix(kBlockBytes);
  }
  Unpacker in(bytes);
  if (!is_log) bucket.state.edge = in.U64();
  bucket.state.count = in.U32();
  const uint64_t seen = in.U64();
  if (!in.complete() || !IsInstant(seen)) return std::nullopt;
  bucket.state.seen = InstantOf(seen);
  if (!IsSound(bucket.limit, bucket.state, bucket.state.seen)) return std::nullopt;
  if (!HasSoundBlock(bucket.limit, bucket.state)) return std::nullopt;
  if (!TakeRemembered(in, is_log ? kHitBytes : kLeaseBytes, bucket)) return std::nullopt;
  if (!(is_log ? TakeHits(in, bucket) : TakeLeases(in, bucket))) return std::nullopt;
  return bucket;
}

void AppendBucket(const StoredBucket& bucket, std::string& out) {
  AppendLimit(bucket.limit.spec(), out);
  if (bucket.limit.blocks()) AppendBlock(bucket.state.block, out);
  Packer pack(out);
  const bool is_log = KeepsHits(bucket.limit.algorithm());
  if (!is_log) pack.U64(bucket.state.edge);
  pack.U32(bucket.state.count).U64(static_cast<uint64_t>(bucket.state.seen.ns));
  if (bucket.remembered_until > bucket.state.seen)
    pack.U64(algorithm::ToWord(bucket.remembered_until));
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
