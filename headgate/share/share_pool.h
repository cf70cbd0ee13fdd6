// The pool that all event loops of a sidecar share among its clients, and the guard of its
// upstream.
//
//   fixed capacity     each client may use its share of each cycle (algorithm/fair_share_pool.h)
//   capacity: auto     the same, with a capacity that is found (capacity/capacity_controller.h).
//                      In addition the requests in flight are limited
//
// While no capacity is found, only the requests in flight are limited. When the first one is found,
// a new cycle begins, with shares that follow the demands so far.
//
// A limit of requests in flight is the same for all clients, so a storm would fill it for
// everybody. So some requests are let in above the limit:
//
//   on pace    the client's share of the cycle so far is not used up (FairSharePool::IsOnPace).
//              Up to half as much again as the limit
//   behind     the client has had clearly less than its even part of what was admitted
//              (IsBehind). Up to three times the limit, also while the capacity is wrong or
//              unknown, and while the base latency is measured
//
// A call takes a lock for about 0.1 µs. The first one in a cycle, those of new clients, and those
// that find another capacity divide the pool, which takes about 0.1 µs for each client that it has.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "headgate/algorithm/decision.h"
#include "headgate/algorithm/fair_share_pool.h"
#include "headgate/base/status.h"
#include "headgate/base/time.h"
#include "headgate/capacity/capacity_controller.h"
#include "headgate/share/client_names.h"
#include "headgate/share/handed_pool.h"
#include "headgate/share/pool_snapshot.h"
#include "headgate/share/share_options.h"
#include "headgate/share/verdict.h"

namespace headgate::share {

class SharePool {
 public:
  static absl::StatusOr<std::unique_ptr<SharePool>> Make(const ShareOptions& options);

  // Decides about one request. An empty `client_id` means that it has none. With a cost of 0 it
  // only looks, and must not be sent.
  Verdict Admit(std::string_view client_id, algorithm::Cost cost, base::Instant now);

  // A request is sent without being asked about: it is in flight, but no demand of its client.
  void LetThrough(base::Instant now);

  // A request that was admitted has its first byte, or has failed, or is no longer waited for
  // (Outcome::kLeft; also if it was not sent after all). Exactly once for each admitted request. It
  // was sent at `sent_at`, or admitted if it was never sent. Does nothing with a fixed capacity.
  void OnEnd(capacity::Outcome outcome, base::Instant sent_at, base::Instant now);
  // Whether OnEnd is needed.
  bool counts_in_flight() const { return has_controller_; }

  void SetMode(Mode mode);
  Mode mode() const;

  // For the pool of the next process, at a restart: the state, and taking it over. Requests that
  // the next pool has admitted before count, too. A cycle that has begun goes on with its settings,
  // but another capacity is in force for the rest of it. InvalidArgument if the state is not one.
  HandedPool HandOver(base::Instant now);
  absl::Status TakeOver(const HandedPool& handed, base::Instant now);

  // Copies the state into `snapshot`, whose memory is used again. Takes the lock for about 50 ns
  // for each client.
  void TakeSnapshot(base::Instant now, PoolSnapshot& snapshot);

 private:
  SharePool(const ShareOptions& options, algorithm::FairSharePool pool,
            std::optional<capacity::CapacityController> controller);

  // ---- With the lock
  Verdict Judge(std::string_view client, algorithm::Cost cost, uint32_t weight, base::Instant now);
  bool HasRoom(std::string_view client, algorithm::Cost cost, base::Instant now);
  bool MayExceed(Reason reason, base::Instant now);
  void CountRefusal(Reason reason, base::Instant now);
  void FollowCapacity(base::Instant now);
  void TakeOverShares(algorithm::FairSharePool taken, base::Instant now);

  const ShareOptions options_;
  const bool has_controller_;
  const ClientNames names_;

  mutable std::mutex mutex_;
  algorithm::FairSharePool pool_;
  std::optional<capacity::CapacityController> controller_;
  bool is_capacity_known_;
  Mode mode_;
  Refusals refusals_;
  uint64_t counted_only_ = 0;
  algorithm::FairShareCounts earlier_;  // of the pool that TakeOver has replaced
};

}  // namespace headgate::share
