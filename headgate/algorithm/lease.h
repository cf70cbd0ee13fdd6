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
// thread-safe for one bucket. A limit of 0 requests leaves bucket and leases as they are, so that
// what was consumed or leased under another limit stays so.
#pragma once

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
inline constexpr uint64_t kLeaseRequestsMax = 0xffff'ffff;

// Names a lease. A node never uses a number twice for the same bucket; a process that restarts is
// another node.
struct LeaseId {
  uint64_t node = 0;  // random, drawn when the process starts
  uint64_t number = 0;
  bool operator==(const LeaseId&) const = default;
};

// A lease as the store records it.
struct Lease {
  LeaseId id;
  uint32_t granted = 0;   // requests of cost 1
  uint32_t reported = 0;  // of these, reported as spent; at most `granted`
  base::Instant expires_at{
      0};  // on the store's clock; from this instant on all of it counts as spent

  uint32_t outstanding() const { return granted > reported ? granted - reported : 0; }
  bool IsLive(base::Instant now) const { return expires_at > now; }
  bool operator==(const Lease&) const = default;
};

// All leases of one bucket, in the order in which they were granted.
using Leases = std::vector<Lease>;

// A node's report about one of its leases. Cumulative: a report that is repeated, late or out of
// order changes nothing.
struct LeaseReport {
  uint64_t number = 0;    // of this node
  uint64_t spent = 0;     // since the lease was granted
  bool returned = false;  // the unspent rest goes back, and the lease ends
  bool operator==(const LeaseReport&) const = default;
};

// A node's request for a lease, together with its reports of older ones.
struct LeaseAsk {
  LeaseId id;             // of the new lease
  uint64_t want = 0;      // requests of cost 1; 0 only reports
  uint64_t least = 0;     // grant nothing rather than less than this; 0 counts as 1
  uint64_t share = 0;     // grant this much even if others will need it; for an even share
  base::Duration ttl{0};  // the longest that it may live at the store
  std::span<const LeaseReport> reports{};
};

struct LeaseGrant {
  uint64_t granted = 0;    // 0: no lease
  uint64_t remaining = 0;  // of the shared bucket, afterwards
  uint32_t holders = 0;    // nodes with a live lease on this bucket, the asking one included
  base::Duration ttl{0};   // less than asked for if a window ends before
  base::Duration retry_after{
      0};  // nothing granted: until `least` is there; kNever if that can never be
  bool operator==(const LeaseGrant&) const = default;
};

// Whether a bucket of this limit records leases, be they granted under it or under an earlier
// limit. The queue and the log do not: there, what is out on lease counts as spent when the last
// lease ends (HoldLeases).
constexpr bool KeepsLeases(Algorithm algorithm) {
  return IsTokenBucket(algorithm) || IsWindow(algorithm);
}

// Whether leases are granted under this limit. Not of a sliding counter that counts denied
// requests: a denial weighs on the next window, so every one of them has to reach the store. In a
// fixed window the first counted denial uses up what is left, so a node may deny the rest of the
// window by itself: no more than `requests` pass in it either way.
inline bool CanLease(const Limit& limit) {
  const bool counts_each_denial =
      limit.algorithm() == Algorithm::kSlidingWindowCounter && limit.spec().count_denied;
  return KeepsLeases(limit.algorithm()) && !counts_each_denial;
}

// ---- The life of a lease. For limits that keep leases.

// Ends the leases that have expired at `now` and counts what they left unreported as spent: in a
// token bucket as of the moment of expiry, in a window that this moment lies in.
void ExpireLeases(const Limit& limit, BucketState& state, Leases& leases, base::Instant now);

// As Decide, for a bucket with leases.
Decision DecideLeased(const Limit& limit, BucketState& state, Leases& leases, Cost cost,
                      base::Instant now);

// As Refund, for a bucket with leases: gives back at most what is consumed and not out on lease.
Decision RefundLeased(const Limit& limit, BucketState& state, Leases& leases, Cost cost,
                      base::Instant now);

// Takes in the reports and then grants a lease, if CanLease and enough is left:
//
//   granted = min(want, left, max(least, share, left / (2·holders)))
//
// An ask that comes twice while its lease lives is answered with that lease. Nothing is granted
// while kLeasesMax leases live. A lease of a window ends with it.
LeaseGrant AskLease(const Limit& limit, BucketState& state, Leases& leases, const LeaseAsk& ask,
                    base::Instant now);

// Takes `cost`, or what is left if that is less: for what was admitted while the store could not be
// asked, or was learning. Returns how much was taken. A limit that counts denied requests counts
// all of it.
Cost Debit(const Limit& limit, BucketState& state, Leases& leases, Cost cost, base::Instant now);

// ---- When limits and clocks change.

// Makes what is out on lease count as consumed under `limit`, whichever it is, at least: what live
// leases have not reported, and what expired ones had not, up to when they expired. Call it before
// and after algorithm::Change. Token buckets and windows go on counting the leases that live. A
// queue or a log counts all of it as spent in the instant at which the last lease expires, and its
// time moves on to that instant.
void HoldLeases(const Limit& limit, const Leases& leases, BucketState& state, HitLog& hits,
                base::Instant now);

// Removes the leases that a bucket of `limit` does not keep: those that have expired at `now`, or
// all.
void DropLeases(const Limit& limit, Leases& leases, base::Instant now);

// Moves bucket and leases back to `now`, which is before state.seen because the store's clock was
// set back: as much is left, and leases live as long, as at state.seen. A window becomes one of
// `now`; its leases end with it. `remembered_until` keeps its distance from state.seen.
void SetBackLeased(const Limit& limit, BucketState& state, Leases& leases,
                   base::Instant& remembered_until, base::Instant now);

// Until when a store has to keep the bucket: until its last lease has expired and has been
// refilled. Not after `now` if the bucket may be forgotten. (`remembered_until` of Change may ask
// for longer.)
base::Instant KeptUntil(const Limit& limit, const BucketState& state, const Leases& leases,
                        base::Instant now);

}  // namespace headgate::algorithm
