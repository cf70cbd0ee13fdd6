// The contract of leases: a lease costs nobody a request. A fleet without faults, in virtual time,
// is driven with one load, and compared with one single bucket that is asked the same at the same
// times. docs/internals/leases.md has the table of promises.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "headgate/algorithm/limit.h"
#include "headgate/base/time.h"
#include "tests/redis/script_host.h"

namespace headgate::simulation {

struct Load {
  enum class Kind : uint8_t {
    kAlone,     // one instance is asked: bursts of 1.2 times the limit, one request after the other
    kMixed,     // the same with costs of 1 to a fifth of the limit
    kWander,    // the same bursts as kAlone, each request to the next instance
    kPaced,     // each instance is asked at fixed gaps
    kPoisson,   // at random
    kObedient,  // one client, which is denied, waits for Retry-After and asks another instance
    kPlenty,    // at random, far below the limit
    kLargeCost,  // paced requests of one, and beside them large ones that fit one single bucket
    kKilled,     // paced; one instance is killed
    kPaused,     // paced; one instance stands still for longer than a lease lives
    kStandstill  // paced; the store stands still
  };
  Kind kind = Kind::kPaced;
  algorithm::LimitSpec spec;
  uint32_t instances = 3;
  uint32_t loops = 1;
  // The demand of all instances together, in hundredths of the limit.
  uint64_t percent = 90;
  // Instead of `percent`, if not 0: requests in 1000 s.
  uint64_t per_1000s = 0;
  base::Duration lasts{0};
  uint64_t seed = 1;
};
std::string ToString(const Load& load);

struct Measured {
  uint64_t asked = 0;
  uint64_t admitted = 0;         // in units of cost
  uint64_t single_admitted = 0;  // by one single bucket
  uint64_t refused = 0;
  uint64_t single_refused = 0;
  // Refused, although one single bucket would have admitted the request, and had refused none in
  // this burst. Only kAlone, kObedient and kLargeCost.
  uint64_t refused_early = 0;
  uint64_t at_once = 0;          // decided without waiting for the store
  uint64_t calls_most = 0;       // of one instance
  uint64_t remaining_wrong = 0;  // answers whose `remaining` is not that of one single bucket
  uint64_t lacked_most = 0;      // kWander: the most requests of the limit that a burst did not get
  // kObedient: a second wait, because another instance had spent the requests that the client
  // waited for.
  uint64_t spent_elsewhere = 0;
  uint64_t lost = 0;  // kKilled, kPaused, kStandstill: of the limit, when all is over
  uint64_t lost_most = 0;
  base::Duration lasted{0};
  std::string failure{};  // an invariant of a node
};

Measured Run(const Load& load, redis_host::ScriptHost& scripts, bool trace = false);

// The promise that is broken; empty if the contract is kept.
std::string Broken(const Load& load, const Measured& measured);

// The results by kind of load: the table in docs/internals/leases.md.
struct Row {
  std::string load;
  std::string promise;
  uint64_t runs = 0;
  std::string measured;
};
std::vector<Row> RowsOf(std::span<const std::pair<Load, Measured>> runs);

// One load that the seed chooses.
Load DrawLoad(uint64_t seed);

}  // namespace headgate::simulation
