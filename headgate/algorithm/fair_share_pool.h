// A pool whose capacity its clients share fairly, cycle by cycle. A state machine without a clock.
//
//   cycle 1     each client has an even share
//   cycle n     shares follow what each client asked for in cycle n − 1 (Divide)
//   new client  the shares are recomputed at once, as if it had asked for an even share
//   within      what a client may take at a moment: its even share, and more if the pool keeps
//               enough for the others (fair_share_lending.cc)
//   reclaim     a client that is denied while its own is lent out ends the cycle early, if the
//               options say so. The next cycle ends when this one was due
//
// In each cycle the pool admits at most its capacity in total, however often the shares are
// recomputed. An early end (reclaim) gives a client its own share, and renews the allowance of no
// other client: each client's use is counted until the time when the cycle was due. Only the pool's
// total starts again, as far as shares have grown. So from one due end to the next, the same
// clients get about twice the capacity at most, if everything that is lent is used twice.
//
// A decision for a known client does not allocate, except the first one in a cycle, which divides
// the pool. Definition: docs/reference/algorithms.md. Not thread-safe (headgate/share is).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "headgate/algorithm/decision.h"
#include "headgate/algorithm/fair_share.h"
#include "headgate/algorithm/fair_share_options.h"
#include "headgate/algorithm/fair_share_view.h"
#include "headgate/base/status.h"
#include "headgate/base/time.h"

namespace headgate::algorithm {

struct FairShareRequest {
  std::string_view client;
  Cost cost = 1;        // 0: a peek, which does not register the client
  uint32_t weight = 1;  // clamped to its bounds; a changed weight applies from the next division on
  // False if the request is refused for another reason. It then counts as demand and gets the
  // decision that the pool would have made, but takes nothing from the client's share.
  bool takes = true;
};

class FairSharePool {
 public:
  // A cycle has this many steps. Loans change from step to step.
  static constexpr uint32_t kSteps = 64;

  static absl::StatusOr<FairSharePool> Make(const FairShareOptions& options);

  // `limit` is the client's capacity in this cycle, or the amount that it may use, whichever is
  // larger. The retry_after of a denial is the rest of the cycle if the pool is used up. Otherwise
  // it is a tenth of the cycle, because the amounts kept for others are lent as time passes. It is
  // kNever if the cost exceeds the capacity of the whole pool.
  Decision Decide(const FairShareRequest& request, base::Instant now);

  // Counts a denied request that was sent nevertheless, for example to see whether the capacity has
  // grown. It counts as used by its client, but takes nothing from the other clients.
  void CountSentAnyway(std::string_view client, Cost cost);

  // Whether a request is within its client's share, prorated to the time since the last full cycle
  // ended. All such requests together come no faster than the capacity, so they may pass while the
  // requests of a storm must wait. False for an unknown client.
  bool IsOnPace(std::string_view client, Cost cost, base::Instant now);

  // Whether at most three quarters of the client's even part of the recent admissions were its own.
  // A client may send about 8 requests at once and is still behind. Unlike IsOnPace, the answer
  // does not depend on the capacity, so it is right while the capacity is wrong or unknown. False
  // for an unknown client.
  bool IsBehind(std::string_view client, Cost cost) const;

  // Changes the capacity at `now`, and divides the pool again. This cycle gets the old capacity for
  // the time that has passed and the new capacity for the rest. `capacity` is clamped to its
  // bounds.
  void SetCapacity(uint64_t capacity, base::Instant now);
  // Begins a new cycle at `now`, for a pool whose capacity was not known before. Its shares follow
  // the demands so far, scaled to a full cycle.
  void BeginAnew(uint64_t capacity, base::Instant now);

  // Ends the cycles that are over at `now`; every decision does so too. Returns `now`, or the
  // latest time seen if that is later.
  base::Instant Advance(base::Instant now);

  // ---- For instances that share one pool and spend parts of it (headgate/share)

  // Counts demand of a client at another instance. The parts that it uses are taken by TakePart.
  // False: the client is new, and there are too many clients.
  bool AddDemand(const FairShareRequest& request, base::Instant now);
  // Adds demand of the full cycle that has just ended and that is reported only now, and divides
  // this cycle again. Ignores unknown clients.
  void AddLateDemand(std::span<const FairShareRequest> requests);
  // Another instance has denied a request of this client that may be within its even share: ends
  // the cycle early if that is so (Reclaim::kAtOnce).
  void ReclaimFor(std::string_view client, base::Instant now);
  // Takes up to `want` from the amount that the client may still use; returns the amount taken.
  uint64_t TakePart(std::string_view client, uint64_t want);
  // Gives back the unspent rest of a part that was taken in the cycle with this number. If that
  // cycle ended early, only the client's use is corrected, because the total of the pool was reset.
  // If a full cycle has ended since, nothing changes.
  void ReturnPart(std::string_view client, uint64_t amount, uint64_t cycle);
  // Counts an amount that was admitted without asking this pool as used, even beyond the client's
  // share.
  void ChargePart(std::string_view client, uint64_t amount);
  // Another instance has denied requests of this client, and told it to wait as Decide does.
  void TellDenied(std::string_view client, base::Instant now);
  // All clients together may still use this much in this cycle. If that is not 0, a client that is
  // denied waits for this time (Decide).
  uint64_t room() const { return Room(); }
  base::Duration wait() const;
  // How much the client may use now; 0 if it is unknown.
  uint64_t RoomFor(std::string_view client) const;
  // The number of the first cycle after the last full end, and of the first cycle after the full
  // end before that one. Cycles between two full ends share demands and use.
  uint64_t full_since() const { return full_since_; }
  uint64_t full_before() const { return full_before_; }

