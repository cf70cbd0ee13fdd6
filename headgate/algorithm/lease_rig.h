// For the tests of leases in this folder: one bucket from which two nodes get leases, at times that
// the test sets, and a limit of 100 of each kind that grants leases.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <vector>

#include "headgate/algorithm/decide.h"
#include "headgate/algorithm/lease.h"

namespace headgate::algorithm {
namespace lease_rig {

inline constexpr base::Duration kTtl = std::chrono::seconds(2);
inline constexpr uint64_t kNode = 7;
inline constexpr uint64_t kOther = 8;
// A multiple of 10 s, so that windows of 10 s and 1 s begin there.
inline constexpr base::Instant kBegin = base::Instant::FromNanos(1'790'000'000'000'000'000);

class Rig {
 public:
  explicit Rig(const LimitSpec& spec) : limit(*Limit::Make(spec)) {}

  LeaseGrant Ask(LeaseAsk ask) {
    ask.ttl = kTtl;
    LeaseGrant grant;
    decision = AskLease(limit, state, leases, ask, now, grant);
    return grant;
  }
  // A brief lease of the wanted requests, as far as they are there.
  LeaseGrant Ask(LeaseId id, uint64_t want, const std::vector<LeaseReport>& reports = {}) {
    return Ask({.id = id, .want = want, .brief = want, .reports = reports});
  }
  // Only reports.
  LeaseGrant Report(const std::vector<LeaseReport>& reports, uint64_t node = kNode) {
    return Ask({.node = node, .number = 1'000}, 0, reports);
  }
  bool Take(Cost cost) { return DecideLeased(limit, state, leases, cost, now).allowed; }
  uint64_t Left() const {
    BucketState copy = state;
    Leases copies = leases;
    return DecideLeased(limit, copy, copies, 0, now).remaining;
  }
  base::Instant Until() const { return KeptUntil(limit, state, leases, now); }

  Limit limit;
  BucketState state{};
  Leases leases{};
  base::Instant now = kBegin;
  Decision decision{};  // of the last ask
};

inline constexpr LimitSpec kHundredPerSecond{.requests = 100, .period = std::chrono::seconds(1)};
inline constexpr LimitSpec kWindow{
    .algorithm = Algorithm::kFixedWindow, .requests = 100, .period = std::chrono::seconds(10)};
inline constexpr LimitSpec kFirstHit{.algorithm = Algorithm::kFixedWindow,
                                     .requests = 100,
                                     .period = std::chrono::seconds(10),
                                     .align = Align::kFirstHit};
inline constexpr LimitSpec kMonth{
    .algorithm = Algorithm::kFixedWindow, .requests = 100, .align = Align::kCalendarMonth};
inline constexpr LimitSpec kCounter{.algorithm = Algorithm::kSlidingWindowCounter,
                                    .requests = 100,
                                    .period = std::chrono::seconds(10)};
inline constexpr LimitSpec kLog{
    .algorithm = Algorithm::kSlidingWindowLog, .requests = 100, .period = std::chrono::seconds(10)};
inline constexpr LimitSpec kQueue{.algorithm = Algorithm::kLeakyBucketQueue,
                                  .requests = 100,
                                  .period = std::chrono::seconds(10),
                                  .burst = 99};

inline constexpr std::array kLeased{kHundredPerSecond, kWindow, kFirstHit, kMonth, kCounter};

}  // namespace lease_rig
}  // namespace headgate::algorithm
