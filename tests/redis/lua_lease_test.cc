// Leases, in the Lua host. What they promise, at all times:
//
//   tokens(shared) + Σ unexpired leases (granted − reported) ≤ capacity
//
// and so, whatever is lost, repeated, late or in another order, all nodes together admit no more than one bucket would.
#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <map>

#include <fmt/format.h>

#include "headgate/algorithm/decide.h"
#include "headgate/testing/deque_hit_log.h"
#include "tests/model/random_walk.h"
#include "tests/redis/lua_store.h"

namespace headgate::redis_host {
namespace {

using algorithm::Algorithm;
using algorithm::LimitSpec;
using base::Duration;
using base::Instant;
using model::Between;
using model::OneIn;
using store::LeaseAsk;
using store::LeaseGrant;
using store::LeaseId;
using store::LeaseReport;
using store::SharedAnswer;
using namespace std::chrono_literals;

constexpr Duration kTtl = 2s;

class Leases : public ::testing::Test {
 protected:
  void Use(const LimitSpec& spec) { limit = store.Intern(spec); }

  LeaseGrant Ask(LeaseId id, uint64_t want, std::vector<LeaseReport> reports = {}, uint64_t least = 1) {
    const SharedAnswer answer =
        store.Ask({.name = "b",
                   .limit = limit,
                   .lease = LeaseAsk{.id = id, .want = want, .least = least, .ttl = kTtl, .reports = reports},
                   .leased = true},
                  now);
    EXPECT_TRUE(answer.status.ok()) << answer.status;
    events = answer.events;
    return answer.grant;
  }
  SharedAnswer Do(store::Operation operation, uint64_t cost) {
    const SharedAnswer answer =
        store.Ask({.name = "b", .limit = limit, .cost = cost, .operation = operation, .leased = true}, now);
    EXPECT_TRUE(answer.status.ok()) << answer.status;
    events = answer.events;
    return answer;
  }
  uint64_t Remaining() { return Do(store::Operation::kLook, 0).decision.remaining; }
  bool Take(uint64_t cost) { return Do(store::Operation::kTake, cost).decision.allowed; }

