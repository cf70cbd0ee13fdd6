// The memory store's snapshot: its live buckets as bytes. All numbers are little-endian.
//
//   magic "HGSNAP" 0 0 | u32 version | i64 saved_at | hash secret, 96 bytes
//   u32 count, then each limit:   u8 algorithm | u8 align | u8 flags | u64 requests | i64 period
//                                 | u64 burst | u64 owner
//        if it blocks keys:       u8 count, then each length: u32 seconds
//   then each bucket:             u32 limit's position + 1 | u64, u16, u16 fingerprint | u64 edge
//                                 | i64 seen | u32 count | i64 remembered_until
//        if its limit blocks:     i64 until | u8 level | u8 used
//        after a log:             u32 count, then each hit: i64 at | u32 cost
//   u32 0 | u32 CRC32C of everything before it
//
// The checksum comes last, so a truncated file is always detected.
#include <algorithm>
#include <cstring>
#include <mutex>

#include <fmt/format.h>

#include "headgate/base/crc32c.h"
#include "headgate/store/memory.h"

namespace headgate::store {

using algorithm::BucketState;
using algorithm::Hit;
using algorithm::Limit;
using algorithm::LimitSpec;
using base::Instant;

namespace {

constexpr std::string_view kMagic{"HGSNAP\0\0", 8};
constexpr uint32_t kVersion = 5;
// The first version with a remembered_until for each bucket, fingerprints of 91 bits, and an owner
// for each limit.
constexpr uint32_t kRememberedSince = 2;
// The version with counters. A snapshot without counters has the version before it, so that earlier
// programs can read it.
constexpr uint32_t kCountersSince = 3;
// The same with limits that block keys.
constexpr uint32_t kBlocksSince = 4;
// The same with limits in a time zone.
constexpr uint32_t kZonesSince = 5;
constexpr uint32_t kEndOfBuckets = 0;
constexpr uint8_t kFlagBurst = 1, kFlagCountDenied = 2, kFlagOverdraw = 4, kFlagBlock = 8,
                  kFlagZone = 16;
// The size of a bucket without hits.
constexpr size_t kBucketBytes = 44;
constexpr size_t kBucketBytesBeforeRemembered = 36;
constexpr size_t kFlushBytes = 1u << 20;
// A bucket that is further ahead of the clock was written before the clock was set back.
constexpr base::Duration kAheadOfNowMax = std::chrono::seconds(1);

// Castagnoli's polynomial (RFC 3720, appendix B.4).

static_assert(std::endian::native == std::endian::little);

// Collects bytes, writes them in pieces, and computes their checksum.
class Writer {
 public:
  explicit Writer(const std::function<void(std::string_view)>& write) : write_(write) {}

  template <typename T>
  void Number(T value) {
    static_assert(std::is_integral_v<T>);
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    buffer_.append(bytes, sizeof value);
  }
  void Bytes(std::string_view bytes) { buffer_.append(bytes); }
  void FlushIfLarge() {
    if (buffer_.size() >= kFlushBytes) Flush();
  }
  void Finish() {
    Flush();
    Number(sum_);
    write_(buffer_);
  }

 private:
  void Flush() {
    sum_ = base::Crc32c(buffer_, sum_);
    write_(buffer_);
    buffer_.clear();
  }

