#include "headgate/store/redis/lease_hold.h"

#include <algorithm>
#include <optional>

#include "headgate/algorithm/token_bucket.h"
#include "headgate/store/redis/packing.h"

namespace headgate::store::redis {
namespace {

using algorithm::BucketState;
using algorithm::ExactSpan;
using algorithm::Limit;

// The edge is not before at + owed·T, of which an empty bucket owes no more than its capacity.
void Hold(const Limit& limit, uint64_t at, uint64_t owed, BucketState& state) {
  const ExactSpan price = Price(limit, std::min<uint64_t>(owed, limit.capacity()));
  const ExactSpan edge{at + price.ns, price.fraction};
  if (edge > ExactSpan{state.edge, state.count}) {
    state.edge = edge.ns;
    state.count = edge.fraction;
  }
}

}  // namespace

void HoldOwed(const Limit& limit, std::string_view leases, BucketState& state, base::Instant now) {
  const bool meter = limit.algorithm() == algorithm::Algorithm::kTokenBucket ||
                     limit.algorithm() == algorithm::Algorithm::kLeakyBucket;
  if (!meter || limit.denies_all() || leases.empty()) return;
  const auto now_ns = static_cast<uint64_t>(std::max(now, state.seen).ns);
  Unpacker in(leases);
  uint64_t owed_before = 0;
  uint64_t owed = 0;
  std::optional<uint64_t> expired_at;
  while (!in.rest().empty()) {
    in.U64();  // node
    in.U64();  // number
    const uint64_t granted = in.U32();
    const uint64_t reported = in.U32();
    const uint64_t expires_at = in.U64();
    const uint64_t unreported = granted - std::min(granted, reported);
    owed_before += unreported;
    if (expires_at > now_ns) {
      owed += unreported;
    } else {
      expired_at = std::max(expired_at.value_or(0), expires_at);
    }
  }
  if (expired_at) Hold(limit, *expired_at, owed_before, state);
  Hold(limit, now_ns, owed, state);
}

}  // namespace headgate::store::redis
