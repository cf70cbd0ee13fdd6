// Many keys of which few are hot: how many requests wait for a call to the store. A fleet of lease
// books shares one store, in virtual time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "headgate/algorithm/decide.h"
#include "headgate/algorithm/lease.h"
#include "headgate/base/random.h"
#include "headgate/limiter/lease/lease_book.h"

namespace headgate::limiter::lease {
namespace lease_cold_keys_test {

using algorithm::Cost;
using algorithm::Limit;
using base::BootTime;
using base::Duration;
using base::Hash128;
using base::Instant;
using namespace std::chrono_literals;

constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;  // spreads numbers as hashes are

// Draws keys by Zipf's law.
class ZipfKeys {
 public:
  ZipfKeys(uint32_t keys, double exponent) {
    double sum = 0;
    for (uint32_t k = 1; k <= keys; ++k) sums_.push_back(sum += std::pow(k, -exponent));
  }
  uint64_t Draw(base::Random& random) const {
    const double at = static_cast<double>(random.Next() >> 11) * 0x1p-53 * sums_.back();
    return static_cast<uint64_t>(std::upper_bound(sums_.begin(), sums_.end() - 1, at) -
                                 sums_.begin());
  }

 private:
  std::vector<double> sums_;
};

class ColdKeysTest : public ::testing::Test {
 protected:
  static constexpr Duration kCallTakes = 400us;

  struct Counts {
    uint64_t asked = 0;   // requests
    uint64_t waited = 0;  // of these, for the store
    uint64_t calls = 0;   // of the store, for requests and in the background
    uint64_t denied = 0;
  };

  void Drive(const ZipfKeys& keys, uint64_t per_second, Duration lasts) {
    const Duration gap = Duration(1s) / static_cast<int64_t>(per_second);
    for (const BootTime end = now + lasts; now < end; now = now + gap) {
      while (!answers.empty() && answers.front().at <= now) {
        Answer answer = std::move(answers.front());
        answers.pop_front();
        OnAnswer(answer);
      }
      if (now >= next_look) {
        next_look = now + 10ms;
        for (uint32_t i = 0; i < books.size(); ++i)
          books[i]->OnTime(now, [&](const LeaseAction& action) { Send(i, action); });
      }
      const auto instance = static_cast<uint32_t>(random.Below(books.size()));
      const uint64_t number = keys.Draw(random) + 1;
      const Hash128 key{number * kGolden >> 20, number * kGolden};
      ++counts.asked;
      Decide(instance, key, /*again=*/false);
    }
  }

  void Decide(uint32_t instance, const Hash128& key, bool again) {
    LeaseBook& book = *books[instance];
    const auto name = [](std::string& out) { out = "k"; };
    const LeaseVerdict verdict =
        again ? book.TakeAgain(key, *limit, 1, name, now) : book.Take(key, *limit, 1, name, now);
    const bool is_decided =
        verdict.kind == LeaseVerdict::Kind::kAllowed || verdict.kind == LeaseVerdict::Kind::kDenied;
    if (!is_decided && !again) ++counts.waited;
    if (verdict.kind == LeaseVerdict::Kind::kDenied) ++counts.denied;
    if (verdict.action != nullptr) Send(instance, *verdict.action);
    if (verdict.kind == LeaseVerdict::Kind::kAwait && verdict.action == nullptr)
      answers.push_back({.at = now + kCallTakes, .instance = instance, .key = key, .kind = kRetry});
    if (verdict.kind != LeaseVerdict::Kind::kAskStore) return;
    ++counts.calls;
    Bucket& bucket = buckets[key.low];
    store::SharedAnswer answer;
    answer.decision = algorithm::DecideLeased(*limit_, bucket.state, bucket.leases, 1, StoreNow());
    answers.push_back({.at = now + kCallTakes,
                       .instance = instance,
                       .key = key,
                       .kind = kExact,
                       .answer = answer});
  }

  void Send(uint32_t instance, const LeaseAction& action) {
    ++counts.calls;
    Bucket& bucket = buckets[action.key.low];
    store::SharedAnswer answer;
    answer.decision = algorithm::AskLease(*limit_, bucket.state, bucket.leases, action.ask,
                                          StoreNow(), answer.grant);
    answers.push_back({.at = now + kCallTakes,
                       .instance = instance,
                       .key = action.key,
                       .kind = kGrant,
                       .number = action.ask.id.number,
                       .answer = answer});
  }

  struct Bucket {
    algorithm::BucketState state{};
    algorithm::Leases leases{};
  };
  enum Kind : uint8_t { kExact, kGrant, kRetry };
  struct Answer {
    BootTime at;
    uint32_t instance;
    Hash128 key;
    Kind kind;
    uint64_t number = 0;
    store::SharedAnswer answer{};
  };

  void OnAnswer(const Answer& answer) {
    LeaseBook& book = *books[answer.instance];
    if (answer.kind == kRetry) return Decide(answer.instance, answer.key, /*again=*/true);
    if (answer.kind == kExact) {
      if (!book.OnExact(answer.key, *limit, 1, answer.answer, now))
        Decide(answer.instance, answer.key, /*again=*/true);
      return;
    }
    if (const LeaseAction* next = book.OnGrant(answer.key, answer.number, answer.answer, now))
      Send(answer.instance, *next);
  }

  // The store's clock shows another time than the instances'.
  Instant StoreNow() const { return Instant::FromNanos(now.ns + 1'800'000'000'000'000'000); }

  void SetUp() override {
    for (uint32_t i = 0; i < 3; ++i)
      books.push_back(std::make_unique<LeaseBook>(
          LeaseBookOptions{.node = i + 1, .instances = [] { return 3u; }}));
  }

  BootTime now{1'000'000'000'000};
  BootTime next_look{0};
  base::Random random{1};
  const std::unique_ptr<Limit> limit_ =
      std::make_unique<Limit>(*Limit::Make({.requests = 1'000'000, .period = 1h}));
  store::LimitTable limits;
  store::LimitHandle limit = *limits.Intern(*limit_);
  std::vector<std::unique_ptr<LeaseBook>> books;
  absl::flat_hash_map<uint64_t, Bucket> buckets;
  std::deque<Answer> answers;
  Counts counts;
};

// A key that is asked for less often than once in a ttl would ask the store each time: 27 %.
TEST_F(ColdKeysTest, AtMost15PercentOfAZipfLoadWaitForTheStore) {
  const ZipfKeys keys(100'000, 1.1);
  Drive(keys, 20'000, 30s);
  counts = {};
  Drive(keys, 20'000, 10s);
  EXPECT_EQ(counts.denied, 0u);
  EXPECT_LE(counts.waited * 100, counts.asked * 15)
      << counts.waited << " of " << counts.asked << " waited, " << counts.calls << " calls";
  EXPECT_LE(counts.calls * 100, counts.asked * 45) << "beside those in the background";
  RecordProperty("waited", static_cast<int>(counts.waited));
  RecordProperty("calls", static_cast<int>(counts.calls));
}

}  // namespace lease_cold_keys_test
}  // namespace headgate::limiter::lease