  const std::function<void(std::string_view)>& write_;
  std::string buffer_;
  uint32_t sum_ = 0;
};

// Reads bytes whose checksum was verified, and still never reads beyond the end.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  template <typename T>
  T Number() {
    T value{};
    const std::string_view bytes = Bytes(sizeof value);
    if (bytes.size() == sizeof value) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  std::string_view Bytes(size_t count) {
    if (count > rest_.size()) {
      failed_ = true;
      rest_ = {};
      return {};
    }
    const std::string_view bytes = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return bytes;
  }
  bool failed() const { return failed_; }
  bool empty() const { return rest_.empty(); }

 private:
  std::string_view rest_;
  bool failed_ = false;
};

void WriteLimit(Writer& writer, const LimitSpec& spec) {
  writer.Number(static_cast<uint8_t>(spec.algorithm));
  writer.Number(static_cast<uint8_t>(spec.align));
  writer.Number(static_cast<uint8_t>(
      (spec.burst ? kFlagBurst : 0) | (spec.count_denied ? kFlagCountDenied : 0) |
      (spec.overdraw ? kFlagOverdraw : 0) | (spec.block.empty() ? 0 : kFlagBlock) |
      (spec.zone.is_utc() ? 0 : kFlagZone)));
  writer.Number(spec.requests);
  writer.Number(int64_t{spec.period.count()});
  writer.Number(spec.burst.value_or(0));
}

void WriteLengths(Writer& writer, const algorithm::BlockLengths& lengths) {
  if (lengths.empty()) return;
  writer.Number(static_cast<uint8_t>(lengths.size()));
  for (size_t level = 0; level < lengths.size(); ++level)
    writer.Number(lengths.seconds_at(level).count());
}

void ReadLengths(Reader& reader, algorithm::BlockLengths& lengths) {
  using Lengths = algorithm::BlockLengths;
  const size_t count = std::min<size_t>(reader.Number<uint8_t>(), Lengths::kMost);
  for (size_t level = 0; level < count; ++level) {
    const Lengths::Seconds length(reader.Number<uint32_t>());
    lengths.Add(std::clamp(length, Lengths::Seconds(1), Lengths::kLongest));
  }
}

void WriteZone(Writer& writer, base::TimeZone zone) {
  if (zone.is_utc()) return;
  writer.Number(static_cast<uint8_t>(zone.name().size()));
  writer.Bytes(zone.name());
}

void WriteBlock(Writer& writer, const algorithm::Block& block) {
  writer.Number(block.until.ns);
  writer.Number(block.level);
  writer.Number(static_cast<uint8_t>(block.used ? 1 : 0));
}

algorithm::Block ReadBlock(Reader& reader, const algorithm::BlockLengths& lengths) {
  algorithm::Block block{.until = base::Clamp(Instant::FromNanos(reader.Number<int64_t>()))};
  block.level = static_cast<uint8_t>(
      std::min<size_t>(reader.Number<uint8_t>(), lengths.empty() ? 0 : lengths.size() - 1));
  block.used = reader.Number<uint8_t>() != 0;
  return block;
}

// The part of a limit behind its owner.
struct LimitEnd {
  bool lengths;
  bool zone;
};
LimitSpec ReadLimit(Reader& reader, LimitEnd& end) {
  LimitSpec spec;
  spec.algorithm =
      static_cast<algorithm::Algorithm>(std::min<uint8_t>(reader.Number<uint8_t>(), 5));
  spec.align = static_cast<algorithm::Align>(std::min<uint8_t>(reader.Number<uint8_t>(), 5));
  const auto flags = reader.Number<uint8_t>();
  spec.requests = reader.Number<uint64_t>();
  spec.period = base::Duration(reader.Number<int64_t>());
  const auto burst = reader.Number<uint64_t>();
  if (flags & kFlagBurst) spec.burst = burst;
  spec.count_denied = (flags & kFlagCountDenied) != 0;
  spec.overdraw = (flags & kFlagOverdraw) != 0;
  end = {.lengths = (flags & kFlagBlock) != 0, .zone = (flags & kFlagZone) != 0};
  return spec;
}

void SkipHits(Reader& reader) {
  const auto count = reader.Number<uint32_t>();
  reader.Bytes(count * (sizeof(int64_t) + sizeof(uint32_t)));
}

absl::Status CheckEnvelope(std::string_view snapshot) {
  constexpr size_t kLeast = 8 + sizeof(uint32_t) + sizeof(uint32_t);
  if (snapshot.size() < kLeast || !snapshot.starts_with(kMagic)) {
    return absl::DataLossError(snapshot.size() < kLeast ? "the snapshot is truncated"
                                                        : "this is no snapshot of Headgate's");
  }
  uint32_t version, sum;
  std::memcpy(&version, snapshot.data() + kMagic.size(), sizeof version);
  if (version > kVersion) {
    return absl::UnimplementedError(fmt::format(
        "the snapshot has version {}, newer than this program's {}", version, kVersion));
  }
  const std::string_view body = snapshot.substr(0, snapshot.size() - sizeof sum);
  std::memcpy(&sum, snapshot.data() + body.size(), sizeof sum);
  if (base::Crc32c(body) != sum)
    return absl::DataLossError("the snapshot is truncated or corrupt: its CRC32C does not match");
  return absl::OkStatus();
}

void WriteHits(Writer& writer, const algorithm::HitLog& log) {
  std::vector<Hit> hits;
  log.ForEach([&](Hit hit) {
    hits.push_back(hit);
    return true;
  });
  writer.Number(static_cast<uint32_t>(hits.size()));
  for (const Hit& hit : hits) {
    writer.Number(hit.at.ns);
    writer.Number(hit.cost);
  }
}

// Moves the expiry of a counter by the change of the clock. Returns false if it has none.
bool MoveExpiry(BucketState& state, base::Duration change) {
  algorithm::Counter counter = CounterOf(state);
  if (counter.expires_at >= algorithm::Counter::kNeverExpires) return false;
  counter.expires_at = std::max(Instant(), std::max(Instant(), counter.expires_at) + change);
  state = StateOf(counter);
  return true;
}

// Returns the sum of the costs of the hits that have room in `hits`.
uint32_t ReadHits(Reader& reader, algorithm::HitLog& hits) {
  uint32_t sum = 0;
  const auto count = reader.Number<uint32_t>();
  for (uint32_t i = 0; i < count && !reader.failed(); ++i) {
    const auto at = Instant::FromNanos(reader.Number<int64_t>());
    const auto cost = reader.Number<uint32_t>();
    if (hits.Append({at, cost})) sum += cost;
  }
  return sum;
}

}  // namespace

std::string MemoryStore::Snapshot(Instant now) {
  std::string bytes;
  WriteSnapshot(now, [&](std::string_view piece) { bytes.append(piece); });
  return bytes;
}

void MemoryStore::WriteSnapshot(Instant now, const std::function<void(std::string_view)>& write) {
  const std::vector<LimitTable::Listed> limits = limits_.List();
  const bool counters = std::any_of(limits.begin(), limits.end(), [](const auto& limit) {
    return limit.owner == LimitOwner::Counters();
  });
  Writer writer(write);
  writer.Bytes(kMagic);
  const bool blocks = std::any_of(limits.begin(), limits.end(),
                                  [](const auto& limit) { return !limit.spec.block.empty(); });
  const bool zones = std::any_of(limits.begin(), limits.end(),
                                 [](const auto& limit) { return !limit.spec.zone.is_utc(); });
  writer.Number(zones      ? kZonesSince
                : blocks   ? kBlocksSince
                : counters ? kCountersSince
                           : kCountersSince - 1);
  writer.Number(now.ns);
  writer.Bytes({reinterpret_cast<const char*>(secret_.bytes.data()), secret_.bytes.size()});

  // A limit that is interned while the buckets are written is not in this list, even if it reuses
  // the number of a listed limit. Its buckets wait for the next snapshot.
  struct Position {
    uint64_t serial;
    uint32_t number;  // from 1
  };
  absl::flat_hash_map<uint32_t, Position> positions;
  writer.Number(static_cast<uint32_t>(limits.size()));
  for (const LimitTable::Listed& limit : limits) {
    positions.emplace(limit.id,
                      Position{limit.serial, static_cast<uint32_t>(positions.size() + 1)});
    WriteLimit(writer, limit.spec);
    writer.Number(limit.owner.number());
    WriteLengths(writer, limit.spec.block);
    WriteZone(writer, limit.spec.zone);
  }

  // A bucket whose segment is split meanwhile is written a second time, in its later state.
  for (uint64_t i = 0; i < shape_.count(); ++i) {
    Segment& segment = segments_[i];
    if (segment.used_slots() == 0) continue;
    {
      std::lock_guard lock(segment.lock);
      for (uint32_t slot = 0; slot < Segment::kSlots; ++slot) {
        if (segment.tags[slot] == 0 || FreshAtOf({&segment, slot}) <= now) continue;
        const Slot& bucket = segment.slots[slot];
        const LimitEntry& limit = limits_.EntryOf(bucket.limit_id());
        const auto position = positions.find(limit.id);
        if (position == positions.end() || position->second.serial != limit.serial) continue;
        const Fingerprint print = segment.PrintOf(slot);
        writer.Number(position->second.number);
        writer.Number(print.main);
        writer.Number(print.tag);
        writer.Number(print.extra);
        writer.Number(bucket.edge);
        writer.Number(bucket.seen_ns);
        writer.Number(bucket.count);
        writer.Number(algorithm::ToWord(RememberedUntil({&segment, slot})));
        if (limit.limit.blocks()) WriteBlock(writer, BucketAt({&segment, slot}).block);
        if (!IsLog(limit.limit)) continue;
        uint64_t ends = bucket.edge;
        WriteHits(writer, HitsOf(ends, limit));
      }
    }
    writer.FlushIfLarge();
  }
  writer.Number(kEndOfBuckets);
  writer.Finish();
}

absl::Status MemoryStore::Restore(std::string_view snapshot, Instant now) {
  HEADGATE_RETURN_IF_ERROR(CheckEnvelope(snapshot));
  Reader reader(snapshot.substr(0, snapshot.size() - sizeof(uint32_t)));
  reader.Bytes(kMagic.size());
  const auto version = reader.Number<uint32_t>();
  // Only counters need this time: each bucket has a time of its own.
  const auto saved_at = base::Clamp(Instant::FromNanos(reader.Number<int64_t>()));
  const std::string_view secret = reader.Bytes(secret_.bytes.size());
  if (secret.size() != secret_.bytes.size())
    return absl::DataLossError("the snapshot ends within its head");
  std::memcpy(secret_.bytes.data(), secret.data(), secret.size());

  // Empty if there is no room for the limit. All are pinned until the buckets refer to them.
  std::vector<LimitHandle> limits;
  std::vector<bool> logs;
  std::vector<algorithm::BlockLengths> lengths;
  const auto limit_count = reader.Number<uint32_t>();
  for (uint32_t i = 0; i < limit_count && !reader.failed(); ++i) {
    LimitEnd end;
    LimitSpec spec = ReadLimit(reader, end);
    const LimitOwner owner = version >= kRememberedSince
                                 ? LimitOwner::FromNumber(reader.Number<uint64_t>())
                                 : LimitOwner::Clients();
    if (end.lengths) ReadLengths(reader, spec.block);
    bool zone_is_known = true;
    if (end.zone) {
      const auto zone = base::TimeZone::Load(reader.Bytes(reader.Number<uint8_t>()));
      zone_is_known = zone.ok();
      if (zone_is_known) spec.zone = *zone;
    }
    HEADGATE_ASSIGN_OR_RETURN(const Limit limit, Limit::Make(spec));
    lengths.push_back(spec.block);
    logs.push_back(IsLog(limit));
    if (owner == LimitOwner::Counters()) {
      HEADGATE_ASSIGN_OR_RETURN(const LimitEntry* const pinned, EnsureCounters());
      limits.push_back(LimitHandle::Pin(*pinned));
      continue;
    }
    limits.push_back(zone_is_known ? limits_.InternWhereRoom(limit, owner).value_or(LimitHandle())
                                   : LimitHandle());
  }
  // The snapshot's buckets are in the order of the table that was saved. In a much smaller table,
  // the first ones would all belong to the same few segments.
  GrowFor(snapshot.size() /
          (version >= kRememberedSince ? kBucketBytes : kBucketBytesBeforeRemembered));
  for (auto position = reader.Number<uint32_t>(); position != kEndOfBuckets;
       position = reader.Number<uint32_t>()) {
    if (position > limits.size())
      return absl::DataLossError("the snapshot names a limit that it does not have");
    Fingerprint print;
    print.main = reader.Number<uint64_t>();
    print.tag = reader.Number<uint16_t>();
    print.extra = reader.Number<uint16_t>() & Fingerprint::kExtraMask;
    BucketState state;
    state.edge = reader.Number<uint64_t>();
    state.seen = Instant::FromNanos(reader.Number<int64_t>());
    state.count = reader.Number<uint32_t>();
    const algorithm::RememberedUntil remembered_until =
        version >= kRememberedSince ? algorithm::FromWord(reader.Number<uint64_t>())
                                    : algorithm::RememberedUntil{};
    if (!lengths[position - 1].empty()) state.block = ReadBlock(reader, lengths[position - 1]);
    if (print.tag == 0)
      return absl::DataLossError("the snapshot has a bucket without a fingerprint");
    const LimitEntry* const entry = limits[position - 1].get();
    if (entry == nullptr) {
      ++left_out_;
      if (logs[position - 1]) SkipHits(reader);
      continue;
    }
    if (IsLog(entry->limit)) {
      state.edge = 0;
      ArenaHitLog hits = HitsOf(state.edge, *entry);
      state.count = ReadHits(reader, hits);
    }
    if (entry->is_of_counters() && saved_at > now + kAheadOfNowMax &&
        MoveExpiry(state, now - saved_at))
      rebased_.fetch_add(1, std::memory_order_relaxed);
    RestoreBucket(print, *entry, state, remembered_until, now);
  }
  MergeTable();
  if (reader.failed() || !reader.empty())
    return absl::DataLossError("the snapshot's buckets do not add up");
  return absl::OkStatus();
}

void MemoryStore::RestoreBucket(const Fingerprint& print, const LimitEntry& entry,
                                BucketState state, algorithm::RememberedUntil remembered_until,
                                Instant now) {
  ArenaHitLog hits = HitsOf(state.edge, entry);
  // The only time of a counter is its expiry, which Restore has moved.
  if (state.seen > now + kAheadOfNowMax && !entry.is_of_counters()) {
    Rebase(entry.limit, state, hits, remembered_until, now);
    rebased_.fetch_add(1, std::memory_order_relaxed);
  }
  if (remembered_until <= now) remembered_until = {};
  if (remembered_until.ns == 0 && FreshAt(entry.limit, state, hits) <= now &&
      MattersUntil(entry.limit, state) <= now) {
    Reset(entry.limit, state, hits);
    return;
  }
  InBothSegments(print, [&] {
    // If a bucket was written twice, its later state counts.
    if (const SlotRef earlier = Find(print, Held::kBoth); earlier.found()) Remove(earlier);
    const SlotRef ref = Insert(print, Held::kBoth, entry, state, now);
    if (ref.found()) Keep(ref, state, remembered_until);
  });
}

}  // namespace headgate::store
