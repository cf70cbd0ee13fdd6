// A limit is changed and then changed back. A bucket without requests in between is carried through
// the intermediate limit once, as in the reference model.
#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "headgate/algorithm/decide.h"
#include "tests/model/random_walk.h"
#include "tests/redis/kinds.h"
#include "tests/redis/lua_store.h"

namespace headgate::redis_host {
namespace lua_return_test {

using algorithm::Algorithm;
using algorithm::Cost;
using algorithm::Decision;
using algorithm::LimitSpec;
using base::Duration;
using base::Instant;
using model::Between;
using model::OneIn;
using store::LimitChange;
using store::Operation;
using store::SharedAnswer;
using namespace std::chrono_literals;

constexpr Instant kBegin = Instant::FromNanos(1'790'812'800'000'000'000);

// Every kind, with intervals of a whole number of nanoseconds and others.
const std::vector<LimitSpec> kKinds =
    With(With(KindsThatLease(20, 10s), KindsThatNeverLease(20, 10s)),
         {{.algorithm = Algorithm::kTokenBucket, .requests = 7, .period = 10s, .burst = 30},
          {.algorithm = Algorithm::kLeakyBucket, .requests = 30, .period = 60s},
          {.algorithm = Algorithm::kLeakyBucketQueue, .requests = 9, .period = 10s, .burst = 20},
          {.algorithm = Algorithm::kSlidingWindowCounter,
           .requests = 20,
           .period = 10s,
           .count_denied = true}});

// The same kind with other numbers, as in most changes of rules.
LimitSpec Resized(const LimitSpec& spec, uint64_t requests) {
  LimitSpec other = spec;
  other.requests = requests;
  return other;
}

// The rule on one instance: the present limit and the earlier ones.
class Rule {
 public:
  explicit Rule(LuaStore& store, const LimitSpec& spec)
      : store_(store), limit_(store.Intern(spec)) {}

  void Become(const LimitSpec& spec, Instant at) {
    history_.push_back({limit_.get(), at});
    pinned_.push_back(limit_);
    limit_ = store_.Intern(spec);
  }

  // `now` is this instance's clock, `store_now` the store's.
  SharedAnswer Ask(std::string_view name, Cost cost, Operation operation, Instant now,
                   Instant store_now) const {
    return store_.Ask({.name = name,
                       .limit = limit_,
                       .cost = cost,
                       .operation = operation,
                       .history = history_,
                       .now = now},
                      store_now);
  }

 private:
  LuaStore& store_;
  store::LimitHandle limit_;
  std::vector<LimitChange> history_;
  std::vector<store::LimitHandle> pinned_;
};

enum class Keeps : uint8_t { kAll, kAsLongAsNeeded };

// A few buckets of a rule that changes back and forth between three limits, and their models.
class Walk {
 public:
  Walk(uint64_t seed, Keeps keeps) : random_(seed), keeps_(keeps) {
    if (keeps == Keeps::kAll) store_.context.kept_least = 24h * 40;
    spec_ = kKinds[random_() % kKinds.size()];
    // The model does not support a queue of 0 requests that was another kind of bucket.
    const uint64_t least = spec_.algorithm == Algorithm::kLeakyBucketQueue ? 1 : 0;
    const bool same_kind = OneIn(random_, 2);
    specs_ = {
        spec_, Resized(spec_, Between(random_, least, 120)),
        same_kind ? Resized(spec_, Between(random_, 1, 60)) : kKinds[random_() % kKinds.size()]};
    rule_.emplace(store_, spec_);
    for (Bucket& bucket : buckets_) bucket.model.emplace(spec_);
  }

  // Describes the first error; empty if there is none.
  std::string Step() {
    if (OneIn(random_, 5)) {
      Change(specs_[random_() % specs_.size()]);
      return "";
    }
    now_ += Duration(static_cast<int64_t>(Between(random_, 0, 20) * model::AnySize(random_, 31)));
    const size_t index = random_() % buckets_.size();
    Bucket& bucket = buckets_[index];
    const std::string name = fmt::format("b{}", index);
    if (!store_.keyspace.Contains(name, now_) && !bucket.model->AsIfNeverUsed(now_.ns)) {
      if (keeps_ == Keeps::kAll) return story_ + name + " is gone";
      if (bucket.changes_unseen == 0) return story_ + name + " was deleted too early";
      ++forgotten_;
      bucket.model->Reset();
    }
    const bool refunds = OneIn(random_, 8) && spec_.algorithm != Algorithm::kLeakyBucketQueue;
    const Cost cost = OneIn(random_, 4) ? 0 : OneIn(random_, 3) ? Between(random_, 1, 40) : 1;
    // A peek writes nothing, and a limit of 0 is decided without the store.
    if ((refunds || cost > 0) && spec_.requests > 0) bucket.changes_unseen = 0;
    story_ += fmt::format("{} {} {} at {}\n", name, refunds ? "refund" : "cost", cost,
                          (now_ - kBegin).count());
    const Decision expected =
        refunds ? bucket.model->Refund(cost, now_.ns) : bucket.model->Decide(cost, now_.ns);
    const SharedAnswer answer = rule_->Ask(
        name, cost, refunds ? Operation::kRefund : Operation::kTake, now_ + kAhead, now_);
    if (!answer.status.ok()) return story_ + answer.status.ToString();
    if (answer.decision == expected) return "";
    return fmt::format("{}model: {}\nscript: {}", story_, model::Describe(expected),
                       model::Describe(answer.decision));
  }

