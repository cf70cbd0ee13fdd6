#include "headgate/store/redis/value_checksum.h"

#include <charconv>

#include "headgate/base/crc32c.h"
#include "headgate/store/big_endian.h"
#include "headgate/store/bucket_codec.h"
#include "headgate/wire/digest.h"

namespace headgate::store::redis {
namespace {

using algorithm::Algorithm;

// As in scripts/clock.lua and in the scripts that compute the sum.
constexpr uint64_t kModulus = 4'294'967'291;
constexpr uint64_t kEdgeHi = 65'521, kEdgeLo = 65'519, kCount = 65'497, kSeenHi = 65'479,
                   kSeenLo = 65'449, kRememberedHi = 65'447, kRememberedLo = 65'437,
                   kBlockHi = 65'423, kBlockLo = 65'419, kBlockRest = 65'413;

constexpr size_t kRememberedBytes = 8;
constexpr size_t kLeaseBytes = 32;
// Ten years, in 2^32 ns: longer than a bucket remembers an earlier limit.
constexpr uint64_t kRememberedMost = 73'475'000;

// The offsets of the parts of a value.
struct Parts {
  bool is_log = false;
  bool leases = false;
  bool blocks = false;
  size_t limit_bytes = 0;  // the length of version and limit
  size_t state = 0;        // behind version and limit, and behind a block
  size_t remembered = 0;   // after the state
  bool has_remembered = false;
};

std::optional<Parts> PartsOf(std::string_view value) {
  std::string_view rest = value;
  const auto limit = TakeLimit(rest);
  if (!limit) return std::nullopt;
  const bool is_log = KeepsHits(limit->algorithm());
  const size_t limit_bytes = value.size() - rest.size();
  const size_t state_bytes = is_log ? 12 : 20;
  const size_t block_bytes = limit->blocks() ? kBlockBytes : 0;
  if (rest.size() < block_bytes + state_bytes) return std::nullopt;
  rest.remove_prefix(block_bytes);
  const size_t behind = rest.size() - state_bytes;
  const size_t state = value.size() - rest.size();
  return Parts{.is_log = is_log,
               .leases = algorithm::KeepsLeases(limit->algorithm()),
               .blocks = limit->blocks(),
               .limit_bytes = limit_bytes,
               .state = state,
               .remembered = state + state_bytes,
               .has_remembered = behind % (is_log ? kHitBytes : kLeaseBytes) == kRememberedBytes};
}

// The first four bytes.
uint32_t Sha1(std::string_view bytes) {
  const std::string digits = wire::DigestHex(wire::Digest::kSha1, bytes).substr(0, 8);
  uint32_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
  return number;
}

}  // namespace

uint32_t LimitChecksum(std::string_view version_and_limit) {
  return base::Crc32c(version_and_limit);
}

uint32_t ValueChecksum(std::string_view bucket) {
  const auto parts = PartsOf(bucket);
  if (!parts) return 0;
  uint64_t sum = LimitChecksum(bucket.substr(0, parts->limit_bytes));
  Unpacker in(bucket.substr(parts->limit_bytes));
  const auto add = [&](uint64_t weight) { sum += weight * in.U32(); };
  if (parts->blocks) {
    add(kBlockHi);
    add(kBlockLo);
    sum += kBlockRest * in.U8();
  }
  if (!parts->is_log) {
    add(kEdgeHi);
    add(kEdgeLo);
  }
  add(kCount);
  add(kSeenHi);
  add(kSeenLo);
  if (parts->has_remembered) {
    add(kRememberedHi);
    add(kRememberedLo);
  }
  if (!parts->is_log && !in.rest().empty()) sum += Sha1(in.rest());
  return static_cast<uint32_t>(sum % kModulus);
}

std::optional<std::string> BucketOfValue(std::string_view value) {
  const auto parts = PartsOf(value);
  if (!parts) return std::nullopt;
  std::string bucket(value);
  if (!parts->has_remembered) return bucket;
  const uint64_t seen = Unpacker(value.substr(parts->remembered - 8)).U64();
  const uint64_t remembered = Unpacker(value.substr(parts->remembered)).U64();
  std::optional<uint32_t> checksum;
  if (remembered >> 32 == 0) {
    checksum = static_cast<uint32_t>(remembered);
    bucket.erase(parts->remembered, kRememberedBytes);
  } else if (remembered << 1 >> 1 <= seen) {
    return std::nullopt;  // a time that has passed is never stored
  } else if (!parts->is_log && value.size() >= parts->remembered + kRememberedBytes + kLeaseBytes) {
    const std::string_view last = value.substr(value.size() - kLeaseBytes);
    Unpacker in(last.substr(12));
    const uint32_t number = in.U32();
    const uint32_t granted = in.U32();
    in.U32();
    // No lease ends in 1970. A mark has the number 0.
    if (in.U32() == 0 || (granted == 0 && number > 0)) {
      std::string form;
      Packer(form).U64(0).U64(number).U64(0).U64(0);
      if (last != form) return std::nullopt;
      checksum = number;
      bucket.resize(bucket.size() - kLeaseBytes);
    }
  }
  if (checksum && *checksum != ValueChecksum(bucket)) return std::nullopt;
  // A value without a checksum was written by an earlier version of Headgate, or is damaged.
  if (!checksum && parts->leases && (remembered << 1 >> 1) >> 32 > (seen >> 32) + kRememberedMost)
    return std::nullopt;
  return bucket;
}

}  // namespace headgate::store::redis
