// The arithmetic of leases: how a shared bucket grants parts of itself to nodes, and what it owes
// to them until they report, return or expire. Pure functions on a bucket and the list of its
// leases, like Decide.
//
//   tokens(bucket) + Σ unexpired leases (granted − reported)  ≤  capacity        at all times
//
// A lease is taken from the bucket when it is granted. While it lives, the bucket does not refill
// the part that is not yet reported as spent. When it expires, that part counts as spent at the
// moment of expiry, and is refilled from then on. So all nodes together never admit more than one
// bucket would: docs/internals/leases.md has the proof.
//
// Redis runs the same arithmetic as Lua (store/redis/scripts/leases.lua and the scripts it is
// joined with); tests/redis/lua_lease_twin_test.cc holds the two equal.
//
// A `now` earlier than state.seen counts as state.seen, as in Decide. Integers only. Not
// thread-safe for one bucket. A limit of 0 requests leaves bucket and leases as they are, so
// requests that were consumed or leased under another limit stay so.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "headgate/algorithm/bucket.h"
#include "headgate/algorithm/decision.h"
#include "headgate/algorithm/limit.h"
#include "headgate/base/time.h"

namespace headgate::algorithm {

// The most leases that a bucket grants at a time, over all nodes. Each costs bytes in the store and
// time in every call.
inline constexpr size_t kLeasesMax = 512;

// The most requests of one lease, because leases are stored with 32-bit counts.
inline constexpr uint64_t kLeaseRequestsMax = 0xffff'fffe;

// The most ended leases that a bucket remembers, for late reports; beyond it the oldest is
// forgotten.
inline constexpr size_t kEndedLeasesMax = 128;

// The time for which a brief lease is asked.
inline constexpr base::Duration kBrief = std::chrono::milliseconds(100);

// A small lease, which the other nodes do not miss, is at most this part of the rest of the bucket.
inline constexpr uint64_t kSmallShare = 32;

// If fewer are left, each request is decided by the store, until the key is overloaded. A small
// lease would be one request.
inline constexpr uint64_t kFewLeft = 64;

// After the last lease that withheld a request has ended, no lease is granted for this long. The
// request is repeated in the first half of this time.
inline constexpr base::Duration kWithheldLonger = std::chrono::milliseconds(500);

// Names a lease. A node never uses a number twice for the same bucket; a process that restarts is
// another node.
struct LeaseId {
  uint64_t node = 0;  // random, drawn when the process starts
  uint64_t number = 0;
  bool operator==(const LeaseId&) const = default;
};

// A lease as the store records it.
struct Lease {
  // In `reported`: the lease has ended, and all that was not reported has been counted as spent.
  static constexpr uint32_t kEnded = 0xffff'ffff;

  LeaseId id;
  uint32_t granted = 0;   // requests of cost 1
  uint32_t reported = 0;  // of these, reported as spent; at most `granted`, or kEnded
  base::Instant expires_at{
      0};  // on the store's clock; from this instant on the whole lease counts as spent

