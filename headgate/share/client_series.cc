#include "headgate/share/client_series.h"

#include <algorithm>

namespace headgate::share {

void ClientSeries::Follow(PoolSnapshot& snapshot) {
  ++round_;
  OrderByDemand(snapshot);
  const Values total = ValuesOf(snapshot.counts);
  // How much of the growth of the total is not yet assigned to a client. All series together get no
  // more than this, so the series of the rest never decreases, whatever a pool says about its
  // clients.
  Values left{};
  for (size_t i = 0; i < left.size(); ++i) left[i] = total[i] - std::min(total_[i], total[i]);
  total_ = total;
  FollowKnown(snapshot, left);
  BeginNew(snapshot, left);

  Values shown{};
  absl::erase_if(clients_, [&](const auto& entry) {
    const Client& client = entry.second;
    const bool has_left = client.round != round_;
    for (size_t i = 0; i < shown.size(); ++i) (has_left ? gone_ : shown)[i] += client.shown[i];
    return has_left;
  });
  KeepFirst(snapshot, count_);
  for (ClientSnapshot& client : snapshot.clients) {
    const Values& values = clients_.find(client.name)->second.shown;
    client.figures.counts.allowed = values[0];
    client.figures.counts.rejected = values[1];
  }
  snapshot.others.counts.allowed = total[0] - std::min(total[0], gone_[0] + shown[0]);
  snapshot.others.counts.rejected = total[1] - std::min(total[1], gone_[1] + shown[1]);
}

ClientSeries::Values ClientSeries::ValuesOf(const algorithm::FairShareCounts& counts) {
  return {counts.allowed, counts.rejected};
}

void ClientSeries::FollowKnown(const PoolSnapshot& snapshot, Values& left) {
  new_.clear();
  for (size_t at = 0; at < snapshot.clients.size(); ++at) {
    const Values counts = ValuesOf(snapshot.clients[at].figures.counts);
    const auto found = clients_.find(snapshot.clients[at].name);
    if (found == clients_.end()) {
      new_.push_back(at);
      continue;
    }
    Client& client = found->second;
    // Smaller counts mean that the client left the pool and came back since the last snapshot.
    if (counts[0] < client.seen[0] || counts[1] < client.seen[1]) {
      for (size_t i = 0; i < counts.size(); ++i) gone_[i] += client.shown[i];
      client = Client();
    }
    const bool goes_on = client.is_shown && at < count_;
    client.is_shown = at < count_;
    client.round = round_;
    for (size_t i = 0; i < counts.size(); ++i) {
      const uint64_t grown = std::min(left[i], counts[i] - client.seen[i]);
      left[i] -= grown;
      client.seen[i] = counts[i];
      if (goes_on) client.shown[i] += grown;
    }
  }
}

// A new client has not been counted anywhere yet. But a pool may also show a client again that it
// left out for a time; then the series of the rest has counted its requests already.
void ClientSeries::BeginNew(const PoolSnapshot& snapshot, Values& left) {
  for (const size_t at : new_) {
    const Values counts = ValuesOf(snapshot.clients[at].figures.counts);
    Client client{.seen = counts, .is_shown = at < count_, .round = round_};
    for (size_t i = 0; client.is_shown && i < counts.size(); ++i) {
      if (counts[i] > left[i]) continue;
      left[i] -= counts[i];
      client.shown[i] = counts[i];
    }
    clients_.emplace(snapshot.clients[at].name, client);
  }
}

}  // namespace headgate::share
