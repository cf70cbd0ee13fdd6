// The options of the leases that an instance holds. All defaults are stated only here.
#pragma once

#include <cstdint>
#include <functional>

#include "headgate/base/time.h"
#include "headgate/store/backend_options.h"
#include "headgate/store/shared_store.h"

namespace headgate::limiter {

struct LeaseBookOptions {
  // Drawn at random when the process started: no other instance ever has it.
  uint64_t node = 0;
  // Keys that are followed; 448 bytes each, resident once used. Requests for all other keys ask the
  // store.
  uint32_t keys_max = 65'536;
  // How long a lease lives at the store. Raise it if the store is slow; a node that dies withholds
  // its leases for this long.
  base::Duration ttl = store::kLeaseTtl;
  // A lease ends earlier here by this part of its life: covers two clocks that are off by 1 % each,
  // with half as much again in reserve.
  uint32_t margin_percent = 5;
  // As long as a call of the store takes at most.
  base::Duration timeout = store::CallOptions{}.timeout;
  // A key gets a lease if this many requests are expected within half a TTL, or three if they are a
  // small share of the rest. Raise it to keep more keys exact.
  uint32_t requests_least = 4;
  // A smaller bucket is always exact: one node would hold most of it.
  uint64_t capacity_least = 8;
  // A bucket that fills in less is always exact: it would be empty between two messages.
  base::Duration fill_least = std::chrono::milliseconds(100);
  // The least time between two asks for a scarce key. A bucket that fills in less than eight times
  // that is asked eight times while it fills.
  base::Duration pause = std::chrono::milliseconds(50);
  // A pause is longer by up to this much, by a different part each time: if instances asked in a
  // fixed order, the one after the longest gap would get most of the refill.
  uint32_t pause_spread_percent = 50;
  // The number of instances. Until the store has said how many hold leases of a key, all of them
  // count. Null: nobody knows, and the first lease is as for one.
  std::function<uint32_t()> instances{};
};

}  // namespace headgate::limiter
