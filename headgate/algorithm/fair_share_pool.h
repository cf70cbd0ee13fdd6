// A pool whose capacity is shared fairly by the clients that come, cycle after cycle. A state
// machine without a clock.
//
//   cycle 1     each client has an even share
//   cycle n     shares follow what each asked for in cycle n − 1 (Divide)
//   new client  the shares are computed anew at once, as if it had asked for an even share
//
// In every cycle the pool admits at most its capacity in all, whatever was divided how often. Not
// thread-safe.
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

// What a client does that is seen for the first time in the middle of a cycle.
enum class OnNewClient : uint8_t {
  kRedivide,  // the shares change; what was used in this cycle counts on, and the cycle ends when
              // it was due
  kRestart,   // a new cycle begins. Trusts its clients: each new name renews everyone's allowance
};

struct FairShareOptions {
  uint64_t capacity = 0;    // per cycle; 1 or more
  base::Duration cycle{0};  // longer makes shares steadier, shorter makes them follow sooner
  Ratio reservation{};      // the part of its even share that a client keeps while it is idle
  OnNewClient on_new_client = OnNewClient::kRedivide;
  base::Duration minimum_cycle{0};  // kRestart cuts no cycle shorter; 0 is a tenth of the cycle
  uint32_t clients_max = 1024;      // clients beyond it are refused

  // InvalidArgument with a sentence for the person who wrote the numbers.
  absl::Status Validate() const;
};

struct FairShareRequest {
  std::string_view client;
  Cost cost = 1;        // 0 looks: it makes nobody a client
  uint32_t weight = 1;  // brought into its bounds; a new one counts from the next division on
};

class FairSharePool {
 public:
  static absl::StatusOr<FairSharePool> Make(const FairShareOptions& options);

  // `limit` is the client's capacity in this cycle. A denial's retry_after is the rest of the
  // cycle: what the client has in the next one depends on everybody. kNever where the cost is more
  // than the whole pool has.
  Decision Decide(const FairShareRequest& request, base::Instant now);

  size_t client_count() const { return clients_.size(); }
  // Requests denied because the pool has `clients_max` clients already.
  uint64_t refused_clients() const { return refused_clients_; }

 private:
  struct Client {
    std::string name;
    uint32_t weight = 1;
    uint64_t capacity = 0;
    uint64_t used = 0;                      // admitted in this cycle
    uint64_t demand = 0;                    // asked for in this cycle, admitted or not
    std::optional<uint64_t> demand_last{};  // and in the last one, unless it is new
  };

  explicit FairSharePool(const FairShareOptions& options) : options_(options) {}

  // Ends the cycles that are over at `now`.
  void Advance(base::Instant now);
  void BeginCycle(base::Instant start);
  void Redivide();
  // Null where there are too many clients.
  Client* Register(const FairShareRequest& request, base::Instant now);
  Decision LookOfAStranger(base::Instant now) const;
  base::Duration Left(base::Instant now) const { return cycle_start_ + options_.cycle - now; }

  FairShareOptions options_;
  std::vector<Client> clients_;                            // in the order in which they came
  absl::flat_hash_map<std::string, size_t> client_index_;  // by name
  base::Instant cycle_start_{0};
  base::Instant seen_{0};  // the latest time of any decision; an earlier one counts as this
  uint64_t used_ = 0;      // admitted in this cycle, over all clients
  uint64_t refused_clients_ = 0;
};

}  // namespace headgate::algorithm
