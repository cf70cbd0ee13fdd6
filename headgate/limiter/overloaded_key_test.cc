// One key with more demand on several instances than its limit allows: the number of calls for each
// instance, and the share that each is granted. The store is a model of a token bucket, or of a
// fixed window, that grants leases.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <utility>
#include <vector>

#include "headgate/limiter/ask_budget.h"
#include "headgate/limiter/lease_book.h"

namespace headgate::limiter {
namespace overloaded_key_test {

using base::BootTime;
using base::Duration;
using namespace std::chrono_literals;

constexpr base::Hash128 kKey{7, 9};
constexpr Duration kTtl = 2s;

// Tokens are counted in nanoseconds; each is worth `interval`.
class Bucket {
 public:
  // `window`: all requests return when a window begins, and none before; zero: a token bucket.
  Bucket(int64_t capacity, Duration interval, bool full, Duration window)
      : capacity_(capacity), interval_(interval.count()), window_(window) {
    level_ = full ? capacity_ * interval_ : 0;
  }

  store::LeaseGrant Ask(const store::LeaseAsk& ask, BootTime now) {
    Refill(now);
    for (const store::LeaseReport& report : ask.reports) {
      const auto found = leases_.find({ask.id.node, report.number});
      if (found == leases_.end()) continue;
      found->second.reported = static_cast<int64_t>(report.spent);
      if (!report.returned) continue;
      level_ += (found->second.granted - found->second.reported) * interval_;
      leases_.erase(found);
    }
    store::LeaseGrant grant{.ttl =
                                window_ == 0s ? ask.ttl : std::min(ask.ttl, UntilWindowEnds(now))};
    std::set<uint64_t> holders{ask.id.node};
    for (const auto& [id, lease] : leases_) holders.insert(id.first);
    grant.holders = static_cast<uint32_t>(holders.size());
    const int64_t tokens = level_ / interval_;
    const auto least = static_cast<int64_t>(ask.least);
    if (ask.want > 0 && tokens >= least) {
      const int64_t share = std::max(static_cast<int64_t>(ask.share),
                                     tokens / (2 * static_cast<int64_t>(holders.size())));
      const int64_t granted =
          std::min({static_cast<int64_t>(ask.want), tokens, std::max(least, share)});
      leases_[{ask.id.node, ask.id.number}] = {.granted = granted, .ends = now + grant.ttl};
      level_ -= granted * interval_;
      grant.granted = static_cast<uint64_t>(granted);
    } else if (ask.want > 0) {
      grant.retry_after = RetryAfter(least * interval_, now);
    }
    grant.remaining = static_cast<uint64_t>(level_ / interval_);
    return grant;
  }

  algorithm::Decision Take(uint64_t cost, BootTime now) {
    Refill(now);
    const int64_t price = static_cast<int64_t>(cost) * interval_;
    algorithm::Decision decision{.allowed = level_ >= price,
                                 .limit = static_cast<uint64_t>(capacity_)};
    if (decision.allowed) {
      level_ -= price;
    } else {
      decision.retry_after = RetryAfter(price, now);
    }
    decision.remaining = static_cast<uint64_t>(level_ / interval_);
    if (window_ > 0s) decision.reset_after = UntilWindowEnds(now);
    return decision;
  }

 private:
  struct Lease {
    int64_t granted = 0;
    int64_t reported = 0;
    BootTime ends{0};
  };

  Duration UntilWindowEnds(BootTime now) const {
    return window_ - Duration(now.ns % window_.count());
  }
  Duration RetryAfter(int64_t price, BootTime now) const {
    return window_ > 0s ? UntilWindowEnds(now) : Duration(price - level_);
  }

  // Only as far as the requests out on lease allow.
  void Refill(BootTime now) {
    int64_t out = 0;
    for (auto it = leases_.begin(); it != leases_.end();) {
      if (it->second.ends <= now) {
        it = leases_.erase(it);
      } else {
        out += it->second.granted - it->second.reported;
        ++it;
      }
    }
    if (window_ == 0s) {
      level_ = std::min(level_ + (now - at_).count(),
                        std::max<int64_t>(level_, (capacity_ - out) * interval_));
    } else if (now.ns / window_.count() != at_.ns / window_.count()) {
      level_ = capacity_ * interval_;
    }
    at_ = now;
  }

