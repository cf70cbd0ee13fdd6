#include "headgate/store/cas/permit_round.h"

#include <utility>
#include <vector>

#include "headgate/store/big_endian.h"

namespace headgate::store::cas {

using permit::Permit;
using permit::PermitSet;

namespace {

constexpr uint8_t kVersion = 1;
constexpr size_t kPermitBytes = 24;

}  // namespace

void AppendPermits(const PermitSet& permits, std::string& out) {
  Packer packer(out);
  packer.U8(kVersion).U32(static_cast<uint32_t>(permits.permits().size()));
  for (const Permit& permit : permits.permits())
    packer.U64(permit.id.high).U64(permit.id.low).U64(static_cast<uint64_t>(permit.end.ns));
}

std::optional<PermitSet> ParsePermits(std::string_view bytes) {
  Unpacker unpacker(bytes);
  const bool known = unpacker.U8() == kVersion;
  const uint32_t count = unpacker.U32();
  if (!known || !unpacker.complete() || count > permit::kPermitsPerKeyMax ||
      unpacker.rest().size() != count * kPermitBytes)
    return std::nullopt;
  std::vector<Permit> permits(count);
  for (Permit& permit : permits) {
    permit.id.high = unpacker.U64();
    permit.id.low = unpacker.U64();
    const uint64_t end = unpacker.U64();
    if (end > static_cast<uint64_t>(base::kInstantMax.ns + permit::kTtlMax.count()))
      return std::nullopt;
    permit.end = base::Instant::FromNanos(static_cast<int64_t>(end));
  }
  return PermitSet(std::move(permits));
}

PermitRound::PermitRound(std::optional<std::string_view> bytes, base::Instant now)
    : now_(base::Clamp(now)) {
  if (bytes && bytes->empty()) return;
  std::optional<PermitSet> parsed;
  if (bytes) parsed = ParsePermits(*bytes);
  unreadable_ = !parsed;
  if (parsed) permits_ = *std::move(parsed);
}

permit::Answer PermitRound::Answer(const permit::Ask& ask) {
  using Outcome = permit::Answer::Outcome;
  const permit::Answer answer = permits_.Do(ask, now_);
  const bool changes = ask.kind != permit::Ask::Kind::kPeek &&
                       (answer.outcome == Outcome::kGranted || answer.outcome == Outcome::kHeld ||
                        answer.outcome == Outcome::kReleased);
  const bool clears = ask.kind == permit::Ask::Kind::kClear && unreadable_;
  has_changed_ = has_changed_ || changes || clears;
  return answer;
}

std::string PermitRound::bytes() const {
  std::string bytes;
  if (!permits_.empty()) AppendPermits(permits_, bytes);
  return bytes;
}

}  // namespace headgate::store::cas
