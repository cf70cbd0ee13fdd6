#include "headgate/proxy/waiter_queue.h"

#include "headgate/base/check.h"

namespace headgate::proxy {

// ---- Clients

const PlaceClient* WaiterQueue::Find(const Waiter& waiter) const {
  if (!waiter.key_) return &nobody_;
  const auto at = clients_.find(*waiter.key_);
  return at == clients_.end() ? nullptr : at->second;
}

uint64_t WaiterQueue::HeldBy(const Waiter& waiter) const {
  const PlaceClient* const client = Find(waiter);
  return client == nullptr ? 0 : client->held;
}

uint64_t WaiterQueue::WaitingOf(const Waiter& waiter) const {
  const PlaceClient* const client = Find(waiter);
  return client == nullptr ? 0 : client->waiting;
}

PlaceClient& WaiterQueue::Ensure(Waiter& waiter) {
  if (!waiter.key_) return *(waiter.client_ = &nobody_);
  const auto [at, is_new] = clients_.try_emplace(*waiter.key_, nullptr);
  if (is_new) {
    at->second = &pool_.Take();
    *at->second = {};
  }
  return *(waiter.client_ = at->second);
}

void WaiterQueue::Detach(Waiter& waiter) {
  PlaceClient& client = *waiter.client_;
  waiter.client_ = nullptr;
  if (client.held > 0 || client.waiting > 0 || !waiter.key_) return;
  clients_.erase(*waiter.key_);
  pool_.Release(client);
}

void WaiterQueue::Hold(Waiter& waiter) {
  HEADGATE_CHECK(waiter.client_ == nullptr);
  PlaceClient& client = Ensure(waiter);
  ++client.held;
  if (client.waiting > 0) Reorder(client);
}

void WaiterQueue::Release(Waiter& waiter) {
  PlaceClient& client = *waiter.client_;
  HEADGATE_CHECK(client.held > 0 && !waiter.waits_);
  --client.held;
  if (client.waiting > 0) Reorder(client);
  Detach(waiter);
}

// ---- Requests that wait

void WaiterQueue::Append(Waiter& waiter) {
  HEADGATE_CHECK(waiter.client_ == nullptr);
  PlaceClient& client = Ensure(waiter);
  waiter.waits_ = true;
  waiter.next_ = nullptr;
  waiter.previous_ = client.last;
  (client.last == nullptr ? client.first : client.last->next_) = &waiter;
  client.last = &waiter;
  ++size_;
  if (client.waiting++ == 0) Insert(client);
}

void WaiterQueue::Remove(Waiter& waiter) {
  if (!waiter.waits_) return;
  PlaceClient& client = *waiter.client_;
  waiter.waits_ = false;
  (waiter.previous_ == nullptr ? client.first : waiter.previous_->next_) = waiter.next_;
  (waiter.next_ == nullptr ? client.last : waiter.next_->previous_) = waiter.previous_;
  --size_;
  if (--client.waiting == 0) Erase(client);
  Detach(waiter);
}

WaiterQueue::Waiter& WaiterQueue::TakeFirst() {
  PlaceClient& client = *order_.front();
  Waiter& waiter = *client.first;
  // The client's other requests now wait behind the clients that have as many places.
  client.ticket = next_ticket_++;
  Reorder(client);
  Remove(waiter);
  return waiter;
}

// ---- The heap

bool WaiterQueue::IsBefore(const PlaceClient& a, const PlaceClient& b) const {
  const uint64_t a_held = &a == &nobody_ ? 0 : a.held;
  const uint64_t b_held = &b == &nobody_ ? 0 : b.held;
  return a_held != b_held ? a_held < b_held : a.ticket < b.ticket;
}

void WaiterQueue::Put(PlaceClient& client, size_t position) {
  order_[position] = &client;
  client.position = position;
}

void WaiterQueue::Insert(PlaceClient& client) {
  client.ticket = next_ticket_++;
  client.position = order_.size();
  order_.push_back(&client);
  Reorder(client);
}

void WaiterQueue::Erase(PlaceClient& client) {
  PlaceClient& last = *order_.back();
  order_.pop_back();
  if (&last == &client) return;
  Put(last, client.position);
  Reorder(last);
}

void WaiterQueue::Reorder(PlaceClient& client) {
  size_t at = client.position;
  for (; at > 0 && IsBefore(client, *order_[(at - 1) / 2]); at = (at - 1) / 2)
    Put(*order_[(at - 1) / 2], at);
  for (size_t child = 2 * at + 1; child < order_.size(); child = 2 * at + 1) {
    if (child + 1 < order_.size() && IsBefore(*order_[child + 1], *order_[child])) ++child;
    if (!IsBefore(*order_[child], client)) break;
    Put(*order_[child], at);
    at = child;
  }
  Put(client, at);
}

}  // namespace headgate::proxy
