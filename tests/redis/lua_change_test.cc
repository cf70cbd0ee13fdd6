// The limit of a bucket changes while leases are out, in the Lua host. After any change, the new
// limit bounds the admitted requests; requests on lease count as spent until the lease has expired.
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "headgate/algorithm/decide.h"
#include "tests/model/random_walk.h"
#include "tests/redis/kinds.h"
#include "tests/redis/lease_rig.h"

namespace headgate::redis_host {
namespace lua_change_test {

using algorithm::Algorithm;
using algorithm::Align;
using algorithm::Decision;
using algorithm::Limit;
using algorithm::LimitSpec;
using base::Duration;
using base::Instant;
using store::LeaseGrant;
using store::Operation;
using store::SharedAnswer;
using namespace std::chrono_literals;

// 1 October 2026, when windows of 1 s, 10 s and a month begin.
constexpr Instant kEdge = Instant::FromNanos(1'790'812'800'000'000'000);

const std::vector<LimitSpec> kLeased =
    With({{.algorithm = Algorithm::kTokenBucket, .requests = 100, .period = 1s},
          {.algorithm = Algorithm::kTokenBucket, .requests = 100, .period = 10s, .burst = 80},
          {.algorithm = Algorithm::kFixedWindow, .requests = 100, .period = 1s},
          {.algorithm = Algorithm::kSlidingWindowCounter, .requests = 100, .period = 1s}},
         KindsThatLease(100, 10s));

std::vector<LimitSpec> AllKinds() {
  std::vector<LimitSpec> all =
      With(With(kLeased, KindsThatNeverLease(100, 1s)), KindsThatNeverLease(100, 10s));
  // Limits below the number of requests on lease, and above the old limit.
  for (size_t i = 0, count = all.size(); i < count; ++i) {
    for (const uint64_t requests : {uint64_t{20}, uint64_t{400}}) {
      LimitSpec other = all[i];
      other.requests = requests;
      other.burst.reset();
      all.push_back(other);
    }
  }
  return all;
}

struct Admission {
  Instant at;
  uint64_t cost;
};

// Checks the admitted requests against the definition of one limit.
class Passed {
 public:
  // `owed`: the requests on lease when the limit takes effect; may exceed the limit.
  Passed(const LimitSpec& spec, uint64_t owed)
      : limit_(*Limit::Make(spec)),
        most_(std::max(limit_.capacity() + (spec.algorithm == Algorithm::kLeakyBucketQueue ? 1 : 0),
                       owed)) {}

  // `window_end`: the end of the open window, if there is one.
  void Add(Instant at, uint64_t cost, Instant window_end) {
    all_.push_back({at, cost});
    windows_[window_end.ns] += cost;
  }

  // Describes the first instant at which too many requests have been admitted; empty if there is
  // none.
  std::string Excess() const {
    uint64_t admitted = 0;
    for (size_t first = 0; first < all_.size(); ++first) {
      admitted = 0;
      for (size_t last = first; last < all_.size(); ++last) {
        admitted += all_[last].cost;
        const auto span = static_cast<uint64_t>((all_[last].at - all_[first].at).count());
        if (admitted > BoundOf(span)) {
          return fmt::format("{} within {} ns, of {}", admitted, span, BoundOf(span));
        }
      }
    }
    for (const auto& [end, count] : windows_) {
      if (limit_.algorithm() == Algorithm::kFixedWindow && count > most_) {
        return fmt::format("{} in the window that ends {} ns after the edge", count,
                           end - kEdge.ns);
      }
    }
    return limit_.algorithm() == Algorithm::kSlidingWindowCounter ? ExcessOfCounter() : "";
  }

 private:
  // The maximum in any interval of this length.
  uint64_t BoundOf(uint64_t span) const {
    switch (limit_.algorithm()) {
      case Algorithm::kTokenBucket:
      case Algorithm::kLeakyBucket:
      case Algorithm::kLeakyBucketQueue:
        return most_ +
               static_cast<uint64_t>(base::WideMul(span, limit_.requests()) / limit_.period());
      case Algorithm::kSlidingWindowLog:
        return span < limit_.period() ? most_ : ~uint64_t{0};
      case Algorithm::kFixedWindow:
      case Algorithm::kSlidingWindowCounter:
        return ~uint64_t{0};
    }
    __builtin_unreachable();
  }

