// The invariant of leases, checked in the Lua host after every step:
//
//   tokens(shared) + Σ unexpired leases (granted − reported) ≤ capacity
//
// As a result, all nodes together admit at most as much as one bucket would, even if messages are
// lost, repeated, delayed or reordered.
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
namespace lua_fleet_test {

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

const LimitSpec kHundredPerSecond{
    .algorithm = Algorithm::kTokenBucket, .requests = 100, .period = 1s};

// Nodes that ask, spend, report and return over a network that loses, repeats, delays and reorders
// messages.
class Fleet {
 public:
  enum class Forgetting : uint8_t { kNever, kSometimes };

  Fleet(uint64_t seed, const LimitSpec& spec, Forgetting forgetting)
      : random_(seed), spec_(spec), forgetting_(forgetting), limit_(store_.Intern(spec)) {
    for (uint64_t& weight : weights_) weight = Between(random_, 1, 8);
  }

  // Describes the first broken invariant; empty if there is none.
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
    uint64_t brief;
    uint32_t parts;
    uint64_t cost;
    std::vector<LeaseReport> reports;
    Instant sent;
    bool admitted = false;  // the request, by an earlier delivery
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
    uint64_t accepted = 0;  // the highest lease number accepted
  };

  // The frequencies of events differ between fleets, so that each kind of event is rare in some
  // fleet.
  void Step() {
    const size_t n = random_() % nodes_.size();
    uint64_t draw = random_() % (weights_[0] + weights_[1] + weights_[2] + weights_[3] +
                                 weights_[4] + weights_[5] + 4);
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
    if (forgetting_ == Forgetting::kSometimes && OneIn(random_, 10)) LoseState();
  }

