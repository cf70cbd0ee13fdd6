// Checks that no client with room is denied for longer than a lease lives. A denial may be
// remembered for one TTL, and rests on an earlier answer of the store. So at some moment within
// that time there must have been too little room: in one bucket fed with all consumed requests,
// less those out on lease. A request spent from a lease counts as consumed when it is reported:
// until then a bucket refills only as far as if it were still there, which is the rule of leases
// (leases.md). In a window, which does not refill, it counts when it is spent.
#pragma once

#include <cstdint>
#include <deque>

#include "headgate/algorithm/limit.h"
#include "headgate/base/time.h"
#include "tests/simulation/bound.h"

namespace headgate::simulation {

class Lockout {
 public:
  // `term`: how long ago what a denial rests on may be. `kept`: what a fleet in demand keeps on
  // hand.
  Lockout(const algorithm::Limit& limit, base::Duration term, uint64_t kept)
      : consumed_(limit), term_(term), kept_(kept) {}

  Bound& consumed() { return consumed_; }
  // The store has been asked: `leased` requests are out on lease there, of `holders` nodes.
  void OnAnswer(uint64_t leased, uint64_t holders, base::Duration at, base::Instant wall);
  // Nothing can be said before: the store's clock was set back, or the limit changes.
  void Blind(base::Duration until) { blind_until_ = std::max(blind_until_, until); }
  // A request is denied. Whether there was room for it all the time: for what a store grants that
  // keeps the larger half of an even share of what is left for others.
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
  std::deque<Sample> least_;  // rising: the least room since each
  uint64_t leased_ = 0;
  uint64_t holders_ = 0;
};

}  // namespace headgate::simulation