  const int64_t capacity_;
  const int64_t interval_;
  const Duration window_;
  int64_t level_ = 0;
  BootTime at_{10'000'000'000};
  std::map<std::pair<uint64_t, uint64_t>, Lease> leases_;
};

struct Crowd {
  const char* name;
  int64_t rate;  // per second, and also the burst
  size_t instances;
  int64_t demand_percent;  // of the rate, all instances together
  bool full = true;        // the bucket is full at the beginning
  uint64_t burst = 0;      // 0: the refill of a second
  bool window = false;     // a fixed window of a second, not a bucket
  bool in_turn = false;    // the instances are asked in a fixed order
};
void PrintTo(const Crowd& crowd, std::ostream* out) { *out << crowd.name; }

class OverloadedKey : public ::testing::TestWithParam<Crowd> {};

TEST_P(OverloadedKey, CostsEachInstanceFewCallsAndIsSharedFairly) {
  const Crowd& crowd = GetParam();
  store::LimitTable limits;
  const uint64_t burst = crowd.burst != 0 ? crowd.burst : static_cast<uint64_t>(crowd.rate);
  const store::LimitHandle limit = *limits.Intern(*algorithm::Limit::Make(
      {.algorithm =
           crowd.window ? algorithm::Algorithm::kFixedWindow : algorithm::Algorithm::kTokenBucket,
       .requests = static_cast<uint64_t>(crowd.rate),
       .period = 1s,
       .burst = crowd.window ? std::nullopt : std::optional<uint64_t>(burst)}));
  Bucket bucket(static_cast<int64_t>(burst), Duration(1s) / crowd.rate, crowd.full,
                crowd.window ? Duration(1s) : Duration(0));
  std::vector<std::unique_ptr<LeaseBook>> books;
  for (size_t i = 0; i < crowd.instances; ++i) {
    books.push_back(
        std::make_unique<LeaseBook>(LeaseBookOptions{.node = i + 1, .keys_max = 8, .ttl = kTtl}));
  }

  std::vector<int64_t> calls(crowd.instances), admitted(crowd.instances);
  bool counting = false;
  const auto request = [&](size_t instance, BootTime now) {
    LeaseBook& book = *books[instance];
    const auto answer = [&](const LeaseAction* action) {
      while (action != nullptr) {
        calls[instance] += counting ? 1 : 0;
        store::SharedAnswer answered;
        answered.grant = bucket.Ask(action->ask, now);
        action = book.OnGrant(kKey, action->ask.id.number, answered, now);
      }
    };
    LeaseVerdict verdict = book.Take(
        kKey, *limit, 1, [](std::string& name) { name = "k"; }, now);
    const bool awaits = verdict.kind == LeaseVerdict::Kind::kAwaitLease;
    answer(verdict.action);
    if (awaits) verdict = book.TakeAgain(kKey, *limit, 1, now);
    bool allowed = verdict.kind == LeaseVerdict::Kind::kAllowed;
    if (verdict.kind == LeaseVerdict::Kind::kAskStore) {
      calls[instance] += counting ? 1 : 0;
      const algorithm::Decision decision = bucket.Take(1, now);
      book.OnExact(kKey, *limit, 1, decision, now, now);
      allowed = decision.allowed;
    }
    admitted[instance] += counting && allowed ? 1 : 0;
    book.OnTime(now, [&](const LeaseAction& action) { answer(&action); });
  };

  // Every instance has the same demand.
  const Duration between = Duration(1s) * 100 / (crowd.rate * crowd.demand_percent);
  const BootTime start = BootTime{0} + 10s;
  size_t turn = 0, next = 0;
  for (BootTime now = start; now < start + 13s; now = now + between) {
    counting = now >= start + 3s;
    // Not in a fixed order, which could coincide with the pauses.
    turn = turn * 6364136223846793005 + 1442695040888963407;
    request(crowd.in_turn ? next++ % books.size() : (turn >> 33) % books.size(), now);
  }

  const Duration pause =
      std::min<Duration>(50ms, Duration(1s) * static_cast<int64_t>(burst) / crowd.rate / 8);
  int64_t sum = 0;
  for (const int64_t one : admitted) sum += one;
  for (size_t i = 0; i < crowd.instances; ++i) {
    EXPECT_LE(calls[i], 10s / pause + AskBudget::kAtOnce + 2)
        << "calls of instance " << i << " in 10 s";
    EXPECT_GE(admitted[i] * static_cast<int64_t>(crowd.instances) * 10, sum * 6)
        << "instance " << i << " of " << sum;
  }
  EXPECT_GE(sum, crowd.rate * 10 * 85 / 100);
  EXPECT_LE(sum, crowd.rate * 10 + static_cast<int64_t>(burst));
}

INSTANTIATE_TEST_SUITE_P(
    Limiter, OverloadedKey,
    ::testing::Values(
        Crowd{"three", 1000, 3, 600, false}, Crowd{"three_full", 1000, 3, 600, true},
        Crowd{"three_slightly", 600, 3, 120, true}, Crowd{"four", 2000, 4, 200, true},
        Crowd{"one", 2000, 1, 500, true}, Crowd{"one_slightly", 2000, 1, 130, true},
        Crowd{"three_slightly_more", 2000, 3, 130, true}, Crowd{"a_small_limit", 60, 3, 800, true},
        Crowd{"a_slow_limit_of_a_large_burst", 30, 3, 4000, true, 300},
        Crowd{"four_times_of_three", 300, 3, 400, true},
        Crowd{"of_a_small_burst", 1000, 3, 600, true, 250},
        Crowd{"eight_instances", 500, 8, 400, true}, Crowd{"quick", 100, 3, 300, true, 12},
        Crowd{"quick_of_one", 200, 1, 300, true, 20},
        Crowd{"quick_of_eight", 1000, 8, 300, true, 200},
        Crowd{
            .name = "a_window", .rate = 100, .instances = 5, .demand_percent = 400, .window = true},
        Crowd{"a_window_in_turn", 100, 5, 400, true, 0, true, true},
        Crowd{"a_window_of_three_in_turn", 100, 3, 300, true, 0, true, true},
        Crowd{"a_window_slightly", 100, 3, 130, true, 0, true, true},
        Crowd{"a_small_window_in_turn", 20, 5, 1000, true, 0, true, true},
        Crowd{"a_small_window_of_three_in_turn", 40, 3, 300, true, 0, true, true},
        Crowd{"a_small_bucket_in_turn", 20, 5, 1000, true, 0, false, true},
        Crowd{"a_small_bucket_of_five_in_turn", 40, 5, 500, true, 0, false, true},
        Crowd{"a_small_bucket_of_three_in_turn", 40, 3, 300, true, 0, false, true},
        Crowd{"a_bucket_in_turn", 100, 5, 400, true, 0, false, true},
        Crowd{"an_abused_window", 300, 5, 10000, true, 0, true, true},
        Crowd{"a_window_of_eight", 1000, 8, 200, true, 0, true, true}),
    [](const auto& crowd) { return crowd.param.name; });

}  // namespace overloaded_key_test
}  // namespace headgate::limiter