  // Adds this to all times, for a pool that comes from another clock. False, and nothing changes,
  // if a time would leave its bounds.
  bool ShiftTimes(base::Duration by);
  // Sets the settings that apply from the next full cycle on. They must be valid.
  void SetOptions(const FairShareOptions& options);
  // The settings that apply from the next full cycle on.
  FairShareOptions options_next() const;
  const FairShareOptions& options() const { return options_; }  // with the capacity of this cycle

  uint64_t capacity() const { return options_.capacity; }  // in this cycle
  size_t client_count() const { return clients_.size(); }
  ClientView client(size_t index) const;  // in order of arrival
  const CycleView& cycle() const { return cycle_; }
  const FairShareCounts& counts() const { return counts_; }
  // The cost of requests denied because the pool already has `clients_max` clients, and none of
  // them was silent.
  uint64_t refused_clients() const { return refused_clients_; }
  // Clients that have made way for new ones.
  uint64_t clients_replaced() const { return clients_replaced_; }
  // Clients that have left because they made no request for a time.
  uint64_t clients_left() const { return clients_left_; }

 private:
  // The demand in each eighth of the second half of a cycle.
  static constexpr uint32_t kLateParts = 8;
  using LateDemand = std::array<uint64_t, kLateParts>;

  // The last answer to a client, if it has not asked since.
  enum class Told : uint8_t { kNothing, kNoneLeft, kDenied };

  struct Client {
    std::string name;
    uint32_t weight = 1;
    uint64_t even = 0;     // its even share at the last division, rounded down
    uint64_t even_up = 0;  // the same, rounded up
    uint64_t capacity = 0;
    uint64_t used = 0;         // admitted since the last full cycle ended
    uint64_t demand = 0;       // asked for in the same time, admitted or not
    uint64_t demand_last = 0;  // asked for in the last full cycle
    // Until the cycle is due, the client's demand counts as at least its even share. True for a new
    // client, a client that reclaims its share, and a client that asked for this much before an
    // early end.
    bool counts_at_least_even = true;
    base::Duration idle{0};      // without a request, at the end of the last full cycle
    base::Instant asked{0};      // its last request
    FairCredit credit = 0;       // before the division of this cycle (Divide)
    FairCredit credit_next = 0;  // after it
    // ---- For loans (fair_share_lending.cc). Parts of requests are in units of 1/kSteps
    uint64_t claim = 0;     // see fair_share_lending.cc; in parts
    uint64_t want = 0;      // its likely demand in this cycle; in parts
    uint64_t kept = 0;      // the amount kept for the rest of the cycle, in parts; kept_ is the sum
                            // over all clients
    uint64_t late = 0;      // its usual demand after the beginning of a cycle, in parts
    LateDemand late_now{};  // in this cycle, by the time in it, in requests
    LateDemand late_at{};  // the average over the cycles, in which each cycle weighs as much as all
                           // before it; in parts
    int64_t pace = 0;      // the client's own pace, in parts; see pace_
    // Likely demands in the rest of the cycle, at the beginning of this step.
    uint64_t early = 0;
    uint64_t late_likely = 0;  // in parts
    int64_t pace_max = 0;
    uint32_t cycles = 0;      // with a request, before this one; at most kLateCycles
    bool asked_once = false;  // in its first cycle, and not since
    // The client waits as long as it is told, so its requests do not show how much it wants.
    bool obeys = false;
    bool came_back = false;  // asked again in this cycle after such a wait
    bool insisted = false;   // asked again in this cycle before the end of such a wait
    Told told = Told::kNothing;
    base::Instant told_at{0};
    base::Instant told_until{0};
    // The client's position on the clock turn_: its admitted requests, divided by its part of the
    // pool.
    uint64_t turn = 0;
    FairShareCounts counts{};
  };

  // The usual late demand is an average over about this many cycles.
  static constexpr uint32_t kLateCycles = 8;

  friend class FairShareState;  // the bytes of a pool (fair_share_state.h)