  LuaStore store;
  store::LimitHandle limit;
  Instant now = Instant::FromNanos(1'790'000'000'000'000'000);
  store::SharedEvents events;
};

const LimitSpec kHundredPerSecond{.algorithm = Algorithm::kTokenBucket, .requests = 100, .period = 1s};

TEST_F(Leases, AreHalfOfAnEvenShareOfWhatIsLeft) {
  Use(kHundredPerSecond);
  EXPECT_EQ(Ask({.node = 1, .number = 1}, 80),
            (LeaseGrant{.granted = 50, .remaining = 50, .holders = 1, .ttl = kTtl, .retry_after = 0s}));
  EXPECT_EQ(Ask({.node = 2, .number = 1}, 80),
            (LeaseGrant{.granted = 12, .remaining = 38, .holders = 2, .ttl = kTtl, .retry_after = 0s}));
  EXPECT_EQ(Ask({.node = 2, .number = 2}, 5).granted, 5u);
  EXPECT_EQ(Remaining(), 33u);
  EXPECT_TRUE(Take(33));
  EXPECT_FALSE(Take(1));
}

TEST_F(Leases, AreNotLessThanIsWorthTheWhile) {
  Use(kHundredPerSecond);
  EXPECT_TRUE(Take(90));
  EXPECT_EQ(Ask({.node = 1, .number = 1}, 80, {}, 8).granted, 8u);
  const LeaseGrant none = Ask({.node = 2, .number = 1}, 80, {}, 8);
  EXPECT_EQ(none.granted, 0u);
  EXPECT_EQ(none.retry_after, 60ms) << "six more tokens";
  EXPECT_EQ(Ask({.node = 2, .number = 2}, 80, {}, 101).retry_after, algorithm::kNever);
}

TEST_F(Leases, ToTheSameRequestAreTheSame) {
  Use(kHundredPerSecond);
  const LeaseGrant first = Ask({.node = 1, .number = 1}, 20);
  now += 500ms;
  const LeaseGrant again = Ask({.node = 1, .number = 1}, 20);
  EXPECT_EQ(again.granted, first.granted);
  EXPECT_EQ(again.ttl, kTtl - 500ms);
  EXPECT_EQ(Remaining(), 80u);
}

TEST_F(Leases, LeaveNoRoomForWhatTheyHold) {
  Use(kHundredPerSecond);
  EXPECT_EQ(Ask({.node = 1, .number = 1}, 40).granted, 40u);
  now += 1900ms;  // the bucket would be full twice over
  EXPECT_EQ(Remaining(), 60u);
  // What was spent is made good.
  Ask({.node = 1, .number = 2}, 0, {{.number = 1, .spent = 30}});
  EXPECT_EQ(Remaining(), 60u);
  now += 50ms;
  EXPECT_EQ(Remaining(), 65u);
}

TEST_F(Leases, CountAsSpentWhenTheyExpire) {
  Use(kHundredPerSecond);
  EXPECT_EQ(Ask({.node = 1, .number = 1}, 40).granted, 40u);
  now += kTtl - 1ns;
  EXPECT_EQ(Remaining(), 60u);
  now += 1ns;
  EXPECT_EQ(Remaining(), 60u);
  now += 100ms;
  EXPECT_EQ(Remaining(), 70u);
  now += 300ms;
  EXPECT_EQ(Remaining(), 100u);
  // Too late.
  Ask({.node = 1, .number = 2}, 0, {{.number = 1, .spent = 0, .returned = true}});
  EXPECT_EQ(Remaining(), 100u);
}

TEST_F(Leases, GiveBackWhatIsReturnedUnspent) {
  Use(kHundredPerSecond);
  EXPECT_EQ(Ask({.node = 1, .number = 1}, 40).granted, 40u);
  Ask({.node = 1, .number = 2}, 0, {{.number = 1, .spent = 10}});
  EXPECT_EQ(Remaining(), 60u);
  Ask({.node = 1, .number = 3}, 0, {{.number = 1, .spent = 15, .returned = true}});
  EXPECT_EQ(Remaining(), 85u);
  Ask({.node = 1, .number = 3}, 0, {{.number = 1, .spent = 0, .returned = true}});
  EXPECT_EQ(Remaining(), 85u) << "only once";
}

TEST_F(Leases, AreNotTouchedByReportsOfOthersOrOlderOnes) {
  Use(kHundredPerSecond);
  EXPECT_EQ(Ask({.node = 1, .number = 1}, 40).granted, 40u);
  Ask({.node = 2, .number = 1}, 0, {{.number = 1, .spent = 0, .returned = true}});
  Ask({.node = 1, .number = 2}, 0, {{.number = 7, .spent = 0, .returned = true}});
  Ask({.node = 1, .number = 2}, 0, {{.number = 1, .spent = 30}});
  Ask({.node = 1, .number = 2}, 0, {{.number = 1, .spent = 20}});
  now += 1s;
  EXPECT_EQ(Remaining(), 90u);
}

TEST_F(Leases, AreNotRefundedAway) {
  Use(kHundredPerSecond);
  EXPECT_EQ(Ask({.node = 1, .number = 1}, 40).granted, 40u);
  EXPECT_TRUE(Take(10));
  EXPECT_EQ(Do(store::Operation::kRefund, 100).decision.remaining, 60u);
}

TEST_F(Leases, OfOneKeyAreBounded) {
  Use({.algorithm = Algorithm::kTokenBucket, .requests = 1'000'000, .period = 1s});
  for (uint64_t i = 1; i <= 512; ++i) ASSERT_EQ(Ask({.node = i, .number = 1}, 1).granted, 1u);
  const LeaseGrant refused = Ask({.node = 513, .number = 1}, 1);
  EXPECT_EQ(refused.granted, 0u);
  EXPECT_GT(refused.retry_after, 0s);
  EXPECT_EQ(refused.holders, 513u);
}

TEST_F(Leases, AreKeptUntilTheLastHasExpiredAndIsMadeGood) {
  Use(kHundredPerSecond);
  EXPECT_EQ(Ask({.node = 1, .number = 1}, 40).granted, 40u);
  EXPECT_GE(store.keyspace.TimeToLive("b", now), kTtl + 400ms);
  Ask({.node = 1, .number = 2}, 0, {{.number = 1, .spent = 40}});
  EXPECT_GE(store.keyspace.TimeToLive("b", now), kTtl) << "so that a repeated request is known";
}

TEST_F(Leases, OfAWindowDieWithIt) {
  Use({.algorithm = Algorithm::kFixedWindow, .requests = 100, .period = 10s});
  now = Instant::FromNanos(1'790'000'009'000'000'000);
  const LeaseGrant grant = Ask({.node = 1, .number = 1}, 40);
  EXPECT_EQ(grant.granted, 40u);
  EXPECT_EQ(grant.ttl, 1s);
  EXPECT_EQ(Remaining(), 60u);
  Ask({.node = 1, .number = 2}, 0, {{.number = 1, .spent = 5}});
  EXPECT_EQ(Remaining(), 60u);
  now += 1s;
  EXPECT_EQ(Remaining(), 100u);
  Ask({.node = 1, .number = 3}, 0, {{.number = 1, .spent = 5, .returned = true}});
  EXPECT_EQ(Remaining(), 100u);
  EXPECT_EQ(Ask({.node = 1, .number = 4}, 40).granted, 40u);
  Ask({.node = 1, .number = 5}, 0, {{.number = 4, .spent = 30, .returned = true}});
  EXPECT_EQ(Remaining(), 70u) << "returned within the window";
}

TEST_F(Leases, OfASlidingCounterCountWhereTheyAreGiven) {
  Use({.algorithm = Algorithm::kSlidingWindowCounter, .requests = 100, .period = 10s});
  now = Instant::FromNanos(1'790'000'005'000'000'000);
  EXPECT_TRUE(Take(20));
  EXPECT_EQ(Ask({.node = 1, .number = 1}, 100).granted, 40u);
  EXPECT_EQ(Remaining(), 40u);
  now += 4s;
  EXPECT_EQ(Remaining(), 40u) << "expired: spent";
  EXPECT_EQ(Ask({.node = 1, .number = 2}, 100).ttl, 1s);
  EXPECT_EQ(Remaining(), 20u);
  now += 6s;  // half of the next window: 80 count half
  EXPECT_EQ(Remaining(), 60u);
}

TEST_F(Leases, AreNotForQueuesAndLogs) {
  for (const Algorithm algorithm : {Algorithm::kLeakyBucketQueue, Algorithm::kSlidingWindowLog}) {
    Use({.algorithm = algorithm, .requests = 10, .period = 1s});
    const SharedAnswer answer = store.Ask(
        {.name = "b", .limit = limit, .lease = LeaseAsk{.id = {1, 1}, .want = 1, .ttl = kTtl}, .leased = true}, now);
    EXPECT_EQ(answer.status.code(), absl::StatusCode::kFailedPrecondition);
  }
}

TEST_F(Leases, SurviveAChangeOfTheLimit) {
  Use(kHundredPerSecond);
  EXPECT_EQ(Ask({.node = 1, .number = 1}, 40).granted, 40u);
  Use({.algorithm = Algorithm::kTokenBucket, .requests = 50, .period = 1s});
  EXPECT_TRUE(Take(10));
  EXPECT_TRUE(events.carried_over);
  now += 1s;
  EXPECT_EQ(Remaining(), 10u) << "50 less what is leased";
  Ask({.node = 1, .number = 2}, 0, {{.number = 1, .spent = 0, .returned = true}});
  EXPECT_EQ(Remaining(), 50u);
}

TEST_F(Leases, MintNothingByAChangeOfTheLimit) {
  Use(kHundredPerSecond);
  EXPECT_EQ(Ask({.node = 1, .number = 1}, 40).granted, 40u);
  const Keyspace before = store.keyspace;
  const Instant begin = now;
  for (const Duration wait : {1900ms, 2100ms}) {
    SCOPED_TRACE(wait.count());
    store.keyspace = before;
    now = begin + wait;
    Use(kHundredPerSecond);
    const uint64_t left = Remaining();
    EXPECT_EQ(left, wait < kTtl ? 60u : 70u);
    for (const LimitSpec& to : {LimitSpec{.algorithm = Algorithm::kTokenBucket, .requests = 200, .period = 1s},
                                LimitSpec{.algorithm = Algorithm::kTokenBucket, .requests = 300, .period = 2s},
                                LimitSpec{.algorithm = Algorithm::kFixedWindow, .requests = 100, .period = 1h}}) {
      store.keyspace = before;
      Use(to);
      EXPECT_EQ(Remaining(), left) << model::Describe(to);
      EXPECT_TRUE(Take(1));
      EXPECT_EQ(Remaining(), left - 1) << model::Describe(to);
    }
  }
}

TEST_F(Leases, ABucketThatMayHaveBeenForgottenLearns) {
  for (const LimitSpec& spec :
       {kHundredPerSecond, LimitSpec{.algorithm = Algorithm::kLeakyBucket, .requests = 100, .period = 1s}}) {
    Use(spec);
    store.keyspace.Clear();
    store.context.epoch = 7;
    EXPECT_EQ(Ask({.node = 1, .number = 1}, 40).granted, 40u);
    const Keyspace replica = store.keyspace;
    for (const bool key_is_lost : {false, true}) {
      SCOPED_TRACE(key_is_lost);
      store.keyspace = replica;
      if (key_is_lost) store.keyspace.Clear();
      store.context.epoch = 8;
      store.context.epoch_changed = key_is_lost;
      const SharedAnswer denied = Do(store::Operation::kTake, 1);
      EXPECT_TRUE(events.learning);
      EXPECT_FALSE(denied.decision.allowed);
      EXPECT_EQ(denied.decision.retry_after, kTtl + 10ms);
      const LeaseGrant none = Ask({.node = 1, .number = 2}, 40, {{.number = 1, .spent = 0, .returned = true}});
      EXPECT_FALSE(events.learning) << "said once";
      EXPECT_EQ(none.granted, 0u);
      EXPECT_EQ(none.retry_after, kTtl + 10ms);
      const Instant begin = now;
      now += kTtl;
      EXPECT_FALSE(Take(1));
      now += 10ms;
      EXPECT_TRUE(Take(1));
      now += 1s;
      EXPECT_EQ(Remaining(), 100u);
      now = begin;
    }
    store.context.epoch_changed = false;
    now += 1h;
  }
}

TEST_F(Leases, AWindowThatMayHaveBeenForgottenIsSpent) {
  for (const Algorithm algorithm : {Algorithm::kFixedWindow, Algorithm::kSlidingWindowCounter}) {
    Use({.algorithm = algorithm, .requests = 100, .period = 10s});
    store.keyspace.Clear();
    now = Instant::FromNanos(1'790'000'001'000'000'000);
    store.context.epoch_changed = true;
    EXPECT_FALSE(Take(1));
    EXPECT_TRUE(events.learning);
    EXPECT_EQ(Ask({.node = 1, .number = 2}, 40).granted, 0u);
    now += 8s;
    EXPECT_FALSE(Take(1));
    store.context.epoch_changed = false;
    now += 6s;
    EXPECT_TRUE(Take(1));
  }
}

// Half of what is left, for any limit, and back again: the scripts multiply and divide as the kernels do.
TEST_F(Leases, OfAnyLimitAreExact) {
  model::Random random(20'261'121);
  constexpr uint64_t kU32Max = 0xffff'ffff;
  for (const Algorithm algorithm :
       {Algorithm::kTokenBucket, Algorithm::kFixedWindow, Algorithm::kSlidingWindowCounter}) {
    for (int i = 0; i < 3000; ++i) {
      const LimitSpec spec = model::RandomSpec(random, algorithm);
      if (spec.requests == 0) continue;
      SCOPED_TRACE(model::Describe(spec));
      store.keyspace.Clear();
      Use(spec);
      now = Instant::FromNanos(static_cast<int64_t>(1 + model::AnySize(random, 61)));
      const uint64_t most = std::min(limit->limit.capacity(), kU32Max);
      ASSERT_TRUE(Take(Between(random, 0, most)));
      now += Duration(static_cast<int64_t>(model::AnySize(random, 30)));
      const uint64_t left = Remaining();
      const LeaseGrant grant = Ask({.node = 1, .number = 1}, kU32Max);
      ASSERT_EQ(grant.granted, left == 0 ? 0 : std::max<uint64_t>(1, std::min(left, kU32Max) / 2));
      ASSERT_EQ(grant.remaining, left - grant.granted);
      const uint64_t spent = Between(random, 0, grant.granted);
      if (grant.granted > 0 && grant.ttl == 0ns) continue;
      Ask({.node = 1, .number = 2}, 0, {{.number = 1, .spent = spent, .returned = true}});
      ASSERT_EQ(Remaining(), left - spent);
    }
  }
}

TEST_F(Leases, ThatOutweighAMuchSmallerLimitLeaveNothing) {
  Use({.algorithm = Algorithm::kTokenBucket, .requests = 4'000'000'000, .period = 1s});
  EXPECT_EQ(Ask({.node = 1, .number = 1}, 2'000'000'000).granted, 2'000'000'000u);
  Use({.algorithm = Algorithm::kTokenBucket, .requests = 1, .period = 1s, .burst = 10});
  EXPECT_FALSE(Take(1)) << "another period: the smaller of what was left and the capacity, and less what is leased";
  now += 1s;
  EXPECT_FALSE(Take(1));
  EXPECT_EQ(events, store::SharedEvents{});
  now += 3s;
  EXPECT_TRUE(Take(2));
}

// ---- Conservation

// Nodes that ask, spend, report and return over a network that loses, repeats, delays and reorders.
class Fleet {
 public:
  enum class Forgetting : uint8_t { kNoticed, kUnnoticed };

  Fleet(uint64_t seed, const LimitSpec& spec, Forgetting forgetting)
      : random_(seed), spec_(spec), forgetting_(forgetting), limit_(store_.Intern(spec)) {
    store_.context.epoch = 1;
    for (uint64_t& weight : weights_) weight = Between(random_, 1, 8);
  }

  // The first broken promise, or nothing.
  std::string Run(int steps) {
    for (int i = 0; i < steps && wrong_.empty(); ++i) {
      Step();
      if (wrong_.empty()) CheckInvariant();
    }
    return wrong_.empty() ? "" : fmt::format("{}\n{}", wrong_, story_);
  }
  uint64_t spent() const { return spent_; }

 private:
  struct Lease {
    uint64_t number;
    uint64_t granted;
    uint64_t spent = 0;
    Instant ends;
  };
  struct Message {
    LeaseId id;
    uint64_t want;
    uint64_t least;
    std::vector<LeaseReport> reports;
    Instant sent;
  };
  struct Reply {
    LeaseId id;
    LeaseGrant grant;
    Instant sent;
  };
  struct Node {
    std::vector<Lease> leases;
    std::vector<LeaseReport> to_return;
    uint64_t numbers = 0;
    uint64_t accepted = 0;  // the highest lease that was accepted
  };

  // What happens how often differs from fleet to fleet, so that each kind is rare in some.
  void Step() {
    const size_t n = random_() % nodes_.size();
    uint64_t draw = random_() % (weights_[0] + weights_[1] + weights_[2] + weights_[3] + weights_[4] + weights_[5] + 4);
    const auto drawn = [&](uint64_t weight) {
      if (draw < weight) return true;
      draw -= weight;
      return false;
    };
    if (drawn(weights_[0])) return Wait();
    if (drawn(weights_[1])) return SendAsk(n);
    if (drawn(weights_[2])) return DeliverMessage();
    if (drawn(weights_[3])) return DeliverReply();
    if (drawn(weights_[4])) return Spend(nodes_[n]);
    if (drawn(weights_[5])) return TakeExactly();
    if (draw > 0) return Spend(nodes_[n]);
    if (OneIn(random_, 2)) return GiveUp(nodes_[n]);
    if (OneIn(random_, 10)) LoseState();
  }

  void Wait() {
    const auto pace = static_cast<uint64_t>(spec_.period.count()) / spec_.requests;
    if (!granted_.empty() && OneIn(random_, 3)) {
      // Just before the end of the latest lease, or at it.
      now_ = std::max(now_, latest_end_ - Duration(OneIn(random_, 2) ? 1 : 0));
    } else {
      now_ += Duration(static_cast<int64_t>(Between(random_, 0, OneIn(random_, 5) ? 2'500'000'000 : 4 * pace)));
    }
    Note("at {}", now_.ns);
  }

  void SendAsk(size_t n) {
    Node& node = nodes_[n];
    Message message{.id = {.node = n, .number = ++node.numbers},
                    .want = OneIn(random_, 4) ? 0 : Between(random_, 1, 2 * spec_.requests),
                    .least = Between(random_, 1, 3),
                    .reports = node.to_return,
                    .sent = now_};
    if (OneIn(random_, 2)) node.to_return.clear();  // sometimes said again
    for (const Lease& lease : node.leases) message.reports.push_back({.number = lease.number, .spent = lease.spent});
    messages_.push_back(std::move(message));
  }

  void DeliverMessage() {
    if (messages_.empty()) return;
    const size_t i = random_() % messages_.size();
    const Message message = messages_[i];
    if (!OneIn(random_, 5)) messages_.erase(messages_.begin() + static_cast<std::ptrdiff_t>(i));
    if (messages_.size() > 20) messages_.pop_front();
    if (OneIn(random_, 8)) return;  // lost
    const SharedAnswer answer = store_.Ask({.name = "b",
                                            .limit = limit_,
                                            .lease = LeaseAsk{.id = message.id,
                                                              .want = message.want,
                                                              .least = message.least,
                                                              .ttl = kTtl,
                                                              .reports = message.reports},
                                            .leased = true},
                                           now_);
    if (!answer.status.ok()) wrong_ = answer.status.ToString();
    Note("lease {}:{} wants {} gets {}", message.id.node, message.id.number, message.want, answer.grant.granted);
    for (const LeaseReport& report : message.reports) {
      Note("  report {} spent {} {}", report.number, report.spent, report.returned ? "returned" : "");
      const auto held = granted_.find({message.id.node, report.number});
      if (held == granted_.end()) continue;
      held->second.reported = std::min(held->second.granted, std::max(held->second.reported, report.spent));
      if (report.returned) granted_.erase(held);
    }
    if (answer.grant.granted > 0) {
      const auto [held, fresh] = granted_.try_emplace({message.id.node, message.id.number});
      if (fresh) held->second = {.granted = answer.grant.granted, .ends = latest_end_ = now_ + answer.grant.ttl};
      replies_.push_back({message.id, answer.grant, message.sent});
    }
  }

  void DeliverReply() {
    if (replies_.empty()) return;
    const size_t i = random_() % replies_.size();
    const Reply reply = replies_[i];
    if (!OneIn(random_, 4)) replies_.erase(replies_.begin() + static_cast<std::ptrdiff_t>(i));
    Node& node = nodes_[reply.id.node];
    // Its life began before it was asked for; a reply that comes again or after a later one is thrown away.
    const Instant ends = reply.sent + reply.grant.ttl;
    if (ends <= now_ || reply.id.number <= node.accepted) return;
    node.accepted = reply.id.number;
    node.leases.push_back({.number = reply.id.number, .granted = reply.grant.granted, .ends = ends});
  }

  void Spend(Node& node) {
    std::erase_if(node.leases, [&](const Lease& lease) { return lease.ends <= now_; });
    if (node.leases.empty()) return;
    Lease& lease = node.leases[random_() % node.leases.size()];
    const uint64_t left = lease.granted - lease.spent;
    const uint64_t cost = OneIn(random_, 2) ? left : Between(random_, 0, left);
    lease.spent += cost;
    Note("spends {} of lease {}", cost, lease.number);
    Admit(cost);
  }

  void TakeExactly() {
    const uint64_t cost = Between(random_, 1, spec_.requests);
    const SharedAnswer answer = store_.Ask({.name = "b", .limit = limit_, .cost = cost, .leased = true}, now_);
    if (!answer.status.ok()) wrong_ = answer.status.ToString();
    Note("takes {}: {}", cost, answer.decision.allowed);
    if (answer.decision.allowed) Admit(cost);
  }

  void GiveUp(Node& node) {
    if (node.leases.empty()) return;
    const Lease lease = node.leases.back();
    node.leases.pop_back();
    node.to_return.push_back({.number = lease.number, .spent = lease.spent, .returned = true});
  }

  // A replica that lacks the latest writes takes over, or one that has nothing.
  void LoseState() {
    if (replica_ && OneIn(random_, 2)) {
      store_.keyspace = *replica_;
    } else {
      store_.keyspace.Clear();
    }
    replica_.reset();
    if (forgetting_ == Forgetting::kNoticed) {
      ++store_.context.epoch;
      store_.context.epoch_changed = true;
    }
    Note("epoch {}", store_.context.epoch);
    granted_.clear();
    TakeExactly();
    store_.context.epoch_changed = false;
    replica_ = store_.keyspace;
  }

  // All that is admitted, over all nodes: one bucket would have allowed it.
  void Admit(uint64_t cost) {
    if (cost == 0) return;
    spent_ += cost;
    if (!Decide(limit_->limit, reference_, no_hits_, cost, now_).allowed)
      wrong_ = "more was admitted than one bucket would";
  }

  void CheckInvariant() {
    uint64_t owed = 0;
    for (const auto& [id, held] : granted_) {
      if (held.ends > now_) owed += held.granted - held.reported;
    }
    const SharedAnswer look = store_.Ask(
        {.name = "b", .limit = limit_, .cost = 0, .operation = store::Operation::kLook, .leased = true}, now_);
    if (!look.status.ok()) wrong_ = look.status.ToString();
    if (look.decision.remaining + owed > limit_->limit.capacity()) {
      wrong_ = fmt::format("{} tokens and {} leased", look.decision.remaining, owed);
    }
    if (store_.keyspace.Contains("b", now_) && !store_.keyspace.TimeToLive("b", now_)) wrong_ = "the key has no end";
  }

  template <typename... Args>
  void Note(fmt::format_string<Args...> format, Args&&... args) {
    if (story_.size() > 6'000) story_ = "...\n";
    story_ += fmt::format(format, std::forward<Args>(args)...) + '\n';
  }

  struct Held {
    uint64_t granted = 0;
    uint64_t reported = 0;
    Instant ends{0};
  };

  model::Random random_;
  LimitSpec spec_;
  Forgetting forgetting_;
  std::array<uint64_t, 6> weights_{};  // wait, ask, message, reply, spend, take
  LuaStore store_;
  store::LimitHandle limit_;
  Instant now_ = Instant::FromNanos(1'790'000'000'000'000'000);
  std::vector<Node> nodes_{3};
  std::deque<Message> messages_;
  std::deque<Reply> replies_;
  std::map<std::pair<uint64_t, uint64_t>, Held> granted_;  // as the store must know it
  Instant latest_end_{0};
  std::optional<Keyspace> replica_;
  algorithm::BucketState reference_{};
  testing::DequeHitLog no_hits_;
  uint64_t spent_ = 0;
  std::string wrong_;
  std::string story_;
};

TEST(LeaseProperty, AFleetAdmitsNoMoreThanOneBucket) {
  constexpr uint64_t kSeed = 20'261'121;
  constexpr int kFleets = 400;
  constexpr int kSteps = 250;
  const std::vector<LimitSpec> specs = {
      {.algorithm = Algorithm::kTokenBucket, .requests = 100, .period = 1s},
      {.algorithm = Algorithm::kTokenBucket, .requests = 7, .period = 60s, .burst = 20},
      {.algorithm = Algorithm::kLeakyBucket, .requests = 30, .period = 1s, .burst = 50},
      {.algorithm = Algorithm::kFixedWindow, .requests = 50, .period = 5s},
      {.algorithm = Algorithm::kSlidingWindowCounter, .requests = 50, .period = 5s},
  };
  uint64_t spent = 0;
  for (uint64_t i = 0; i < kFleets; ++i) {
    Fleet fleet(kSeed + i, specs[i % specs.size()], Fleet::Forgetting::kNoticed);
    const std::string wrong = fleet.Run(kSteps);
    ASSERT_TRUE(wrong.empty()) << "seed " << kSeed + i << " " << model::Describe(specs[i % specs.size()]) << ": "
                               << wrong;
    spent += fleet.spent();
  }
  EXPECT_GT(spent, 40'000u) << "they hardly did anything";
}

// A canary: without an epoch the same fleets would admit too much.
TEST(LeaseProperty, AStoreThatForgetsUnnoticedIsCaught) {
  int caught = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Fleet fleet(seed, kHundredPerSecond, Fleet::Forgetting::kUnnoticed);
    if (!fleet.Run(250).empty()) ++caught;
  }
  EXPECT_GT(caught, 10);
}

}  // namespace
}  // namespace headgate::redis_host
