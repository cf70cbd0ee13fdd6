// Which clients of a pool have series of their own in metrics, and what the counters show.
//
// The clients with the largest demands change from cycle to cycle, while a counter must not go
// back. So each request counts in one series forever: in the series of its client, if the client
// has one before and after the request, or else in the series of the rest. The sum of all series
// grows as the counts of the pool do.
//
//   joins the pool, has a series     the series begins with all its requests
//   leaves the largest               its series stops; requests count in the rest
//   comes back to the largest        its series goes on with the value that it had
//   leaves the pool, and comes back  its series begins anew, as that of a new client
//
// The class remembers only clients that are in the pool. Not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "headgate/share/pool_snapshot.h"

namespace headgate::share {

class ClientSeries {
 public:
  // At most `count` clients have series of their own.
  explicit ClientSeries(size_t count) : count_(count) {}

  // Keeps these clients in `snapshot`, and adds up the others, as KeepFirst does. `allowed` and
  // `rejected` of the clients, and of `others`, become the values of their series. Snapshots come
  // in the order in which they were taken.
  void Follow(PoolSnapshot& snapshot);

 private:
  // One value for each outcome: allowed, rejected.
  using Values = std::array<uint64_t, 2>;
  struct Client {
    Values seen{};   // its counts in the last snapshot
    Values shown{};  // by its series
    bool is_shown = false;
    uint64_t round = 0;  // of the last snapshot that had it
  };

  static Values ValuesOf(const algorithm::FairShareCounts& counts);
  void FollowKnown(const PoolSnapshot& snapshot, Values& left);
  void BeginNew(const PoolSnapshot& snapshot, Values& left);

  const size_t count_;
  absl::flat_hash_map<std::string, Client> clients_;
  std::vector<size_t> new_;  // their indexes in the snapshot
  Values total_{};           // of the pool, in the last snapshot
  Values gone_{};            // shown by series that have ended
  uint64_t round_ = 0;
};

}  // namespace headgate::share
