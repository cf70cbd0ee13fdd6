// The calm phase of the world: no more faults happen, and the fleet has to admit nearly as much as
// one exact bucket would.
#include <algorithm>

#include <fmt/format.h>

#include "headgate/algorithm/lease.h"
#include "tests/simulation/world.h"

namespace headgate::simulation {

using base::Duration;
using base::Instant;
using namespace std::chrono_literals;

namespace {

// A busy fleet holds fewer unspent requests than the refill of this time. This is about two and a
// half pauses of 50 ms, in which each node asks once, and the node's last grant. In addition come
// at most two requests per node, because grants are whole requests.
constexpr Duration kKeptMax = 300ms;

// The calls for an overloaded key: what the bucket gains, at least 20 a second, at most one call
// for each 20 ms, with a third for loops that cannot wait for the message of another; and the burst
// of a key's budget (headgate/limiter/lease/ask_budget.h).
constexpr uint64_t kCallsPerSecond = 20;
constexpr uint64_t kCallsPerSecondMost = 50;
constexpr uint64_t kCallsAtOnce = 8;
// Leases end with their window, so the store may decide the last requests of a window and the first
// of the next. And it decides each of the last requests that are left.
constexpr uint64_t kCallsAtEdge = 4 + algorithm::kFewLeft;
// Requests of a window per instance. If a window has fewer, the first instances may take them all.
constexpr uint64_t kEachInWindow = 4;
// A bucket that fills faster than this may be asked eight times while it fills.
constexpr Duration kFillsSlowly = 400ms;

}  // namespace

uint64_t World::Held(size_t key) const {
  uint64_t held = 0;
  for (const Machine& machine : machines_) held += machine.nodes.front()->held(key);
  return held;
}

// Leased requests that are not spent: held by nodes or in flight in either direction, as if all
// nodes shut down at this moment.
uint64_t World::Unspent(size_t key) {
  uint64_t held = 0;
  for (const StoredLease& lease : server_.Leases(Node::NameOf(key), now_)) {
    if (lease.expires_at <= server_.Wall(now_)) continue;
    uint64_t spent = lease.reported;
    for (uint32_t i = 0; i < plan_.nodes(); ++i) {
      if (NodeAt(i)->id() == lease.node)
        spent = std::max(spent, NodeAt(i)->Spent(key, lease.number));
    }
    held += lease.granted - std::min(spent, lease.granted);
  }
  return held;
}

// Windows are measured whole, as many as fit.
void World::ScheduleMeasurement(size_t key) {
  for (const Machine& machine : machines_) {
    if (machine.nodes.empty()) return Fail("an instance has not come back");
  }
  const algorithm::Limit& limit = LimitAfter(key)->limit;
  if (IsMeter(limit) || IsLong(limit.spec())) return BeginMeasurement(key, plan_.measured_to);
  const Duration period = PaceOf(plan_.keys[key].last());
  const Instant wall = server_.Wall(now_);
  Duration begin = now_ + period - Duration(wall.ns % period.count());
  if (IsFirstHit(limit)) {
    const auto open_until = static_cast<int64_t>(server_.State(Node::NameOf(key), now_).edge);
    begin = now_ + std::max(0ns, Instant::FromNanos(open_until) - wall);
  }
  Schedule(begin, [this, key, until = begin + (plan_.measured_to - begin) / period * period] {
    BeginMeasurement(key, until);
  });
}

void World::BeginMeasurement(size_t index, Duration until) {
  Key& key = keys_[index];
  const std::string name = Node::NameOf(index);
  const Instant wall = server_.Wall(now_);
  const uint64_t held = Held(index);
  key.span = until - now_;
  key.exact.emplace(LimitAfter(index)->limit, server_.State(name, now_), server_.Hits(name, now_),
                    held, wall);
  for (uint32_t i = 0; i < plan_.nodes(); ++i)
    demands_[i].leased_at[index] = NodeAt(i)->leased(index);
  for (Machine& machine : machines_)
    machine.admitted[index] = machine.admitted_exactly[index] = machine.calls[index] = 0;
  Schedule(until, [this, index] { EndMeasurement(index); });
}

// The fleet has to admit 98 % of the requests that the yardstick admits, less these allowances:
//
//   token bucket, calendar
//                     The requests held at the end: nodes are given half of an even share of the
//                     rest, so some are always held. Their number does not grow with time.
//   sliding counter   The same number in each window, because a window's unused requests are lost.
//   fixed window      Shorter than two TTLs: 90 %. Requests that one instance returns at the end
//                     of a window may come too late for the others.
//   capacity per node Below 16: 90 %; below 8: 80 %; below 1: 60 % (windows below 16: 70 %).
//                     Other nodes lack the requests that one node holds.
//   count_denied      70 %. A request that is denied because other nodes hold the rest counts, too.
//   capacity          Below 8: 85 %; one: 80 %. The store decides every request, but a bucket of
//                     one token overflows between two requests while their messages travel.
void World::EndMeasurement(size_t index) {
  const Key& key = keys_[index];
  const algorithm::Limit& limit = LimitAfter(index)->limit;
  const bool sliding = limit.algorithm() == algorithm::Algorithm::kSlidingWindowCounter;
  const uint64_t each = limit.capacity() / plan_.nodes();
  const bool short_window =
      !IsMeter(limit) && !sliding && PaceOf(plan_.keys[index].last()) < 2 * plan_.ttl;
  uint64_t percent = 98;
  if (IsMeter(limit)) {
    percent = limit.capacity() == 1  ? 80
              : limit.capacity() < 8 ? 85
              : each < 1             ? 60
              : each < 8             ? 80
              : each < 16            ? 90
                                     : 98;
  } else if (each < 16 || limit.spec().count_denied) {
    percent = 70;
  } else if (short_window) {
    percent = 90;
  }

  const uint64_t exact = key.exact->admitted();
  const uint64_t kept = KeptMax(limit.spec(), PaceOf(plan_.keys[index].last()));
  uint64_t lost_most = exact * (100 - percent) / 100 + 2 * plan_.keys[index].cost_max;
  if (sliding)
    lost_most += kept * static_cast<uint64_t>(key.span / PaceOf(plan_.keys[index].last()));
  if (IsMeter(limit) || IsLong(limit.spec())) {
    lost_most += std::min(kept, server_.Rest(limit, Node::NameOf(index), now_) + Unspent(index));
  }
  if (trace_) {
    fmt::print("k{}: {} admitted, {} by one exact bucket; {} left, {} held\n", index, key.admitted,
               exact, server_.Rest(limit, Node::NameOf(index), now_), Unspent(index));
    for (const Machine& machine : machines_) {
      fmt::print("  instance {}: {} admitted, {} calls\n", &machine - machines_.data(),
                 machine.admitted[index], machine.calls[index]);
    }
  }
  if (key.admitted + lost_most < exact) {
    Fail(fmt::format("k{}: only {} were admitted in the calm, one exact bucket admits {}", index,
                     key.admitted, exact));
  }
  CheckShares(index);
  CheckCalls(index);
}

// With equal demand, each instance gets at least 60 % of its even share over 10 s, or of the
// requests that one exact bucket would let through there: if requests come at fixed gaps, that can
// be less.
void World::CheckShares(size_t index) {
  const Key& key = keys_[index];
  const KeyPlan& plan = plan_.keys[index];
  const algorithm::Limit& limit = LimitAfter(index)->limit;
  const bool leased = plan.sharing == rule::Sharing::kLeased && algorithm::CanLease(limit);
  if (!plan_.even || key.span < 10s || !leased || plan.demand_percent_calm < 200) return;
  if (IsLong(limit.spec())) return;
  // The requests that an empty bucket or counter gains are asked for one by one. If they come at
  // fixed gaps, the same instance may be first each time, as with one bucket.
  if (plan_.steady && limit.algorithm() != algorithm::Algorithm::kFixedWindow) return;
  if (IsMeter(limit)) {
    const bool fills_slowly =
        limit.capacity() >= 8 && 2 * limit.capacity() >= limit.spec().requests;
    if (!fills_slowly) return;
  } else if (limit.capacity() < kEachInWindow * plan_.instances) {
    return;
  }
  const uint64_t even = key.admitted / plan_.instances;
  for (const Machine& machine : machines_) {
    const auto number = static_cast<size_t>(&machine - machines_.data());
    const uint64_t due = std::min(even, machine.admitted_exactly[index]);
    if (even >= 50 && machine.admitted[index] * 100 < due * 60) {
      Fail(fmt::format("instance {} let {} of k{} through, its even share is {}", number,
                       machine.admitted[index], index, even));
    }
  }
}

// If the demand for a key is more than twice its limit, all loops of an instance together make at
// most 20 calls a second, plus the burst of their budget once.
void World::CheckCalls(size_t index) {
  const Key& key = keys_[index];
  const KeyPlan& plan = plan_.keys[index];
  const algorithm::Limit& limit = LimitAfter(index)->limit;
  if (plan.sharing != rule::Sharing::kLeased || plan.demand_percent_calm <= 200) return;
  // A key without leases costs one call per admitted request, and a bucket that fills quickly is
  // asked while it fills.
  const bool fills_slowly =
      !IsMeter(limit) || IsLong(limit.spec()) ||
      limit.capacity() * PaceOf(limit.spec()) >= limit.spec().requests * kFillsSlowly;
  if (!algorithm::CanLease(limit) || limit.denies_all() || !fills_slowly) return;
  if (limit.capacity() < std::max<uint64_t>(8, 3 * uint64_t{plan_.instances})) return;
  const uint64_t each = std::clamp(DueIn(index, 1s), kCallsPerSecond, kCallsPerSecondMost);
  uint64_t most = each * static_cast<uint64_t>(key.span / 1ms) / 1000 + kCallsAtOnce;
  most += most / 3;
  const Duration pace = PaceOf(plan.last());
  if (!IsMeter(limit) && pace < 4 * plan_.ttl)
    most += kCallsAtEdge * static_cast<uint64_t>(key.span / pace);
  for (const Machine& machine : machines_) {
    if (machine.calls[index] <= most) continue;
    const auto number = static_cast<size_t>(&machine - machines_.data());
    Fail(fmt::format("instance {} called the store {} times for k{} in {}ms of overload", number,
                     machine.calls[index], index, key.span / 1ms));
  }
}

uint64_t World::KeptMax(const algorithm::LimitSpec& spec, Duration pace) const {
  return static_cast<uint64_t>(kKeptMax / 1us) * spec.requests / static_cast<uint64_t>(pace / 1us) +
         2 * plan_.nodes();
}

uint64_t World::DueIn(size_t key, Duration time) const {
  return static_cast<uint64_t>(time / 1us) * LimitAfter(key)->limit.spec().requests /
         static_cast<uint64_t>(PaceOf(plan_.keys[key].last()) / 1us);
}

void World::CheckReturned() {
  for (uint32_t i = 0; i < plan_.nodes(); ++i) {
    if (plan_.ledger && NodeAt(i)->waiting() > 0) {
      Fail(fmt::format("node {} has not decided every request", i));
    }
  }
  for (size_t i = 0; i < keys_.size(); ++i) {
    for (const StoredLease& lease : server_.Leases(Node::NameOf(i), now_)) {
      // Under a limit of 0 requests, the store keeps the bucket as it was at its last call.
      if (LimitAfter(i)->limit.denies_all()) continue;
      // Returned requests may be there again after a failover.
      if (lease.reported == algorithm::Lease::kEnded) continue;
      // If the clock was set back by less than such a bucket corrects, its leases live longer by
      // this step.
      if (lease.expires_at > server_.Wall(now_) + plan_.tiny_ttl) continue;
      // There may have been no time to return a lease that ends with its window.
      if (lease.expires_at <= server_.Wall(now_) && !IsMeter(LimitAfter(i)->limit)) continue;
      bool unspent = false;
      for (uint32_t node = 0; node < plan_.nodes(); ++node) {
        unspent = unspent ||
                  (NodeAt(node)->id() == lease.node && NodeAt(node)->Unspent(i, lease.number) > 0);
      }
      if (unspent) {
        Fail(fmt::format("lease #{} of k{} was not returned when nobody asked any more",
                         lease.number, i));
      }
    }
  }
}

}  // namespace headgate::simulation
