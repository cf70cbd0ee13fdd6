// The effect that fair share would have had on the requests of a log: the same pool as the
// sidecar's (algorithm/fair_share_pool.h), in the time of the log.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/algorithm/fair_share_pool.h"
#include "headgate/base/status.h"
#include "headgate/base/time.h"

namespace headgate::replay {

// Clients beyond this number are summed.
inline constexpr size_t kPlannedClientsMax = 100'000;

struct ClientPlan {
  std::string name{};  // empty: the requests without a client's id
  uint64_t requests = 0;
  uint64_t refused = 0;
  uint64_t most_in_cycle = 0;  // requests in the client's busiest cycle
};

struct SharePlan {
  uint64_t requests = 0;
  uint64_t refused = 0;
  uint64_t late = 0;           // older than the request before them; taken as if at the same time
  uint64_t most_in_cycle = 0;  // requests of all clients, in the busiest cycle
  uint64_t cycles = 0;         // with requests
  uint64_t cycles_refusing = 0;
  // The smallest capacity that 99 of 100 cycles with requests would not have exceeded.
  uint64_t capacity_for_most = 0;
  base::Instant first{0};
  base::Instant last{0};
  std::vector<ClientPlan> clients{};  // by requests, most first; then by name
  ClientPlan others{};  // the clients beyond kPlannedClientsMax, without most_in_cycle
};

// The treatment of a request that names no client.
enum class Anonymous : uint8_t { kRefused, kShared };

class SharePlanner {
 public:
  // InvalidArgument if the options are not valid.
  static absl::StatusOr<SharePlanner> Make(const algorithm::FairShareOptions& options,
                                           Anonymous anonymous = Anonymous::kRefused);

  void Take(std::string_view client, base::Instant at, uint32_t weight = 1);
  SharePlan Finish();

 private:
  struct Client {
    ClientPlan plan;
    uint64_t in_cycle = 0;
    int64_t cycle = -1;
  };

  SharePlanner(const algorithm::FairShareOptions& options, Anonymous anonymous,
               algorithm::FairSharePool pool)
      : cycle_(options.cycle), anonymous_(anonymous), pool_(std::move(pool)) {}

  // Counts the requests of this client.
  ClientPlan& PlanOf(std::string_view client, int64_t cycle);
  void EndCycle();

  base::Duration cycle_;
  Anonymous anonymous_;
  algorithm::FairSharePool pool_;
  SharePlan plan_;
  std::map<std::string, Client, std::less<>> clients_;
  int64_t number_ =
      -1;  // the number of the current cycle; the first request of the log is in cycle 0
  uint64_t in_cycle_ = 0;
  uint64_t refused_in_cycle_ = 0;
  std::vector<uint64_t> loads_;  // of the cycles with requests
};

}  // namespace headgate::replay