  std::string ExcessOfCounter() const {
    std::map<uint64_t, uint64_t> counts;
    const uint64_t period = limit_.period();
    for (const Admission& admission : all_) {
      const auto at = static_cast<uint64_t>(admission.at.ns);
      const uint64_t window = at / period;
      counts[window] += admission.cost;
      const base::uint128 estimate = base::WideMul(counts[window - 1], period - at % period) +
                                     base::WideMul(counts[window], period);
      if (estimate > base::WideMul(most_, period)) {
        return fmt::format("{} in a window and {} in the one before", counts[window],
                           counts[window - 1]);
      }
    }
    return "";
  }

  const Limit limit_;
  const uint64_t most_;
  std::vector<Admission> all_;
  std::map<int64_t, uint64_t> windows_;  // sorted by their ends
};

class Changes : public LeaseRig {
 protected:
  Changes() { now = kEdge; }
  Decision Decide(Operation operation, uint64_t cost) { return Do(operation, cost).decision; }
};

// Two nodes hold leases when the limit changes. One spends its lease in the last instant. The other
// spends a part and returns the rest as soon as possible. All other requests are sent to the store.
class OneChange : public Changes {
 protected:
  struct Course {
    Duration before_edge;  // when the leases are granted
    Duration unasked;      // the time without requests after the change
  };

  // Describes an excess under `to`; empty if there is none.
  std::string Run(const LimitSpec& from, const LimitSpec& to, const Course& course) {
    store.keyspace.Clear();
    now = kEdge - course.before_edge;
    Use(from);
    EXPECT_TRUE(Take(20));
    const LeaseGrant kept = Ask({.node = kNode, .number = 1}, 60);
    const Instant kept_until = now + kept.ttl;
    const LeaseGrant returned = Ask({.node = kOther, .number = 1}, 60);
    const Instant returned_until = now + returned.ttl;
    now += 10ms;
    EXPECT_TRUE(
        AskIfLeased({.node = kNode, .number = 2}, 0, {{.number = 1, .spent = 5}}).has_value());

    Use(to);
    uint64_t kept_left = kept.granted - 5;
    uint64_t returned_left = returned.granted;
    Passed passed(to, kept_left + returned_left);
    Take(std::numeric_limits<uint32_t>::max());  // carries the bucket to the new limit
    const auto window_end = [&] { return now + Decide(Operation::kPeek, 0).reset_after; };
    const Instant begin = now;
    const auto spend = [&](uint64_t& left, uint64_t cost) {
      const Instant end = window_end();
      passed.Add(now, cost, end);
      left -= cost;
    };
    for (Instant step = begin; step < begin + 5s; step += 100ms) {
      for (const Instant last : {kept_until - 1ns, returned_until - 1ns}) {
        uint64_t& left = last == kept_until - 1ns ? kept_left : returned_left;
        if (left == 0 || last <= now || last > step) continue;
        const Instant resume = now;
        now = last;
        // Spends without a peek, because a peek would be a request to the store.
        passed.Add(now, left, course.unasked > 0s ? WindowEndAt(to, now) : window_end());
        left = 0;
        now = std::max(resume, last);
      }
      now = std::max(now, step);
      if (step < begin + course.unasked) continue;
      if (returned_left > 1 && now < returned_until) {
        spend(returned_left, returned_left / 2);
        if (AskIfLeased(
                {.node = kOther, .number = 2}, 0,
                {{.number = 1, .spent = returned.granted - returned_left, .returned = true}})) {
          returned_left = 0;
        }
      }
      for (Decision taken; (taken = Decide(Operation::kTake, 1)).allowed;) {
        passed.Add(now, 1, now + taken.reset_after);
      }
    }
    return passed.Excess();
  }

