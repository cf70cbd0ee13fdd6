// The requests that were admitted and have not left the upstream, by client.
//
// A limit of requests in flight is divided among the clients with requests in flight, by their
// weights. For example, of a limit of 18, two clients have a part of 9 each. A client with fewer
// requests than its part may pass although others have filled the limit. So nobody is locked out by
// requests that take long.
//
// A request whose client has hung up keeps its place for as long as the upstream may work on it
// (SharePool::OnEnd). A request that takes much longer than usual waits for something else than a
// worker, as a long poll does. Then it is dropped from the count, but stays in the table until it
// ends.
//
// A name is kept while its client has requests here. Memory is used again. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "headgate/algorithm/decision.h"
#include "headgate/base/hash.h"
#include "headgate/base/pool.h"
#include "headgate/base/time.h"

namespace headgate::share {

class InFlight {
 public:
  struct Request {
    std::string_view client{};
    uint32_t weight = 1;
    // The part of its client's share that it has taken, in the cycle with this number.
    algorithm::Cost taken = 0;
    uint64_t cycle = 0;
    bool is_above = false;  // it was let in above the limit
  };
  struct Left {
    Request request{};  // its name is valid until the next call
    bool counted = true;
  };

  explicit InFlight(const base::HashSecret& secret) : secret_(secret) {}

  // Returns the number of the request, which is not 0. Times must not decrease.
  uint64_t Enter(const Request& request, base::Instant now);
  // Call it once for each number.
  Left Leave(uint64_t number);
  // Drops the oldest request from the count if it has entered before `before`. Returns whether it
  // has.
  bool DropFrom(base::Instant before);

  struct Own {
    size_t requests = 0;    // of this client
    bool has_room = false;  // one more is within its part
  };
  // The requests of a client that count, and its part of `limit`. A client has room for one at
  // least, unless there are more clients than `limit_usual`.
  Own OwnOf(std::string_view client, uint32_t weight, uint32_t limit, uint32_t limit_usual) const;

  size_t size() const { return size_; }
  size_t counted() const { return counted_; }
  size_t above() const { return above_; }  // of them, let in above the limit

 private:
  struct Client {
    uint64_t key = 0;
    std::string name;
    uint32_t weight = 1;
    size_t requests = 0;
    size_t counted = 0;
  };
  struct Entry {
    Client* client = nullptr;  // null: it is free
    base::Instant since{0};
    algorithm::Cost taken = 0;
    uint64_t cycle = 0;
    uint32_t reused = 0;  // how often the entry was used again, so that no number is used twice
    bool counted = false;
    bool is_above = false;
    // Neighbours in the list of requests that count, or in the list of free entries.
    uint32_t previous = 0;
    uint32_t next = 0;
  };
  static constexpr uint32_t kNone = UINT32_MAX;

  uint64_t KeyOf(std::string_view client) const;
  Client& Ensure(const Request& request);
  void Uncount(uint32_t index);

  const base::HashSecret secret_;
  absl::flat_hash_map<uint64_t, Client*> clients_;  // that have requests
  base::Pool<Client> pool_;
  std::vector<Entry> entries_;
  uint32_t oldest_ = kNone;
  uint32_t newest_ = kNone;
  uint32_t free_ = kNone;
  size_t size_ = 0;
  size_t counted_ = 0;
  size_t above_ = 0;
  uint64_t weights_ = 0;  // of the clients with requests that count
};

}  // namespace headgate::share
