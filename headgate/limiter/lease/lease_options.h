// The options of the leases that an instance holds. All defaults are stated only here.
#pragma once

#include <cstdint>
#include <functional>

#include "headgate/algorithm/lease.h"
#include "headgate/base/time.h"
#include "headgate/store/backend_options.h"
#include "headgate/store/shared_store.h"

namespace headgate::limiter::lease {

struct LeaseBookOptions {
  // Drawn at random when the process started: no other instance ever has it.
  uint64_t node = 0;
  // Keys that are followed; 448 bytes each, resident once used. Requests for all other keys ask the
  // store.
  uint32_t keys_max = 65'536;
  // How long a lease lives at the store. Raise it if the store is slow; a node that dies withholds
  // its leases for this long.
  base::Duration ttl = store::kLeaseTtl;
  // The same for a tiny lease, of a key that is asked for less often than once in a ttl.
  base::Duration tiny_ttl = store::kTinyLeaseTtl;
  // A tiny lease is at most one of this many parts of what is left: still a small one when 31/32 of
  // that have gone.
  uint64_t tiny_share = algorithm::kSmallShare * algorithm::kSmallShare;
  // A lease ends earlier here by this part of its life: covers two clocks that are off by 1 % each,
  // with half as much again in reserve.
  uint32_t margin_percent = 5;
  // The least time between two calls about a key that is asked for more often than it can answer.
  // As long as the bucket needs for one request, within these bounds.
  base::Duration pause_least = std::chrono::milliseconds(20);
  base::Duration pause_most = std::chrono::milliseconds(50);
  // The number of instances, so that each leaves enough for the others. Null: nobody knows, one.
  std::function<uint32_t()> instances{};
};

}  // namespace headgate::limiter::lease
