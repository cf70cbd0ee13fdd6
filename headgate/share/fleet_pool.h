// The part of one instance in a pool that a whole fleet shares. All event loops of the instance ask
// it; one of them carries out its rounds with the store (share/fleet/fleet_rounds.h).
//
//   Admit ──▶ the client's part: spent, without the store
//         └─▶ no part left: ask again after the next round, which takes one
//   a round reports what was asked for, gives back what was not used, and takes parts
//
// A part is used in the pool from the moment when it is taken. It ends with the cycle in which it
// was taken, as this instance knows it. The rest of it is lost then.
//
// Without the store the instance has a pool of its own, with an even part of the capacity. Requests
// that it has admitted since its cycle began count in this pool too, and those that the pool has
// admitted since its own cycle began are charged when the store is back. So neither change gives a
// fresh allowance.
//
// Thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "headgate/algorithm/fair_share_pool.h"
#include "headgate/base/status.h"
#include "headgate/base/time.h"
#include "headgate/share/client_names.h"
#include "headgate/share/fleet_round.h"
#include "headgate/share/in_flight.h"
#include "headgate/share/pool_snapshot.h"
#include "headgate/share/share_options.h"
#include "headgate/share/verdict.h"

namespace headgate::share {

// How a request asks.
struct Asking {
  // 0 at first; then that of the last verdict.
  uint64_t ticket = 0;
  // The request cannot wait (any longer): the verdict is final.
  bool is_last = false;
};

// Numbers since the instance began.
struct FleetFigures {
  uint64_t early_denials = 0;  // denials of requests for which the pool might have had room
  uint64_t waited = 0;         // requests that asked again
  uint64_t expired = 0;        // units of parts that were not spent when their cycle ended
  uint64_t alone = 0;          // decisions without the store
  bool is_alone = false;
};

// The state of the pool after a round that was written.
struct FleetState {
  algorithm::FairSharePool pool;
  uint64_t generation = 0;
  base::Instant cycle_end{0};  // on the clock of the requests
};

class FleetPool {
 public:
  // InvalidArgument with ShareOptions::find_capacity, because the pool of a fleet has a fixed
  // capacity.
  static absl::StatusOr<std::unique_ptr<FleetPool>> Make(const ShareOptions& options);

  // Decides about one request, like SharePool::Admit. If the verdict has a ticket, the request
  // should ask again in a moment, with that ticket.
  PoolAnswer Admit(std::string_view client_id, algorithm::Cost cost, Asking asking,
                   base::Instant now);

  // An admitted request, whose number is not 0, has ended. If it was not sent, its client gets the
  // cost back, as long as the cycle lasts.
  void OnEnd(uint64_t number, bool was_sent, base::Instant now);

  void SetMode(Mode mode);
  Mode mode() const;
  void TakeSnapshot(base::Instant now, PoolSnapshot& snapshot);
  FleetFigures figures() const;
  // The number of the cycle whose parts are being spent; 0: it is not known. For tests.
  uint64_t cycle() const;

  // ---- Rounds, on one thread

  // `call` is called, on any thread, when a request waits for a round.
  void OnNeed(std::function<void()> call) { on_need_ = std::move(call); }

  enum class Urgency : uint8_t { kNone, kPaced, kAtOnce };
  // How soon a round should begin, and when the cycle ends, at which time another round is due.
  struct Plan {
    Urgency urgency = Urgency::kNone;
    std::optional<base::Instant> cycle_end{};
  };
  Plan PlanRound(base::Instant now);
  // Returns the report of the next round. Its content counts as reported, unless the round is
  // abandoned.
  FleetReport BeginRound(base::Instant now);
  // Call it when the round was written. `grants` are the result of ApplyRound.
  void EndRound(const FleetReport& report, const std::vector<ClientGrant>& grants, FleetState state,
                base::Instant now);
  // Call it if the round was certainly not written.
  void AbandonRound(const FleetReport& report);
  // The store has not answered for too long, so the instance uses a pool of its own, until the next
  // round is written.
  void GoAlone(uint32_t instances, base::Instant now);
  bool is_alone() const;