  int forgotten() const { return forgotten_; }

 private:
  struct Bucket {
    std::optional<model::ReferenceBucket> model;
    int changes_unseen = 0;
  };

  // The instance's clock is ahead of the server's.
  static constexpr Duration kAhead = 40min;

  void Change(const LimitSpec& to) {
    if (to == spec_) return;
    story_ +=
        fmt::format("the limit becomes {} at {}\n", model::Describe(to), (now_ - kBegin).count());
    rule_->Become(to, now_ + kAhead);
    for (Bucket& bucket : buckets_) {
      bucket.model->Change(to, now_.ns);
      ++bucket.changes_unseen;
    }
    spec_ = to;
    now_ += Duration(1);  // a request in the same nanosecond counts as one nanosecond later
  }

  model::Random random_;
  const Keeps keeps_;
  LuaStore store_;
  LimitSpec spec_;
  std::array<LimitSpec, 3> specs_;
  std::optional<Rule> rule_;
  std::array<Bucket, 4> buckets_;
  Instant now_ = kBegin;
  int forgotten_ = 0;
  std::string story_;
};

TEST(LimitsThatReturn, CarryABucketOverLikeTheModel) {
  for (uint64_t seed = 1; seed <= 600; ++seed) {
    Walk walk(seed, Keeps::kAll);
    for (int i = 0; i < 200; ++i) ASSERT_EQ(walk.Step(), "") << "seed " << seed;
  }
}

// The store deletes a bucket that is full under the limit of the request, even if it missed a
// change that would have kept the bucket. The bucket then starts as an unused one, and nothing else
// differs.
TEST(LimitsThatReturn, AreLostOnlyIfNoRequestCameSinceTheChange) {
  int forgotten = 0;
  for (uint64_t seed = 1; seed <= 600; ++seed) {
    Walk walk(seed, Keeps::kAsLongAsNeeded);
    for (int i = 0; i < 200; ++i) ASSERT_EQ(walk.Step(), "") << "seed " << seed;
    forgotten += walk.forgotten();
  }
  EXPECT_GT(forgotten, 100);
}

// Two instances. The second learns of every change later, and their clocks are wrong.
class TwoInstances : public ::testing::Test {
 protected:
  struct Course {
    LimitSpec limit, between;
    Duration away;  // how long the other limit is in force
    Duration lag;   // of the second instance
  };
  enum class Asked : uint8_t { kByFirst, kByBoth };

  // The rest at the end, if the first request after the changes goes to the bucket that was used
  // before them.
  uint64_t Remaining(const Course& course, Asked asked) {
    LuaStore store;
    store.context.kept_least = 24h * 40;
    Rule first(store, course.limit);
    Rule second(store, course.limit);
    const Instant changed = kBegin + 100ms;
    const Instant back = changed + course.away;
    EXPECT_TRUE(first.Ask("b", 9, Operation::kTake, kBegin + kFirst, kBegin).decision.allowed);
    first.Become(course.between, changed + kFirst);
    first.Become(course.limit, back + kFirst);
    second.Become(course.between, changed + course.lag + kSecond);
    second.Become(course.limit, back + course.lag + kSecond);
    const Instant soon = back + 5ms;
    EXPECT_TRUE(first.Ask("b", 1, Operation::kTake, soon + kFirst, soon).status.ok());
    const Instant late = back + course.lag + 1ms;
    const int calls = store.calls;
    const auto answer = asked == Asked::kByBoth
                            ? second.Ask("b", 0, Operation::kPeek, late + kSecond, late)
                            : first.Ask("b", 0, Operation::kPeek, late + kFirst, late);
    EXPECT_TRUE(answer.status.ok()) << answer.status;
    EXPECT_EQ(store.calls, calls + 1);
    return answer.decision.remaining;
  }

