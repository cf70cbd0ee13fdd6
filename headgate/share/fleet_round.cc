#include "headgate/share/fleet_round.h"

#include <algorithm>

namespace headgate::share {
namespace {

using algorithm::FairSharePool;
using algorithm::FairShareRequest;

// In advance of its requests, an instance takes at most this part of its share of the rest: other
// instances may need the rest, and unused parts come back only with a later round.
constexpr uint64_t kAheadPart = 8;
// If this would be less than kAheadLeast, the instance takes nothing in advance, so that no
// capacity is stranded in small pools.
constexpr uint64_t kAheadLeast = 4;

// Adds the demands of a cycle that has already ended for the instance. They count for the next
// shares as if they had been reported in time. Demands of older cycles are ignored.
void AddLate(FairSharePool& pool, const FleetReport& report, base::Instant now) {
  if (report.late_cycle < pool.full_before()) return;
  std::vector<FairShareRequest> requests;
  for (const ClientReport& client : report.clients) {
    if (client.late == 0) continue;
    const FairShareRequest request{
        .client = client.name, .cost = client.late, .weight = client.weight};
    if (report.late_cycle < pool.full_since()) {
      requests.push_back(request);
    } else {
      (void)pool.AddDemand(request, now);
    }
  }
  pool.AddLateDemand(requests);
}

}  // namespace

std::vector<ClientGrant> ApplyRound(FairSharePool& pool, const FleetReport& report,
                                    bool is_same_pool, uint32_t instances, base::Instant now) {
  now = pool.Advance(now);
  if (is_same_pool) {
    AddLate(pool, report, now);
    for (const ClientReport& client : report.clients)
      pool.ReturnPart(client.name, client.returned, client.returned_cycle);
  }
  std::vector<ClientGrant> grants(report.clients.size());
  for (size_t i = 0; i < grants.size(); ++i) {
    const ClientReport& client = report.clients[i];
    if (client.demand + client.need + client.charge == 0) continue;
    grants[i].refused = !pool.AddDemand(
        {.client = client.name, .cost = client.demand, .weight = client.weight}, now);
    pool.ChargePart(client.name, client.charge);
  }
  for (const ClientReport& client : report.clients) {
    if (client.unmet > 0 || client.need > pool.RoomFor(client.name))
      pool.ReclaimFor(client.name, now);
  }
  for (size_t i = 0; i < grants.size(); ++i) {
    const ClientReport& client = report.clients[i];
    grants[i].part = pool.TakePart(client.name, client.need);
    if (client.unmet > 0 || grants[i].part < client.need) pool.TellDenied(client.name, now);
  }
  const uint64_t most = kAheadPart * std::max<uint64_t>(1, instances);
  for (size_t i = 0; i < grants.size(); ++i) {
    const ClientReport& client = report.clients[i];
    const uint64_t plenty = pool.RoomFor(client.name) / most;
    if (plenty < kAheadLeast) continue;
    grants[i].part += pool.TakePart(client.name, std::min(client.ahead, plenty));
  }
  for (size_t i = 0; i < grants.size(); ++i) grants[i].room = pool.RoomFor(report.clients[i].name);
  return grants;
}

}  // namespace headgate::share
