#include "headgate/share/in_flight.h"

#include "headgate/base/check.h"

namespace headgate::share {

uint64_t InFlight::KeyOf(std::string_view client) const {
  return base::HashBytes(secret_, base::KeyKind::kRaw, client).low;
}

InFlight::Client& InFlight::Ensure(const Request& request) {
  const uint64_t key = KeyOf(request.client);
  const auto [at, is_new] = clients_.try_emplace(key, nullptr);
  if (is_new) {
    at->second = &pool_.Take();
    at->second->key = key;
    at->second->name = request.client;
    at->second->weight = request.weight;
  }
  return *at->second;
}

uint64_t InFlight::Enter(const Request& request, base::Instant now) {
  if (free_ == kNone) {
    HEADGATE_CHECK(entries_.size() < kNone);
    free_ = static_cast<uint32_t>(entries_.size());
    entries_.push_back({.next = kNone});
  }
  const uint32_t index = free_;
  Entry& entry = entries_[index];
  free_ = entry.next;
  Client& client = Ensure(request);
  ++client.requests;
  if (client.counted++ == 0) weights_ += client.weight;
  entry.client = &client;
  entry.since = now;
  entry.taken = request.taken;
  entry.cycle = request.cycle;
  entry.counted = true;
  entry.is_above = request.is_above;
  above_ += entry.is_above;
  entry.previous = newest_;
  entry.next = kNone;
  (newest_ == kNone ? oldest_ : entries_[newest_].next) = index;
  newest_ = index;
  ++size_;
  ++counted_;
  return uint64_t{entry.reused} << 32 | (index + uint64_t{1});
}

void InFlight::Uncount(uint32_t index) {
  Entry& entry = entries_[index];
  entry.counted = false;
  --counted_;
  above_ -= entry.is_above;
  if (--entry.client->counted == 0) weights_ -= entry.client->weight;
  (entry.previous == kNone ? oldest_ : entries_[entry.previous].next) = entry.next;
  (entry.next == kNone ? newest_ : entries_[entry.next].previous) = entry.previous;
}

InFlight::Left InFlight::Leave(uint64_t number) {
  const uint64_t index = (number & UINT32_MAX) - 1;
  HEADGATE_CHECK(index < entries_.size());
  Entry& entry = entries_[index];
  HEADGATE_CHECK(entry.client != nullptr && entry.reused == number >> 32);
  Client& client = *entry.client;
  const Left left{.request = {.client = client.name,
                              .weight = client.weight,
                              .taken = entry.taken,
                              .cycle = entry.cycle,
                              .is_above = entry.is_above},
                  .counted = entry.counted};
  if (entry.counted) Uncount(static_cast<uint32_t>(index));
  if (--client.requests == 0) {
    clients_.erase(client.key);
    pool_.Release(client);
  }
  entry.client = nullptr;
  ++entry.reused;
  entry.next = free_;
  free_ = static_cast<uint32_t>(index);
  --size_;
  return left;
}

bool InFlight::DropFrom(base::Instant before) {
  if (oldest_ == kNone || entries_[oldest_].since >= before) return false;
  Uncount(oldest_);
  return true;
}

InFlight::Own InFlight::OwnOf(std::string_view client, uint32_t weight, uint32_t limit,
                              uint32_t limit_usual) const {
  const auto at = clients_.find(KeyOf(client));
  const size_t own = at == clients_.end() ? 0 : at->second->counted;
  const uint64_t weights = own > 0 ? weights_ : weights_ + weight;
  const uint64_t own_weight = own > 0 ? at->second->weight : weight;
  // Limits and weights are below 2^32, and the number of requests that fit into memory is, too.
  const bool has_room = own_weight * limit_usual >= weights &&
                        (own == 0 || (own + 1) * weights <= own_weight * limit);
  return {.requests = own, .has_room = has_room};
}

}  // namespace headgate::share