  // The requests that are granted and not reported as spent; 0 for an ended lease.
  uint32_t outstanding() const { return granted > reported ? granted - reported : 0; }
  bool has_ended() const { return reported == kEnded; }
  bool IsLive(base::Instant now) const { return expires_at > now; }
  // A mark stands among the leases while no lease is granted, because leases withhold a request:
  // see AskLease.
  bool is_mark() const { return granted == 0; }
  bool operator==(const Lease&) const = default;
};

// All leases of one bucket: first the ended ones that may be reported late, then the live ones, in
// the order in which they were granted.
using Leases = std::vector<Lease>;

// A node's report about one of its leases. Cumulative: a report that is repeated, late or out of
// order changes nothing.
struct LeaseReport {
  uint64_t number = 0;    // of this node
  uint64_t spent = 0;     // since the lease was granted
  bool returned = false;  // the unspent rest goes back, and the lease ends
  bool operator==(const LeaseReport&) const = default;
};

// A node's message about a bucket: reports of its leases, a request that the bucket decides, and
// the wish for a lease.
struct LeaseAsk {
  LeaseId id;          // of the new lease
  Cost cost = 0;       // of the request; 0: none
  uint64_t want = 0;   // the node's demand for as long as a lease lives; 0: no lease
  uint64_t brief = 0;  // its demand for about 100 ms
  // A brief lease is at most 1/parts of the bucket's rest. 1: the key is overloaded.
  uint32_t parts = 1;
  base::Duration ttl{0};  // the longest that it may live at the store
  std::span<const LeaseReport> reports{};
};

struct LeaseGrant {
  uint64_t granted = 0;           // requests of cost 1; 0: no lease
  uint64_t others = 0;            // requests that other nodes hold and have not reported
  base::Instant others_until{0};  // when the last of their leases ends
  base::Duration ttl{0};          // of the lease; less than asked for if a window ends before
  // When another request of this cost (at least 1) can pass if nobody takes anything; 0: now. The
  // requests that others hold on lease come back when the last of their leases has ended. kNever if
  // it can never pass.
  base::Duration next_after{0};
  bool operator==(const LeaseGrant&) const = default;
};

// A node has asked for a lease of `ttl`, and got the answer `grant` at the time `at`: when the
// store took the cost of the request. If an ask arrives twice, it takes once, and the second answer
// names the same lease with a shorter ttl, which shows the time of the first answer. The ttl of a
// lease that ends with its window does not show this, but then both answers are in the same window.
inline base::Instant TakenAt(const Limit& limit, const LeaseGrant& grant, base::Duration ttl,
                             base::Instant at) {
  if (grant.granted == 0 || IsWindow(limit.algorithm())) return at;
  return base::Clamp(at - std::max(base::Duration(0), ttl - grant.ttl));
}

// Whether leases are granted under this limit. Three kinds of limits grant no leases. If requests
// may overdraw the limit, only the store knows whether the bucket is overdrawn. If a denial begins
// a block, the block has to hold at once for all nodes. If a sliding counter counts denied
// requests, a denial weighs on the next window, so every denial has to reach the store. In a fixed
// window the first counted denial uses up the rest, so a node may deny until the window ends by
// itself: no more than `requests` pass in it either way.
inline bool CanLease(const Limit& limit) {
  const bool counts_each_denial =
      limit.algorithm() == Algorithm::kSlidingWindowCounter && limit.spec().count_denied;
  return KeepsLeases(limit.algorithm()) && !counts_each_denial && !limit.spec().overdraw &&
         !limit.blocks();
}

// ---- The life of a lease. For limits that keep leases.

// Ends the leases that have expired at `now` and counts their unreported parts as spent: in a token
// bucket as of the moment of expiry, in a window that this moment lies in. An ended lease is
// remembered as long as a late report of it could give something back; in a token bucket perhaps
// longer, until it is full or another lease ends.
void ExpireLeases(const Limit& limit, BucketState& state, Leases& leases, base::Instant now);

// As Decide, for a bucket with leases.
Decision DecideLeased(const Limit& limit, BucketState& state, Leases& leases, Cost cost,
                      base::Instant now);

// As Refund, for a bucket with leases: gives back at most the amount that is consumed and not out
// on lease.
Decision RefundLeased(const Limit& limit, BucketState& state, Leases& leases, Cost cost,
                      base::Instant now);

// As Charge and Undo, for a bucket with leases. An undo gives back at most the amount that is
// consumed and not out on lease.
Decision ChargeLeased(const Limit& limit, BucketState& state, Leases& leases, Cost cost,
                      base::Instant now);
Decision UndoLeased(const Limit& limit, BucketState& state, Leases& leases, Cost cost,
                    base::Instant taken_at, base::Instant now);

// Applies the reports, decides the request as Decide does, and then grants a lease, if CanLease and
// the request was allowed. A lease is small or brief. With `left` after the request, and `mine`
// held by the asking node:
//
//   holds = max(min(want, (left + mine) / 32), min(brief, (left + mine) / parts))
//   granted = min(left, holds − mine)
//
// but 0 if left + mine < kFewLeft and parts > 1. In a window that ends before kBrief is over,
// `brief` is the part for the time that is left.
//
// If a request is denied only because of the leases of others, although at least kFewLeft are left,
// it leaves a mark, which is a lease of 0 requests. While a mark lives, leases are granted only to
// nodes for which the key is overloaded. Otherwise requests with large costs would never pass while
// small requests keep everything leased.
//
// Returns the decision, whose `remaining` is the rest after the grant. If an ask arrives a second
// time while its lease lives, the answer is that lease, and nothing is taken again. Nothing is
// granted while kLeasesMax leases live. In a window, a lease ends at the latest when the window
// ends.
//
// A late report of an ended lease gives back the unspent part, as far as the bucket certainly still
// lacks it. A token bucket lacks the part that has not refilled since the lease ended. A fixed
// window lacks it while the window in which the lease ended is open, and a sliding counter also
// while that window is the previous one.
Decision AskLease(const Limit& limit, BucketState& state, Leases& leases, const LeaseAsk& ask,
                  base::Instant now, LeaseGrant& grant);

// Computes LeaseGrant::next_after for a bucket in this state, while other nodes hold `others`
// leased requests, whose last lease ends at `others_until`.
base::Duration NextAfter(const Limit& limit, BucketState state, Cost cost, uint64_t others,
                         base::Instant others_until, base::Instant now);

// ---- When limits and clocks change.

// Makes all leased requests count as consumed under `limit`, of any kind: the unreported parts of
// live leases, and of expired ones up to their expiry. Call it before and after algorithm::Change.
// Token buckets and windows continue to count the live leases. A queue or a log counts all leased
// requests as spent in the instant at which the last lease expires, and its time moves on to that
// instant.
void HoldLeases(const Limit& limit, const Leases& leases, BucketState& state, HitLog& hits,
                base::Instant now);

// Removes the leases that a bucket of `limit` does not keep: the ones that have ended or expired at
// `now`, or all.
void DropLeases(const Limit& limit, Leases& leases, base::Instant now);

// Moves bucket and leases back to `now`, which is before state.seen because the store's clock was
// set back: as much is left, and leases live as long, as at state.seen. A window becomes one of
// `now`; its leases end with it. Leases that have ended are forgotten: nobody could tell in which
// window they count. `remembered_until` keeps its distance from state.seen.
void SetBackLeased(const Limit& limit, BucketState& state, Leases& leases,
                   RememberedUntil& remembered_until, base::Instant now);

// Until when a store has to keep the bucket: until its last lease has expired and has been
// refilled. Not after `now` if the bucket may be forgotten. (`remembered_until` of Change and
// MarkedUntil may ask for longer.)
base::Instant KeptUntil(const Limit& limit, const BucketState& state, const Leases& leases,
                        base::Instant now);

// The end of a mark; 0 if there is none.
base::Instant MarkedUntil(const Leases& leases);

}  // namespace headgate::algorithm