  static constexpr Duration kFirst = 1h;
  static constexpr Duration kSecond = -2h;
};

TEST_F(TwoInstances, CarryABucketOnceIfTheSecondLearnsOfTheChangeBeforeItIsUndone) {
  for (const LimitSpec& limit : kKinds) {
    for (const LimitSpec& kind : kKinds) {
      for (const uint64_t requests : {3u, 15u, 90u}) {
        const Course course{
            .limit = limit, .between = Resized(kind, requests), .away = 900ms, .lag = 700ms};
        if (course.between == limit) continue;
        EXPECT_EQ(Remaining(course, Asked::kByBoth), Remaining(course, Asked::kByFirst))
            << model::Describe(limit) << " through " << model::Describe(course.between);
      }
    }
  }
}

// The second instance learns of both changes when the first has already undone them, so they take
// effect there only then. The bucket is carried through them again, and has at most as much as
// before, plus what the intermediate limit refills while it is in force.
TEST_F(TwoInstances, AddNothingIfTheSecondLearnsOfTheChangeAfterItIsUndone) {
  int less = 0;
  for (const LimitSpec& limit : kKinds) {
    for (const LimitSpec& kind : kKinds) {
      for (const uint64_t requests : {0u, 3u, 15u, 90u}) {
        for (const Duration away : {0ms, 200ms}) {
          const Course course{
              .limit = limit, .between = Resized(kind, requests), .away = away, .lag = 600ms};
          if (course.between == limit) continue;
          const uint64_t once = Remaining(course, Asked::kByFirst);
          const uint64_t twice = Remaining(course, Asked::kByBoth);
          const algorithm::Limit between = *algorithm::Limit::Make(course.between);
          const uint64_t given = away.count() == 0 || between.denies_all()
                                     ? 0
                                     : 1 + requests * static_cast<uint64_t>(away / 1ms) / 10000;
          EXPECT_LE(twice, once + given)
              << model::Describe(limit) << " through " << model::Describe(course.between);
          less += twice < once ? 1 : 0;
        }
      }
    }
  }
  EXPECT_GT(less, 0) << "it is carried twice";
}

TEST(LimitsThatReturn, CostOneMoreCallForABucketWithoutRequestsSince) {
  for (const LimitSpec& spec : kKinds) {
    LuaStore store;
    Rule rule(store, spec);
    EXPECT_TRUE(rule.Ask("b", 2, Operation::kTake, kBegin, kBegin).decision.allowed);
    rule.Become(Resized(spec, 5), kBegin + 10ms);
    rule.Become(spec, kBegin + 20ms);
    for (const auto& [name, calls] : {std::pair{"b", 2}, {"b", 1}, {"new", 1}, {"new", 1}}) {
      store.calls = 0;
      const SharedAnswer answer = rule.Ask(name, 1, Operation::kTake, kBegin + 30ms, kBegin + 30ms);
      EXPECT_TRUE(answer.status.ok()) << answer.status;
      EXPECT_EQ(store.calls, calls) << model::Describe(spec) << " " << name;
      EXPECT_EQ(answer.events.carried_over, calls == 2);
    }
  }
}

// A debt is paid under the limit stored in the bucket. Here this is the present limit, although
// there was another in between.
TEST(LimitsThatReturn, ADebtDoesNotHideTheIntermediateLimit) {
  LuaStore store;
  const LimitSpec hundred{.requests = 100, .period = 100s};
  const store::LimitHandle limit = store.Intern(hundred);
  const store::LimitHandle ten = store.Intern(Resized(hundred, 10));
  EXPECT_TRUE(store.Ask({.name = "b", .limit = limit, .cost = 50}, kBegin).decision.allowed);
  const std::array<LimitChange, 2> history{LimitChange{limit.get(), kBegin}, {ten.get(), kBegin}};
  const Instant now = kBegin + 1ms;
  const SharedAnswer debt = store.Ask(
      {.name = "b", .limit = limit, .cost = 4, .keeps_limit = true, .history = history, .now = now},
      now);
  EXPECT_EQ(debt.decision.remaining, 6u);
  EXPECT_TRUE(debt.events.carried_over);
}

TEST(LimitsThatReturn, ALeaseIsGrantedFromTheRestAfterTheChange) {
  LuaStore store;
  const LimitSpec hundred{.requests = 100, .period = 100s};
  const store::LimitHandle limit = store.Intern(hundred);
  const store::LimitHandle ten = store.Intern(Resized(hundred, 10));
  EXPECT_TRUE(store.Ask({.name = "b", .limit = limit, .cost = 50}, kBegin).decision.allowed);
  const std::array<LimitChange, 2> history{LimitChange{limit.get(), kBegin}, {ten.get(), kBegin}};
  const Instant now = kBegin + 1ms;
  const store::LeaseAsk ask{
      .id = {.node = 1, .number = 1}, .want = 100, .brief = 100, .parts = 1, .ttl = 2s};
  const SharedAnswer answer =
      store.Ask({.name = "b", .limit = limit, .lease = ask, .history = history, .now = now}, now);
  EXPECT_EQ(answer.grant.granted, 10u) << "not 50";
  EXPECT_EQ(answer.decision.remaining, 0u);
}

}  // namespace lua_return_test
}  // namespace headgate::redis_host
