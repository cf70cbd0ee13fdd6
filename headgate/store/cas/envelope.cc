#include "headgate/store/cas/envelope.h"

#include "headgate/base/crc32c.h"

#include "headgate/store/big_endian.h"
#include "headgate/store/bucket_codec.h"

namespace headgate::store::cas {
namespace {

using base::Instant;

constexpr size_t kChecksumBytes = 4;
// The latest expiry: the latest time of a bucket plus the longest time until it is fresh again
// (bucket_codec.cc).
constexpr uint64_t kExpiresAtMax =
    static_cast<uint64_t>(base::kInstantMax.ns) + static_cast<uint64_t>(base::kDurationMax.count());

// Whether each writer has one write. Only then AddWrite and FateOf mean something.
bool HasOneWriteOfEach(const std::vector<WriteId>& writes) {
  for (size_t i = 0; i < writes.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      if (writes[k].writer == writes[i].writer) return false;
    }
  }
  return true;
}

}  // namespace

void AppendChecksum(std::string& bytes) {
  const uint32_t checksum = base::Crc32c(bytes);
  Packer(bytes).U32(checksum);
}

void AppendEnvelope(const Envelope& envelope, std::string& out) {
  std::string bytes;
  bytes.reserve(40 + 16 * envelope.writes.size() + envelope.bucket.size());
  {
    Packer pack(bytes);
    pack.U8(envelope.fence > 0 ? kFencedVersion : kEnvelopeVersion).U64(envelope.generation);
    pack.U64(static_cast<uint64_t>(envelope.expires_at.ns));
    if (envelope.fence > 0) pack.U64(envelope.fence);
    pack.U8(static_cast<uint8_t>(envelope.writes.size()));
    for (const WriteId& write : envelope.writes) pack.U64(write.writer).U64(write.number);
  }
  bytes.append(envelope.bucket);
  AppendChecksum(bytes);
  out.append(bytes);
}

std::optional<Envelope> ParseEnvelope(std::string_view bytes) {
  if (bytes.size() < kChecksumBytes) return std::nullopt;
  const std::string_view body = bytes.substr(0, bytes.size() - kChecksumBytes);
  if (Unpacker(bytes.substr(body.size())).U32() != base::Crc32c(body)) return std::nullopt;
  Unpacker in(body);
  Envelope envelope;
  const uint8_t version = in.U8();
  if (version != kEnvelopeVersion && version != kFencedVersion) return std::nullopt;
  envelope.generation = in.U64();
  const uint64_t expires_at = in.U64();
  if (expires_at > kExpiresAtMax) return std::nullopt;
  envelope.expires_at = Instant::FromNanos(static_cast<int64_t>(expires_at));
  if (version == kFencedVersion) {
    envelope.fence = in.U64();
    // Each envelope has one form only.
    if (envelope.fence == 0) return std::nullopt;
  }
  const uint8_t count = in.U8();
  if (count > kWritersMax) return std::nullopt;
  envelope.writes.reserve(count);
  for (uint8_t i = 0; i < count; ++i)
    envelope.writes.push_back({.writer = in.U64(), .number = in.U64()});
  if (!in.complete() || !HasOneWriteOfEach(envelope.writes)) return std::nullopt;
  if (in.rest().size() > kValueBytesMax) return std::nullopt;
  envelope.bucket = in.rest();
  return envelope;
}

}  // namespace headgate::store::cas
