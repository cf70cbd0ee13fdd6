#include "headgate/share/fleet_round.h"

#include <algorithm>

namespace headgate::share {
namespace {

using algorithm::FairSharePool;
using algorithm::FairShareRequest;

// An instance takes ahead of its requests at most this part of its share of what is left: others
// may need it, and what it does not use comes back only with a later round.
constexpr uint64_t kAheadPart = 2;

// The demands of the cycle that the instance last knew. If it has ended meanwhile, they count for
// the next shares as if they had been known in time. Older ones mean nothing any more.
void AddLate(FairSharePool& pool, const FleetReport& report, base::Instant now) {
  if (report.cycle < pool.full_before()) return;
  std::vector<FairShareRequest> requests;
  for (const ClientReport& client : report.clients) {
    if (client.late == 0) continue;
    const FairShareRequest request{
        .client = client.name, .cost = client.late, .weight = client.weight};
    if (report.cycle < pool.full_since()) {
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
  for (size_t i = 0; i < grants.size(); ++i)
    grants[i].part = pool.TakePart(report.clients[i].name, report.clients[i].need);
  const uint64_t most = kAheadPart * std::max<uint64_t>(1, instances);
  for (size_t i = 0; i < grants.size(); ++i) {
    const ClientReport& client = report.clients[i];
    const uint64_t ahead = std::min(client.ahead, pool.RoomFor(client.name) / most);
    grants[i].part += pool.TakePart(client.name, ahead);
  }
  for (size_t i = 0; i < grants.size(); ++i) grants[i].room = pool.RoomFor(report.clients[i].name);
  return grants;
}

}  // namespace headgate::share