 private:
  // Windows with fixed edges.
  static Instant WindowEndAt(const LimitSpec& spec, Instant at) {
    return algorithm::WindowEnd(*Limit::Make(spec), at);
  }
};

TEST_F(OneChange, CountsLeasedRequestsForEveryPairOfKinds) {
  int tried = 0;
  for (const LimitSpec& from : kLeased) {
    for (const LimitSpec& to : AllKinds()) {
      if (from == to) continue;
      for (const Duration before_edge : {300ms, 1500ms, 1990ms}) {
        for (const Duration unasked : {0ms, 1000ms, 2500ms}) {
          // Windows that begin with their first hit, so their ends depend on the requests.
          if (unasked > 0ms && to.align == Align::kFirstHit) continue;
          ASSERT_EQ(Run(from, to, {before_edge, unasked}), "")
              << "from " << model::Describe(from) << "\nto   " << model::Describe(to) << "\n"
              << before_edge.count() << " ns before the edge, nobody asks for " << unasked.count()
              << " ns";
          ++tried;
        }
      }
    }
  }
  EXPECT_GT(tried, 2000);
}

// Returned requests are available to other nodes, also under the new limit, but never more than
// were leased.
TEST_F(Changes, RequestsReturnedAfterAChangeAreAvailableToOthers) {
  for (const LimitSpec& from : kLeased) {
    for (const LimitSpec& to : kLeased) {
      if (from == to) continue;
      SCOPED_TRACE("from " + model::Describe(from) + " to " + model::Describe(to));
      store.keyspace.Clear();
      now = kEdge;
      Use(from);
      EXPECT_TRUE(Take(20));
      const LeaseGrant grant = Ask({.node = kNode, .number = 1}, 40);
      const uint64_t left = Remaining();
      Use(to);
      Take(std::numeric_limits<uint32_t>::max());
      const uint64_t most = std::min(Limit::Make(to)->capacity() - grant.granted, left);
      EXPECT_EQ(Remaining(), most);
      EXPECT_TRUE(AskIfLeased({.node = kNode, .number = 2}, 0,
                              {{.number = 1, .spent = 10, .returned = true}})
                      .has_value());
      EXPECT_EQ(Remaining(), std::min(left + grant.granted - 10, Limit::Make(to)->capacity() - 10));
      EXPECT_TRUE(AskIfLeased({.node = kNode, .number = 3}, 0,
                              {{.number = 1, .spent = 0, .returned = true}})
                      .has_value());
      EXPECT_EQ(Remaining(), std::min(left + grant.granted - 10, Limit::Make(to)->capacity() - 10));
    }
  }
}

TEST_F(Changes, ALimitThatCountsDenialsGrantsNoLeaseButAcceptsReportsOfEarlierOnes) {
  Use(kLeased[0]);
  EXPECT_EQ(Ask({.node = kNode, .number = 1}, 40).granted, 40u);
  Use({.algorithm = Algorithm::kSlidingWindowCounter,
       .requests = 100,
       .period = 10s,
       .count_denied = true});
  EXPECT_TRUE(Take(10));
  EXPECT_EQ(Remaining(), 50u);
  EXPECT_FALSE(AskIfLeased({.node = kOther, .number = 1}, 5, {}).has_value());
  EXPECT_TRUE(
      AskIfLeased({.node = kNode, .number = 2}, 0, {{.number = 1, .spent = 30, .returned = true}})
          .has_value());
  EXPECT_EQ(Remaining(), 60u);
}

TEST_F(Changes, KindsThatNeverLeaseCountALeaseAsSpentWhenItExpires) {
  Use(kLeased[0]);
  EXPECT_EQ(Ask({.node = kNode, .number = 1}, 40).granted, 40u);
  Use({.algorithm = Algorithm::kSlidingWindowLog, .requests = 50, .period = 10s});
  EXPECT_TRUE(Take(5));
  EXPECT_EQ(Remaining(), 5u);
  now += kTtl + 10s - 1ns;
  EXPECT_EQ(Remaining(), 5u);
  now += 1ns;
  EXPECT_EQ(Remaining(), 50u);

  store.keyspace.Clear();
  Use(kLeased[0]);
  EXPECT_EQ(Ask({.node = kNode, .number = 1}, 40).granted, 40u);
  Use({.algorithm = Algorithm::kLeakyBucketQueue, .requests = 10, .period = 1s, .burst = 49});
  EXPECT_TRUE(Take(5));
  EXPECT_EQ(Remaining(), 5u);
  now += kTtl;
  EXPECT_EQ(Remaining(), 5u);
  now += 1s;
  EXPECT_EQ(Remaining(), 15u);
}

// Otherwise all requests admitted under the lease would drain at once, one lease life too early.
TEST_F(Changes, AQueueDoesNotDrainUntilTheLastEarlierLeaseEnds) {
  Use(kLeased[0]);
  EXPECT_EQ(Ask({.node = kNode, .number = 1}, 10).granted, 10u);
  const uint64_t before = Remaining();
  EXPECT_TRUE(Take(before - 1));
  Use({.algorithm = Algorithm::kLeakyBucketQueue, .requests = 10, .period = 1s, .burst = 49});
  EXPECT_TRUE(Take(1));
  EXPECT_EQ(Remaining(), 0u);
  now += kTtl;
  EXPECT_EQ(Remaining(), 0u);
  now += 1s;
  EXPECT_EQ(Remaining(), 10u);
}

TEST_F(Changes, AFullBucketIsKeptWhileItIsNotFullUnderItsEarlierLimits) {
  const LimitSpec hundred{.requests = 100, .period = 60s};
  const LimitSpec ten{.requests = 10, .period = 60s};
  for (const auto& [back_at, remaining] : {std::pair{50s, 10u}, std::pair{51s, 100u}}) {
    store.keyspace.Clear();
    now = kEdge;
    Use(hundred);
    EXPECT_TRUE(Take(85));
    Use(ten);
    EXPECT_TRUE(Take(1));
    now += back_at;
    EXPECT_EQ(Remaining(), 10u);
    // The state after any request.
    Decide(Operation::kRefund, 1);
    Use(hundred);
    EXPECT_EQ(Remaining(), remaining);
    EXPECT_TRUE(Take(1));
    EXPECT_EQ(Remaining(), remaining - 1);
  }
}

// A bucket that is kept because of an earlier limit is stored even after its window has ended.
// Setting the clock back must not reopen that window.
TEST_F(Changes, AnEndedWindowDoesNotReopenWhenTheClockIsSetBack) {
  now = kEdge;
  Use({.requests = 100, .period = 60s});
  EXPECT_TRUE(Take(85));
  Use({.algorithm = Algorithm::kFixedWindow, .requests = 10, .period = 1s});
  EXPECT_TRUE(Take(4));
  now += 2s;
  EXPECT_FALSE(Take(11));
  EXPECT_TRUE(store.keyspace.Contains("b", now)) << "remembered";
  now = now - 3600s;
  EXPECT_EQ(Remaining(), 10u);
  EXPECT_TRUE(events.clock_reset);
}

// For debts of an outage, which may come from a limit that was replaced long ago.
TEST_F(Changes, ACallThatKeepsTheBucketsLimitIsDecidedUnderThatLimit) {
  const LimitSpec hundred{.requests = 100, .period = 1s};
  const auto take_debt = [&](const LimitSpec& debtor, uint64_t cost) {
    const SharedAnswer answer = store.Ask(
        {.name = "b", .limit = store.Intern(debtor), .cost = cost, .keeps_limit = true}, now);
    EXPECT_TRUE(answer.status.ok()) << answer.status;
    EXPECT_FALSE(answer.events.carried_over);
    return answer.decision;
  };
  for (const LimitSpec& spec : AllKinds()) {
    for (const LimitSpec& debtor : {hundred, kLeased.back(), AllKinds().back()}) {
      SCOPED_TRACE(fmt::format("{} {} under {} {}", Name(debtor.algorithm), debtor.requests,
                               Name(spec.algorithm), spec.requests));
      store.keyspace.Clear();
      now = kEdge + 10ms;
      Use(spec);
      EXPECT_TRUE(Take(1));
      const uint64_t left = Remaining();
      const Decision taken = take_debt(debtor, 6);
      EXPECT_TRUE(taken.allowed);
      EXPECT_EQ(taken.limit, limit->limit.capacity());
      EXPECT_EQ(taken.remaining, left - 6);
      EXPECT_EQ(Remaining(), left - 6);
      EXPECT_FALSE(take_debt(debtor, left).allowed);
      EXPECT_EQ(Remaining(), left - 6);
    }
  }
}

TEST_F(Changes, ADebtUnderAnEarlierLimitDoesNotMakeTheBucketRefillFaster) {
  const LimitSpec before{.requests = 100, .period = 1s};
  Use({.requests = 10, .period = 1s});
  EXPECT_TRUE(Take(10));
  EXPECT_FALSE(
      store.Ask({.name = "b", .limit = store.Intern(before), .cost = 6, .keeps_limit = true}, now)
          .decision.allowed);
  now += 500ms;
  EXPECT_EQ(Remaining(), 5u);
}

TEST_F(Changes, ACallThatKeepsTheBucketsLimitCreatesAMissingBucket) {
  Use({.requests = 10, .period = 1s});
  EXPECT_EQ(store.Ask({.name = "b", .limit = limit, .cost = 6, .keeps_limit = true}, now)
                .decision.remaining,
            4u);
  EXPECT_EQ(Remaining(), 4u);
}

}  // namespace lua_change_test
}  // namespace headgate::redis_host
