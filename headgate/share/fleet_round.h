// One round of an instance that shares a pool with others (fleet_pool.h): its report, the parts
// that it takes, and the change of the pool. Pure.
//
//   report    demands, parts that were not used        the pool of the whole fleet
//   grant     parts, and what is left          ◀────── decides, at the time of the round
//
// Parts are used from the moment when they are taken, so all instances together never admit more
// than the pool has.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headgate/algorithm/fair_share_pool.h"
#include "headgate/base/time.h"

namespace headgate::share {

struct ClientReport {
  std::string name;
  uint32_t weight = 1;
  uint64_t demand = 0;  // since the last round, in the running cycle
  uint64_t late = 0;    // the same, in a cycle that has ended (FleetReport::late_cycle)
  uint64_t need = 0;    // requests that wait for a part
  uint64_t unmet = 0;   // requests that were denied since the last round
  uint64_t ahead = 0;   // a part for requests that are expected
  uint64_t charge = 0;  // admitted without the pool
  uint64_t returned = 0;
  uint64_t returned_cycle = 0;  // in which it was taken
  uint64_t owed = 0;            // the part of `need` for requests that have passed already
};

struct FleetReport {
  uint64_t round = 0;       // the number of the instance's round
  uint64_t generation = 0;  // of the pool that the instance last knew
  uint64_t late_cycle = 0;
  bool in_cycle = false;  // the cycle that the instance last knew has not ended
  // The report comes from the instance's own pool, which decided while the store did not answer.
  bool was_alone = false;
  std::vector<ClientReport> clients;
};

struct ClientGrant {
  uint64_t part = 0;
  uint64_t room = 0;     // the rest that the client may use, over all instances
  bool refused = false;  // the pool has too many clients
};

// Returns a grant for each client of the report. `is_same_pool`: the pool still has the report's
// generation. `instances` is the number of those that share the pool.
std::vector<ClientGrant> ApplyRound(algorithm::FairSharePool& pool, const FleetReport& report,
                                    bool is_same_pool, uint32_t instances, base::Instant now);

}  // namespace headgate::share
