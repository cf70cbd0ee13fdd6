// Checks that a client is not denied for longer than a lease lives while there is room. A denial
// may be remembered for one TTL, and rests on an earlier answer of the store. So at some moment
// within that time there must have been too little room. Room is measured in one bucket that all
// consumed requests go through, less the requests on lease. A request spent from a lease counts as
// consumed when it is reported: until then a bucket refills only as far as if the request were
// still in it, which is the rule of leases (leases.md). In a window, which does not refill, the
// request counts when it is spent.
#pragma once

#include <cstdint>
#include <deque>

#include "headgate/algorithm/limit.h"
#include "headgate/base/time.h"
#include "tests/simulation/bound.h"

namespace headgate::simulation {

class Lockout {
 public:
  // `term`: the age that the basis of a denial may have. `kept`: the requests that a busy fleet
  // keeps unspent.
  Lockout(const algorithm::Limit& limit, base::Duration term, uint64_t kept)
      : consumed_(limit), term_(term), kept_(kept) {}

  Bound& consumed() { return consumed_; }
  // The store has answered: `leased` requests are on lease there, held by `holders` nodes.
  void OnAnswer(uint64_t leased, uint64_t holders, base::Duration at, base::Instant wall);
  // Checks nothing before `until`: the store's clock was set back, or the limit changes.
  void Blind(base::Duration until) { blind_until_ = std::max(blind_until_, until); }
  // Returns whether there was room for a denied request during the whole term. When the store
  // grants a lease, it keeps the larger half of an even share for others.
  bool IsLockedOut(uint64_t cost, base::Duration at, base::Instant wall);

 private:
  struct Sample {
    base::Duration at;
    uint64_t room;  // for each holder
  };

  Bound consumed_;
  const base::Duration term_;
  const uint64_t kept_;
  base::Duration blind_until_{0};
  std::deque<Sample> least_;  // ascending by room: the least room since each sample
  uint64_t leased_ = 0;
  uint64_t holders_ = 0;
};

}  // namespace headgate::simulation
