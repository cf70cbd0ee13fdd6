// The state of one key in a lease book.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "headgate/algorithm/decision.h"
#include "headgate/base/clock.h"
#include "headgate/base/hash.h"
#include "headgate/limiter/lease/demand.h"
#include "headgate/limiter/lease/held_leases.h"
#include "headgate/store/limit_table.h"

namespace headgate::limiter::lease {

inline constexpr base::BootTime kNeverAt{INT64_MAX};

// A decision from a lease reads and writes only the fields in the first two cache lines.
struct alignas(64) LeaseRecord {
  base::Hash128 key{};
  const store::LimitEntry* limit = nullptr;  // pinned by limit_pin
  Demand demand;
  base::BootTime taken_at{0};  // the last request
  uint64_t shared_rest = 0;    // requests left in the shared bucket, as last heard
  // No lease is asked for earlier. Never, if the limit gives none.
  base::BootTime ask_from{0};
  // The next lease is due from this time on, or when at most this much is left.
  base::BootTime renew_at{0};
  uint32_t renew_below = ~uint32_t{0};
  HeldLeases leases;

  base::BootTime reset_at{0};  // the end of the window, or a full bucket; as last heard
  // ---- The store's last answer about a request (lease_denials.h).
  base::BootTime rest_until{0};  // how long its rest stands while the key is overloaded
  base::BootTime refused_at{0};  // the last denial
  // When a request of this cost can pass, and how much was missing, as the store has said then.
  uint64_t passes_cost = 0;
  uint64_t passes_lacks = 1;
  base::BootTime passes_at{0};
  base::BootTime heard_at{0};
  int64_t budget_even_at = 0;  // ask_budget.h
  // Requests in a row that asked the store with few left and the budget overspent.
  uint32_t few_left_asks = 0;
  // ---- The message that is under way. 0: none is.
  uint64_t asked_number = 0;
  uint64_t asked_cost = 0;
  uint64_t asked_want = 0;
  base::BootTime asked_at{0};  // that one, or the last before
  base::Duration asked_ttl{0};
  // ---- Derived from the limit.
  store::LimitHandle limit_pin;
  base::Duration pause{0};        // between two calls about an overloaded key
  base::BootTime exact_until{0};  // after a change of the limit
  base::BootTime look_at{0};      // the next look, by the clock alone; 0: none
  std::string name;               // kept from the first message on
  bool leasable = false;
  bool exact = false;                // each request asks the store, unless the key is overloaded
  bool asked_before_change = false;  // of the limit: the grant is returned

  void MayAskFrom(base::BootTime at) { ask_from = leasable ? std::max(at, exact_until) : kNeverAt; }
};
static_assert(offsetof(LeaseRecord, leases) + sizeof(uint32_t) * 2 + sizeof(HeldLease) == 128,
              "a decision from the first lease needs two cache lines");
static_assert(sizeof(LeaseRecord) == 448, "as LeaseBookOptions and the guide say");

}  // namespace headgate::limiter::lease