  void Wait() {
    const auto pace = static_cast<uint64_t>(spec_.period.count()) / spec_.requests;
    if (!granted_.empty() && OneIn(random_, 3)) {
      // Shortly before the latest lease ends, or exactly at its end.
      now_ = std::max(now_, latest_end_ - Duration(OneIn(random_, 2) ? 1 : 0));
    } else {
      now_ += Duration(
          static_cast<int64_t>(Between(random_, 0, OneIn(random_, 5) ? 2'500'000'000 : 4 * pace)));
    }
    Note("at {}", now_.ns);
  }

  void SendAsk(size_t n) {
    Node& node = nodes_[n];
    Message message{.id = {.node = n, .number = ++node.numbers},
                    .want = OneIn(random_, 4) ? 0 : Between(random_, 1, 2 * spec_.requests),
                    .brief = Between(random_, 0, 2 * spec_.requests),
                    .parts = static_cast<uint32_t>(Between(random_, 1, 3)),
                    .cost = OneIn(random_, 2) ? 0 : Between(random_, 1, spec_.requests / 4 + 1),
                    .reports = node.to_return,
                    .sent = now_};
    if (OneIn(random_, 2)) node.to_return.clear();  // sometimes reported again
    for (const Lease& lease : node.leases)
      message.reports.push_back({.number = lease.number, .spent = lease.spent});
    messages_.push_back(std::move(message));
  }

  void DeliverMessage() {
    if (messages_.empty()) return;
    const size_t i = random_() % messages_.size();
    Message message = std::move(messages_[i]);
    messages_.erase(messages_.begin() + static_cast<std::ptrdiff_t>(i));
    if (messages_.size() > 20) messages_.pop_front();
    if (OneIn(random_, 8)) return;  // lost
    const SharedAnswer answer = store_.Ask({.name = "b",
                                            .limit = limit_,
                                            .lease = LeaseAsk{.id = message.id,
                                                              .cost = message.cost,
                                                              .want = message.want,
                                                              .brief = message.brief,
                                                              .parts = message.parts,
                                                              .ttl = kTtl,
                                                              .reports = message.reports},
                                            .leased = true},
                                           now_);
    if (!answer.status.ok()) wrong_ = answer.status.ToString();
    Note("lease {}:{} takes {}: {}, wants {} gets {}", message.id.node, message.id.number,
         message.cost, answer.decision.allowed, message.want, answer.grant.granted);
    if (answer.decision.allowed && !std::exchange(message.admitted, true)) Admit(message.cost);
    for (const LeaseReport& report : message.reports) {
      Note("  report {} spent {} {}", report.number, report.spent,
           report.returned ? "returned" : "");
      const auto held = granted_.find({message.id.node, report.number});
      if (held == granted_.end()) continue;
      held->second.reported =
          std::min(held->second.granted, std::max(held->second.reported, report.spent));
      if (report.returned) granted_.erase(held);
    }
    if (answer.grant.granted > 0) {
      const auto [held, fresh] = granted_.try_emplace({message.id.node, message.id.number});
      if (fresh)
        held->second = {.granted = answer.grant.granted,
                        .ends = latest_end_ = now_ + answer.grant.ttl};
      replies_.push_back({message.id, answer.grant, message.sent});
    }
    if (OneIn(random_, 5)) messages_.push_back(std::move(message));  // it comes again
  }

  void DeliverReply() {
    if (replies_.empty()) return;
    const size_t i = random_() % replies_.size();
    const Reply reply = replies_[i];
    if (!OneIn(random_, 4)) replies_.erase(replies_.begin() + static_cast<std::ptrdiff_t>(i));
    Node& node = nodes_[reply.id.node];
    // A lease's life begins when the node asks for it. The node discards a reply that is repeated
    // or comes after a later one.
    const Instant ends = reply.sent + reply.grant.ttl;
    if (ends <= now_ || reply.id.number <= node.accepted) return;
    node.accepted = reply.id.number;
    node.leases.push_back(
        {.number = reply.id.number, .granted = reply.grant.granted, .ends = ends});
  }

  void Spend(Node& node) {
    std::erase_if(node.leases, [&](const Lease& lease) {
      if (lease.ends > now_) return false;
      // A lease that is over for the node may be over at the store too.
      node.to_return.push_back({.number = lease.number, .spent = lease.spent, .returned = true});
      return true;
    });
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
    const SharedAnswer answer =
        store_.Ask({.name = "b", .limit = limit_, .cost = cost, .leased = true}, now_);
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

  // A replica without the latest writes takes over, or one without any data.
  void LoseState() {
    if (replica_ && OneIn(random_, 2)) {
      store_.keyspace = *replica_;
    } else {
      store_.keyspace.Clear();
    }
    replica_.reset();
    Note("the store loses data");
    granted_.clear();
    TakeExactly();
    replica_ = store_.keyspace;
  }

  // All admitted requests. One bucket would have admitted at least as many.
  void Admit(uint64_t cost) {
    if (cost == 0) return;
    spent_ += cost;
    if (!Decide(limit_->limit, reference_, no_hits_, cost, now_).allowed)
      wrong_ = "more was admitted than one bucket would admit";
  }

  void CheckInvariant() {
    uint64_t owed = 0;
    for (const auto& [id, held] : granted_) {
      if (held.ends > now_) owed += held.granted - held.reported;
    }
    const SharedAnswer look = store_.Ask({.name = "b",
                                          .limit = limit_,
                                          .cost = 0,
                                          .operation = store::Operation::kPeek,
                                          .leased = true},
                                         now_);
    if (!look.status.ok()) wrong_ = look.status.ToString();
    if (look.decision.remaining + owed > limit_->limit.capacity()) {
      wrong_ = fmt::format("{} tokens and {} leased", look.decision.remaining, owed);
    }
    if (store_.keyspace.Contains("b", now_) && !store_.keyspace.TimeToLive("b", now_))
      wrong_ = "the key does not expire";
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
  std::array<uint64_t, 6> weights_{};  // for: wait, ask, message, reply, spend, take
  LuaStore store_;
  store::LimitHandle limit_;
  Instant now_ = Instant::FromNanos(1'790'000'000'000'000'000);
  std::vector<Node> nodes_{3};
  std::deque<Message> messages_;
  std::deque<Reply> replies_;
  std::map<std::pair<uint64_t, uint64_t>, Held> granted_;  // as the store must have stored it
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
    Fleet fleet(kSeed + i, specs[i % specs.size()], Fleet::Forgetting::kNever);
    const std::string wrong = fleet.Run(kSteps);
    ASSERT_TRUE(wrong.empty()) << "seed " << kSeed + i << " "
                               << model::Describe(specs[i % specs.size()]) << ": " << wrong;
    spent += fleet.spent();
  }
  EXPECT_GT(spent, 40'000u) << "the nodes spent too little for a test";
}

// A canary: a store that loses data admits too much, and the test detects it.
TEST(LeaseProperty, AStoreThatLosesDataIsDetected) {
  int caught = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Fleet fleet(seed, kHundredPerSecond, Fleet::Forgetting::kSometimes);
    if (!fleet.Run(250).empty()) ++caught;
  }
  EXPECT_GT(caught, 10);
}

}  // namespace lua_fleet_test
}  // namespace headgate::redis_host
