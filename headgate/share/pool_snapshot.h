// The state of a pool at one moment, for metrics. Amounts are sums of costs, as in
// algorithm/fair_share_view.h; counts only grow, unless a client leaves and comes back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headgate/algorithm/fair_share_view.h"
#include "headgate/base/time.h"
#include "headgate/share/share_options.h"
#include "headgate/share/verdict.h"

namespace headgate::share {

struct ClientSnapshot {
  std::string name;
  algorithm::ClientFigures figures{};
};

// The upstream of a pool with `capacity: auto`, as far as it is known.
struct UpstreamSnapshot {
  uint32_t in_flight = 0;
  uint64_t long_requests = 0;            // that take too long to count
  uint32_t limit = 0;                    // of requests in flight
  std::optional<uint64_t> per_1000_s{};  // the capacity; empty until it is found
  std::optional<base::Duration> latency_base{};
};

// Requests that were refused, or would have been in Mode::kPassthrough. Numbers, not costs.
struct Refusals {
  uint64_t share_used = 0;
  uint64_t never_fits = 0;
  uint64_t in_flight = 0;
  uint64_t no_client = 0;
  uint64_t too_many_clients = 0;
  bool operator==(const Refusals&) const = default;
};

// The count of refusals for this reason.
uint64_t& CountOf(Refusals& refusals, Reason reason);

struct PoolSnapshot {
  Mode mode = Mode::kEnforce;
  std::optional<uint64_t> capacity{};  // in this cycle; empty until it is found
  algorithm::CycleView cycle{};
  algorithm::FairShareCounts counts{};
  Refusals refusals{};
  uint64_t counted_only = 0;  // refusals of requests that passed nevertheless
  uint64_t clients_left = 0;
  uint64_t clients_replaced = 0;  // by new ones, because the pool was full
  std::optional<UpstreamSnapshot> upstream{};
  std::vector<ClientSnapshot> clients;  // in order of arrival
  // The sum over the clients that KeepFirst removed.
  size_t others_count = 0;
  algorithm::ClientFigures others{};
};

void Add(algorithm::FairShareCounts& sum, const algorithm::FairShareCounts& more);

// For metrics with a bounded number of series (client_series.h): sorts the clients by demand, the
// largest first (among equals by name), and keeps the first `count`, adding up the others.
void OrderByDemand(PoolSnapshot& snapshot);
void KeepFirst(PoolSnapshot& snapshot, size_t count);

}  // namespace headgate::share