 private:
  struct Client {
    uint32_t weight = 1;
    bool is_known = false;     // to the pool, as last told
    uint64_t limit = 0;        // its capacity, as last told
    uint64_t part = 0;         // may be spent in this cycle
    uint64_t admitted = 0;     // in this cycle, here
    uint64_t room = 0;         // left in the pool after the last round
    bool is_told = false;      // whether `room` and `refused` are of this cycle
    base::Instant told_at{0};  // the time of that round
    bool refused = false;      // the pool has too many clients
    // These are not reported yet (ClientReport).
    uint64_t demand = 0;
    uint64_t late = 0;
    uint64_t need = 0;
    uint64_t unmet = 0;
    uint64_t charge = 0;
    uint64_t returned = 0;
    uint64_t returned_cycle = 0;
    // The part of the admissions in the first cycle of alone_ that the shared pool has counted.
    uint64_t known = 0;
    // The part of `need` for requests that have passed already, in Mode::kPassthrough.
    uint64_t owed = 0;
    uint64_t expected = 0;  // requests in the time of kHorizon, in units of 1/kExpectedUnit
    algorithm::FairShareCounts counts{};
  };

  FleetPool(const ShareOptions& options, algorithm::FairSharePool pool);

  // ---- Requests, with the lock. `needs_round` becomes true if one should begin at once.

  PoolAnswer Judge(std::string_view name, algorithm::Cost cost, Asking asking, base::Instant now,
                   bool& needs_round);
  PoolAnswer JudgeAlone(std::string_view name, algorithm::Cost cost, base::Instant now);
  PoolAnswer Defer(Client& client, algorithm::Cost cost, Asking asking, PoolAnswer verdict);
  PoolAnswer Peek(std::string_view name, base::Instant now) const;
  PoolAnswer Describe(const Client& client, base::Instant now) const;
  // Counts the decision. A refused request passes nevertheless in Mode::kPassthrough.
  PoolAnswer Settle(Client* client, algorithm::Cost cost, PoolAnswer verdict);
  // The number of the cycle in which parts are spent. While this instance is alone, the number
  // differs from all numbers of the shared pool.
  uint64_t SpentCycle() const;
  // Null if there are too many.
  Client* EnsureClient(std::string_view name);
  base::Duration LeftOfCycle(base::Instant now) const;
  // The time until a client may get more.
  base::Duration WaitOf(algorithm::Cost cost, base::Instant now) const;
  bool IsUsedUp(const Client& client, algorithm::Cost cost, base::Instant now) const;

  // ---- Cycles and rounds, with the lock

  // Ends the cycle if it is over at `now`.
  void Advance(base::Instant now);
  // Drops the parts of this cycle.
  void EndParts();
  // Learns how many requests to expect.
  void Learn(base::Instant now);
  ClientReport ReportOf(const std::string& name, Client& client) const;
  void ReportAlone(FleetReport& report);
  void EndAlone(const FleetReport& report);
  void PayOwed(Client& client, uint64_t owed);
  void FollowPool();
  // Counts the cycles that have ended between the last round and the one that gave `pool`.
  void CountCycles(const algorithm::FairSharePool& pool, bool is_other_pool);

  const ShareOptions options_;
  const ClientNames names_;
  std::function<void()> on_need_;

  mutable std::mutex mutex_;
  Mode mode_;
  absl::flat_hash_map<std::string, Client> clients_;
  InFlight in_flight_;
  FleetState state_;         // of the last round
  bool has_state_ = false;   // whether state_ comes from a round
  bool is_current_ = false;  // the cycle of state_ has not ended yet
  uint64_t late_cycle_ = 0;  // of Client::late
  bool is_idle_ = true;      // no round is planned
  uint64_t rounds_begun_ = 0;
  uint64_t rounds_ended_ = 0;  // the last one whose parts could be spent
  base::Instant last_round_{0};
  std::optional<algorithm::FairSharePool> alone_;
  algorithm::FairShareCounts counts_;
  Refusals refusals_;
  uint64_t counted_only_ = 0;
  // Cycles of the shared pool, by reason, that ended since this instance knows it.
  std::array<uint64_t, algorithm::kCycleEndKinds> cycle_ends_{};
  uint64_t clients_left_ = 0;  // in rounds of this instance
  uint64_t clients_replaced_ = 0;
  FleetFigures figures_;
};

}  // namespace headgate::share