  explicit FairSharePool(const FairShareOptions& options)
      : options_(options), capacity_next_(options.capacity) {}

  Client* Find(std::string_view name);
  const Client* Find(std::string_view name) const;
  // Returns null if there are too many clients.
  Client* Register(const FairShareRequest& request, base::Instant now);
  Decision PeekUnregistered(base::Instant now) const;
  uint64_t Room() const { return budget_ - std::min(used_, budget_); }
  void JoinUndivided(Client& client);
  Client* Replace(Client joining);
  uint64_t TurnLength(const Client& client) const;
  void CountTurn(Client& client, Cost cost);
  void BeginBudget(uint64_t budget);
  bool MayReclaim(const Client& client, Cost cost) const;
  void DoReclaim(Client& client, base::Instant now);

  // ---- Loans (fair_share_lending.cc)

  uint64_t RoomOf(const Client& client) const;
  // The client's even share, as a whole number.
  uint64_t OwnOf(const Client& client) const;
  // The client's even share or its claim, whichever is larger.
  uint64_t PartOf(const Client& client) const;
  // The part of `amount` that may be used at once.
  uint64_t AtOnce(uint64_t amount) const;
  uint64_t KeptFor(const Client& client) const;
  uint64_t LateFor(const Client& client) const;
  uint64_t LateRest(const Client& client) const;
  bool SharesMargin(const Client& client) const;
  bool HasLeft(const Client& client) const;
  uint64_t WantOf(const Client& client) const;
  void FindLateSum();
  void FindClaims();
  void ExpectAll();
  void Expect(Client& client);
  void Keep(Client& client);
  void KeepAll();
  void Use(Client& client, uint64_t amount);
  void GiveBack(Client& client, uint64_t amount);
  void FollowTime(base::Instant now);
  void Refill(uint32_t steps);
  void FindPace();
  void CountLate(Client& client, Cost cost);
  void EndLate(Client& client);
  void LearnLate(Client& client);
  // The time until the client may take more, as far as it is known.
  base::Duration WaitOf(Cost cost, base::Instant now) const;
  void HearFrom(Client& client, base::Instant now);
  void Tell(Client& client, const Decision& decision, base::Instant now);

  // ---- Cycles

  // The changes at the beginning of a full cycle.
  void BeginFull();
  // Ends the cycle at `end`, keeps its demands, and begins the next one. The caller divides it.
  void EndFull(CycleEnd reason, base::Instant end);
  // Ends the cycle because of a reclaim. Use and demand stay counted.
  void EndEarly();
  // Cycles in which nobody asked for anything.
  void SkipCycles(int64_t count);
  void CountEnd(CycleEnd reason, base::Instant end, uint64_t count);
  void CountIdle(base::Duration length);
  void RemoveLeavers();
  void FindWeights();
  void FindEvenShares();
  void Redivide();
  // floor(amount·time/cycle), where time is at most a cycle.
  uint64_t PartOfCycle(uint64_t amount, base::Duration time) const;
  base::Duration Left(base::Instant now) const { return cycle_.end - now; }

  FairShareOptions options_;  // with the capacity of this cycle
  uint64_t capacity_next_;
  std::optional<FairShareOptions> options_next_{};         // their capacity is capacity_next_
  std::vector<Client> clients_;                            // in order of arrival
  absl::flat_hash_map<std::string, size_t> client_index_;  // by name
  base::Instant seen_{0};  // the latest time of any decision; an earlier `now` is treated as this
  CycleView cycle_;
  uint64_t full_since_ = 1;
  uint64_t full_before_ = 1;
  base::Instant due_{0};  // cycle_.end, unless an early end is planned
  // All that was admitted since the last full cycle, in units of 1/kTurnUnit, as a clock for
  // IsBehind. This is the virtual time of fair queueing.
  uint64_t turn_ = 0;
  uint64_t weights_ = 0;  // of all clients, at the last division
  // How much all clients together may use in this cycle (at most the capacity), and how much they
  // have used. These are two numbers, so that a capacity that falls and rises again gives nothing
  // back.
  uint64_t budget_ = 0;
  uint64_t used_ = 0;
  // The time since the last full cycle began, in steps of 1/kSteps of a cycle.
  uint32_t step_ = 0;
  base::Instant step_end_{0};  // 0: not known
  uint64_t kept_ = 0;          // for all clients, in units of 1/kSteps
  uint64_t late_sum_ = 0;  // the sum of the late demands that are still to come, in the same units
  bool needs_division_ = false;  // clients have joined since the last one
  // The amount that may be used at once; negative after clients have used their own share in a
  // burst.
  int64_t pace_ = 0;
  int64_t pace_max_ = 0;
  bool is_paced_ = false;
  FairShareCounts counts_;
  uint64_t refused_clients_ = 0;
  uint64_t clients_left_ = 0;
  uint64_t clients_replaced_ = 0;
};

}  // namespace headgate::algorithm
