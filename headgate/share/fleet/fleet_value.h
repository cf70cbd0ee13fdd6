// The value of a pool in the store: the pool (algorithm/fair_share_state.h) in the envelope of a
// compare-and-set store, which has the checksum, the generation and the ids of the last writes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "headgate/algorithm/fair_share_pool.h"
#include "headgate/base/time.h"
#include "headgate/store/cas/envelope.h"

namespace headgate::share::fleet {

// The name of the value of this pool, "hg:{f|default}".
std::string ValueName(std::string_view pool);

// Why a value was not used.
enum class Unusable : uint8_t {
  kNone,
  kCorrupt,  // foreign or damaged
  kAhead,    // its time is more than a cycle ahead of the clock
};

struct ReadValue {
  std::optional<algorithm::FairSharePool> pool;  // empty if a new pool has to be made
  store::cas::Envelope envelope;                 // empty too, then
  Unusable unusable = Unusable::kNone;
};

ReadValue Read(std::string_view bytes, base::Instant now);

// The time from which no later cycle depends on the state of the pool, if nobody writes before.
base::Instant ExpiryOf(const algorithm::FairSharePool& pool, base::Instant now);

// The bytes of the value. `envelope` has all but the pool.
std::string Write(const algorithm::FairSharePool& pool, store::cas::Envelope envelope);

}  // namespace headgate::share::fleet
