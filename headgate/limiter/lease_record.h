// The state of one key in a lease book.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "headgate/algorithm/decision.h"
#include "headgate/base/clock.h"
#include "headgate/base/hash.h"
#include "headgate/limiter/demand.h"
#include "headgate/limiter/held_leases.h"
#include "headgate/store/limit_table.h"

namespace headgate::limiter {

inline constexpr base::BootTime kNeverAt{INT64_MAX};

// A decision from a lease reads and writes only the fields in the first two cache lines.
struct alignas(64) LeaseRecord {
  base::Hash128 key{};
  const store::LimitEntry* limit = nullptr;  // pinned by limit_pin
  Demand demand;
  base::BootTime taken_at{0};  // the last request
  uint64_t shared_rest = 0;    // requests left in the shared bucket, as last heard
  // The next ask for a lease is not sent earlier. Never, while an ask is under way or if the limit
  // gives no leases.
  base::BootTime ask_from{0};
  // The next lease is due from this time on, or when at most this much is left.
  base::BootTime renew_at{0};
  uint32_t renew_below = ~uint32_t{0};
  HeldLeases leases;

  base::BootTime reset_at{0};  // the end of the window, or a full bucket; as last heard
  // ---- Denials (lease_denials.h). Requests of at least this cost are denied; 0: none is.
  uint64_t denied_cost = 0;
  base::BootTime denied_until{0};
  // When the store was asked. A ttl later the denial means nothing any more.
  base::BootTime denied_at{0};
  // The time at which a request of `retry_cost` can pass, as far as the store has said.
  base::BootTime retry_at{0};
  uint64_t retry_cost = 0;
  int64_t budget_even_at = 0;  // ask_budget.h
  // ---- The ask that is under way. 0: none is.
  uint64_t asked_number = 0;
  uint64_t asked_want = 0;
  uint64_t asked_least = 0;
  base::BootTime asked_at{0};
  // ---- Derived from the limit.
  store::LimitHandle limit_pin;
  base::Duration pause{0};        // between two asks while the key is scarce
  base::BootTime exact_until{0};  // after a change of the limit, or if too many hold leases
  // The most instances, this one included, that the store said to hold leases. Forgotten after
  // holders_until. Before the first answer: all instances.
  uint32_t holders = 1;
  uint32_t granted_in_window = 0;  // to this instance until reset_at; counted for short windows
  base::BootTime holders_until{0};
  std::string name;  // kept from the first ask on
  bool queued = false;
  bool leasable = false;
  bool asked_exhausted = false;      // when nothing was left
  bool asked_over_budget = false;    // more often than once per pause
  bool asked_all = false;            // for all that is left of a window
  bool asked_before_change = false;  // of the limit: the grant is returned

  bool IsDenied(algorithm::Cost cost) const { return denied_cost != 0 && cost >= denied_cost; }
  void MayAskFrom(base::BootTime at) { ask_from = leasable ? std::max(at, exact_until) : kNeverAt; }
};
static_assert(offsetof(LeaseRecord, leases) + sizeof(uint32_t) * 2 + sizeof(HeldLease) == 128,
              "a decision from the first lease needs two cache lines");
static_assert(sizeof(LeaseRecord) == 448, "as LeaseBookOptions and the guide say");

}  // namespace headgate::limiter
