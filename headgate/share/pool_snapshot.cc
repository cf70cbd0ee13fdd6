#include "headgate/share/pool_snapshot.h"

#include <algorithm>

namespace headgate::share {
namespace {

void Add(algorithm::ClientFigures& sum, const algorithm::ClientFigures& more) {
  sum.weight += more.weight;
  sum.demand += more.demand;
  sum.capacity += more.capacity;
  sum.borrowed += more.borrowed;
  sum.lent += more.lent;
  sum.demand_now += more.demand_now;
  sum.used_now += more.used_now;
  sum.counts.allowed += more.counts.allowed;
  sum.counts.rejected += more.counts.rejected;
  sum.counts.sent_anyway += more.counts.sent_anyway;
  sum.counts.not_taken += more.counts.not_taken;
}

}  // namespace

void KeepLargest(PoolSnapshot& snapshot, size_t count) {
  std::vector<ClientSnapshot>& clients = snapshot.clients;
  std::sort(clients.begin(), clients.end(), [](const ClientSnapshot& a, const ClientSnapshot& b) {
    if (a.figures.demand != b.figures.demand) return a.figures.demand > b.figures.demand;
    return a.name < b.name;
  });
  for (size_t i = count; i < clients.size(); ++i) {
    Add(snapshot.others, clients[i].figures);
    ++snapshot.others_count;
  }
  clients.resize(std::min(count, clients.size()));
}

}  // namespace headgate::share
