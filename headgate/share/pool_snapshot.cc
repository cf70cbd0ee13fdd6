#include "headgate/share/pool_snapshot.h"

#include <algorithm>

namespace headgate::share {
namespace {

void AddFigures(algorithm::ClientFigures& sum, const algorithm::ClientFigures& more) {
  sum.weight += more.weight;
  sum.demand += more.demand;
  sum.capacity += more.capacity;
  sum.borrowed += more.borrowed;
  sum.lent += more.lent;
  sum.demand_now += more.demand_now;
  sum.used_now += more.used_now;
  Add(sum.counts, more.counts);
}

}  // namespace

uint64_t& CountOf(Refusals& refusals, Reason reason) {
  switch (reason) {
    case Reason::kNeverFits:
      return refusals.never_fits;
    case Reason::kInFlight:
      return refusals.in_flight;
    case Reason::kNoClient:
      return refusals.no_client;
    case Reason::kTooManyClients:
      return refusals.too_many_clients;
    case Reason::kWithinShare:
    case Reason::kAboveShare:
    case Reason::kShareUsed:
      break;
  }
  return refusals.share_used;
}

void Add(algorithm::FairShareCounts& sum, const algorithm::FairShareCounts& more) {
  sum.allowed += more.allowed;
  sum.rejected += more.rejected;
  sum.sent_anyway += more.sent_anyway;
  sum.not_taken += more.not_taken;
}

void OrderByDemand(PoolSnapshot& snapshot) {
  std::vector<ClientSnapshot>& clients = snapshot.clients;
  std::sort(clients.begin(), clients.end(), [](const ClientSnapshot& a, const ClientSnapshot& b) {
    if (a.figures.demand != b.figures.demand) return a.figures.demand > b.figures.demand;
    return a.name < b.name;
  });
}

void KeepFirst(PoolSnapshot& snapshot, size_t count) {
  std::vector<ClientSnapshot>& clients = snapshot.clients;
  for (size_t i = count; i < clients.size(); ++i) {
    AddFigures(snapshot.others, clients[i].figures);
    ++snapshot.others_count;
  }
  clients.resize(std::min(count, clients.size()));
}

}  // namespace headgate::share
