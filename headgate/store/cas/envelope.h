// The bytes of a value in a compare-and-set store: a bucket in its envelope. All numbers are
// big-endian:
//
//   version 1 · generation (8 bytes) · expires at (8) · number of writes (1)
//     · writes (16 bytes each: writer, number) · bucket (bucket_codec.h) · CRC32C of all before (4)
//
// A value that was ever written under a lock (key_locks.h) has version 2, and the fence of the lock
// (8 bytes) behind `expires at`.
//
// A token bucket of 60 per minute that two instances write takes 83 bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/time.h"
#include "headgate/store/cas/write_ids.h"

namespace headgate::store::cas {

inline constexpr uint8_t kEnvelopeVersion = 1;
inline constexpr uint8_t kFencedVersion = 2;

struct Envelope {
  // Random, drawn when the value is created, or replaced because it was unreadable. Versions may
  // start again then; generations do not.
  uint64_t generation = 0;
  // From then on the bucket is fresh, its leases included.
  base::Instant expires_at{0};
  // The largest fence under which the value was written; 0: it was never written under a lock.
  uint64_t fence = 0;
  std::vector<WriteId> writes{};
  // The bytes of the bucket. Empty: the bucket is fresh.
  std::string bucket{};

  bool operator==(const Envelope&) const = default;
};

void AppendEnvelope(const Envelope& envelope, std::string& out);

// Returns nothing if `bytes` are not an envelope of a known version, or are damaged. Does not parse
// the bucket. Stores are not trusted.
std::optional<Envelope> ParseEnvelope(std::string_view bytes);

// Appends the checksum of `bytes` to them.
void AppendChecksum(std::string& bytes);

}  // namespace headgate::store::cas
