// The clients that have places or wait for one, and the order in which waiting clients get one: the
// client with the fewest places is first, and clients with equally many take turns. Requests of one
// client are in order. A request leaves the queue from any position without a search.
//
//   places  1: B's requests  4 5 6      the next is 4; then B has two places, and 9 and 5 take
//   turns
//           2: C's requests  9
//           7: A's requests  1 2 3 7 8  so a client that came first and holds many does not hold up
//                                       the others
//
// Requests without a client count as if they were of one client without places.
//
// A client is known as long as one of its requests waits or has a place, so there are at most as
// many clients as places and waiting requests. Memory is reused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "headgate/base/pool.h"
#include "headgate/proxy/places.h"

namespace headgate::proxy {

struct PlaceClient {
  uint64_t held = 0;  // places
  uint64_t waiting = 0;
  // The waiting requests, in order.
  Places::Waiter* first = nullptr;
  Places::Waiter* last = nullptr;
  // If some wait: the position in the heap, and among clients with equally many places.
  size_t position = 0;
  uint64_t ticket = 0;
};

class WaiterQueue {
 public:
  using Waiter = Places::Waiter;

  // The requests of all clients that wait.
  bool empty() const { return order_.empty(); }
  size_t size() const { return size_; }

  uint64_t HeldBy(const Waiter& waiter) const;
  uint64_t WaitingOf(const Waiter& waiter) const;

  void Append(Waiter& waiter);
  // Does nothing if it does not wait.
  void Remove(Waiter& waiter);
  // The next in order. Only if somebody waits.
  Waiter& front() { return *order_.front()->first; }
  Waiter& TakeFirst();

  // The waiter, which does not wait, has a place from now on, until Release.
  void Hold(Waiter& waiter);
  void Release(Waiter& waiter);

  // Whether the waiter is limited to its client's part.
  static bool IsLimited(const Waiter& waiter) { return waiter.key_.has_value(); }

 private:
  const PlaceClient* Find(const Waiter& waiter) const;
  PlaceClient& Ensure(Waiter& waiter);
  // Forgets the client if this was its last request.
  void Detach(Waiter& waiter);

  // ---- The heap of clients with waiting requests.
  bool IsBefore(const PlaceClient& a, const PlaceClient& b) const;
  void Insert(PlaceClient& client);
  void Erase(PlaceClient& client);
  // Restores the heap's order after the client's number of places or its ticket has changed.
  void Reorder(PlaceClient& client);
  void Put(PlaceClient& client, size_t position);

  PlaceClient nobody_;  // of the requests without a client
  absl::flat_hash_map<uint64_t, PlaceClient*> clients_;
  base::Pool<PlaceClient> pool_;
  std::vector<PlaceClient*> order_;  // a heap
  uint64_t next_ticket_ = 0;
  size_t size_ = 0;
};

}  // namespace headgate::proxy
