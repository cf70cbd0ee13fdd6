// A pool whose capacity its clients share fairly, cycle by cycle. A state machine without a clock.
//
//   cycle 1     each client has an even share
//   cycle n     shares follow what each client asked for in cycle n − 1 (Divide)
//   new client  the shares are recomputed at once, as if it had asked for an even share
//
// In each cycle the pool admits at most its capacity in total, however often the shares are
// recomputed. Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "headgate/algorithm/decision.h"
#include "headgate/algorithm/fair_share.h"
#include "headgate/base/status.h"
#include "headgate/base/time.h"

namespace headgate::algorithm {

// The effect of a client that first appears in the middle of a cycle.
enum class OnNewClient : uint8_t {
  kRedivide,  // the shares change; what was used stays counted, and the cycle still ends at its
              // original time
  kRestart,   // a new cycle begins. Trusts its clients: each new name renews everyone's allowance
};

struct FairShareOptions {
  uint64_t capacity = 0;  // per cycle; at least 1
  // A longer cycle makes shares steadier, a shorter one makes them adapt sooner.
  base::Duration cycle{0};
  Ratio reservation{};  // the part of its even share that an idle client keeps
  OnNewClient on_new_client = OnNewClient::kRedivide;
  // With kRestart, no cycle is shorter than this; 0 means a tenth of `cycle`.
  base::Duration minimum_cycle{0};
  uint32_t clients_max = 1024;  // further clients are refused

  // InvalidArgument with a message for the person who configured these options.
  absl::Status Validate() const;
};

struct FairShareRequest {
  std::string_view client;
  Cost cost = 1;        // 0 only reads: it does not register the client
  uint32_t weight = 1;  // clamped to its bounds; a changed weight applies from the next division on
};

class FairSharePool {
 public:
  static absl::StatusOr<FairSharePool> Make(const FairShareOptions& options);

  // `limit` is the client's capacity in this cycle. The retry_after of a denial is the rest of the
  // cycle, because the client's next share depends on all clients. It is kNever if the cost exceeds
  // the capacity of the whole pool.
  Decision Decide(const FairShareRequest& request, base::Instant now);

  size_t client_count() const { return clients_.size(); }
  // Requests denied because the pool already has `clients_max` clients.
  uint64_t refused_clients() const { return refused_clients_; }

 private:
  struct Client {
    std::string name;
    uint32_t weight = 1;
    uint64_t capacity = 0;
    uint64_t used = 0;                      // admitted in this cycle
    uint64_t demand = 0;                    // asked for in this cycle, admitted or not
    std::optional<uint64_t> demand_last{};  // asked for in the last cycle; empty for a new client
  };

  explicit FairSharePool(const FairShareOptions& options) : options_(options) {}

  // Ends all cycles that are over at `now`.
  void Advance(base::Instant now);
  void BeginCycle(base::Instant start);
  void Redivide();
  // Returns null if there are too many clients.
  Client* Register(const FairShareRequest& request, base::Instant now);
  Decision PeekUnregistered(base::Instant now) const;
  base::Duration Left(base::Instant now) const { return cycle_start_ + options_.cycle - now; }

  FairShareOptions options_;
  std::vector<Client> clients_;                            // in order of arrival
  absl::flat_hash_map<std::string, size_t> client_index_;  // by name
  base::Instant cycle_start_{0};
  base::Instant seen_{0};  // the latest time of any decision; an earlier `now` is treated as this
  uint64_t used_ = 0;      // admitted in this cycle, over all clients
  uint64_t refused_clients_ = 0;
};

}  // namespace headgate::algorithm
