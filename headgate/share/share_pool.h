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
// A limit of requests in flight is the same for all clients, so a storm, or requests that take
// long, would fill it for everybody. So some requests are let in above the limit:
//
//   part       the client has fewer requests in flight than its part of the limit (in_flight.h). Up
//              to three times the limit
//   on pace    the client's share of the cycle so far is not used up (FairSharePool::IsOnPace).
//              Up to half as much again as the limit
//   behind     the client has had clearly less than its even part of what was admitted
//              (IsBehind). Up to three times the limit, also while the capacity is wrong or
//              unknown, and while the base latency is measured
//
// A request that takes much longer than usual is no longer counted (capacity/patience.h).
//
// A call takes a lock for about 0.1 µs. Some calls divide the pool, which takes up to 0.5 µs for
// each of its clients: the first one in a cycle, the first one of a new client (up to 256 clients),
// and a call that finds another capacity. The first call in each 1/64 of a cycle computes the
// amounts that are kept for the clients, which takes 0.04 µs for each client.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <deque>
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
#include "headgate/share/in_flight.h"
#include "headgate/share/pool_snapshot.h"
#include "headgate/share/share_options.h"
#include "headgate/share/verdict.h"

namespace headgate::share {

class SharePool {
 public:
  static absl::StatusOr<std::unique_ptr<SharePool>> Make(const ShareOptions& options);

  // Decides about one request. An empty `client_id` means that it has none. A cost of 0 is a peek:
  // it takes nothing, and the caller must not forward the request.
  PoolAnswer Admit(std::string_view client_id, algorithm::Cost cost, base::Instant now);

  // Counts a request that is sent without asking the pool: it is in flight, but is not demand of a
  // client. Returns its number.
  uint64_t LetThrough(base::Instant now);

  struct End {
    uint64_t number = 0;  // of an admitted request
    capacity::RequestEnd outcome = capacity::RequestEnd::kLeft;
    base::Instant sent_at{0};
    // If nothing of the request has reached the upstream, its client gets the cost back.
    bool was_sent = true;
  };
  // An admitted request has the first byte of its answer, or has failed, or is no longer waited for
  // (Outcome::kLeft). Call it exactly once for each admitted request. The upstream may continue to
  // work on a request whose client has left, so such a request stays in flight until
  // CapacityController::WorkTime has passed since it was sent.
  void OnEnd(const End& end, base::Instant now);

  void SetMode(Mode mode);
  Mode mode() const;

  // HandOver returns the state for the pool of the next process, at a restart; that pool calls
  // TakeOver. Requests that the next pool admitted before TakeOver count, too. The running cycle
  // continues with the settings it began with, but the new capacity applies to the rest of it.
  // InvalidArgument if the state is not valid.
  HandedPool HandOver(base::Instant now);
  absl::Status TakeOver(const HandedPool& handed, base::Instant now);

  // Copies the state into `snapshot`, whose memory is used again. Takes the lock for about 50 ns
  // for each client.
  void TakeSnapshot(base::Instant now, PoolSnapshot& snapshot);

 private:
  SharePool(const ShareOptions& options, algorithm::FairSharePool pool,
            std::optional<capacity::CapacityController> controller);

  // ---- With the lock
  PoolAnswer Judge(std::string_view client, algorithm::Cost cost, uint32_t weight,
                   base::Instant now);
  // The room for one more request in flight. Above the limit there is room only for clients that
  // have less than others.
  enum class Room : uint8_t { kNone, kBelow, kAbove };
  Room RoomFor(std::string_view client, algorithm::Cost cost, uint32_t weight, base::Instant now);
  bool MayExceed(Reason reason, base::Instant now);
  uint64_t Enter(const InFlight::Request& request, base::Instant now);
  void DropLong(base::Instant now);
  void EndAbandoned(base::Instant now);
  void CountRefusal(Reason reason, base::Instant now);
  void FollowCapacity(base::Instant now);
  void TakeOverShares(algorithm::FairSharePool taken, base::Instant now);

  const ShareOptions options_;
  const bool has_controller_;
  const ClientNames names_;

  mutable std::mutex mutex_;
  algorithm::FairSharePool pool_;
  std::optional<capacity::CapacityController> controller_;
  InFlight in_flight_;
  // Requests that no client waits for any more, but that the upstream may still work on.
  struct Abandoned {
    uint64_t number = 0;
    base::Instant until{0};
  };
  static constexpr size_t kAbandonedMax = size_t{1} << 16;  // further ones leave at once
  std::deque<Abandoned> abandoned_;
  base::Instant seen_{0};  // the latest time of a request that was sent
  bool is_capacity_known_;
  Mode mode_;
  Refusals refusals_;
  uint64_t counted_only_ = 0;
  algorithm::FairShareCounts earlier_;  // of the pool that TakeOver has replaced
};

}  // namespace headgate::share
