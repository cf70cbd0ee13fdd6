// Requests that are sent twice at the same time, and meet in a store that answers in any order.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "headgate/base/hash_rig.h"
#include "headgate/limiter/checker.h"
#include "headgate/limiter/shared/shared_decider.h"
#include "headgate/rule/read/load.h"
#include "headgate/store/memory.h"
#include "headgate/testing/manual_shared_store.h"

namespace headgate::limiter::shared {
namespace twins_test {

using base::Instant;
using namespace std::chrono_literals;

constexpr std::string_view kRules = R"(
domain: d
descriptors:
  - key: day
    rate_limit: {period: 1d, requests_per_unit: 3, algorithm: fixed_window}
  - key: tokens
    rate_limits:
      - {period: 1d, requests_per_unit: 3, algorithm: token_bucket}
      - {period: 1d, requests_per_unit: 3, algorithm: sliding_window_log}
  - key: strict
    rate_limits:
      - {algorithm: concurrency, requests: 2, ttl: 60s, on_store_failure: deny}
      - {period: 1d, requests_per_unit: 3, algorithm: fixed_window, on_store_failure: deny}
  - key: permits
    rate_limits:
      - {algorithm: concurrency, requests: 2, ttl: 60s}
      - {period: 1d, requests_per_unit: 3, algorithm: fixed_window}
  - key: others
    rate_limits:
      - {algorithm: concurrency, requests: 2, ttl: 60s}
      - {period: 1d, requests_per_unit: 3, algorithm: fixed_window}
)";

// Two instances of a fleet with one store.
class Twins {
 public:
  Twins() {
    const std::vector<rule::read::RuleFile> files{{.name = "f.yaml", .text = std::string(kRules)}};
    const rule::read::LoadResult loaded = rule::read::LoadRules(files, {});
    EXPECT_TRUE(loaded.problems.empty());
    EXPECT_TRUE(limiter_.OnRules(loaded.rules, now_).ok());
  }

  // Sends the request once and waits for its answer.
  Response Send(const std::string& key, Operation operation, uint64_t cost) {
    Asker asker(*this);
    asker.request.skips_permits = true;
    asker.Send(key, operation, cost, {}, nullptr);
    return asker.Finish();
  }
  // In the buckets.
  uint64_t Remaining(const std::string& key) {
    return Send(key, Operation::kPeek, 0).descriptors[0].decision.remaining;
  }
  uint32_t InFlight(const std::string& key) {
    Asker asker(*this);
    asker.Send(key, Operation::kPeek, 0, {}, nullptr);
    return asker.Finish().concurrency->in_flight;
  }

  // One instance uses up the bucket and then asks for a permit twice, without an answer of the
  // store.
  std::array<Response, 2> AcquireInAnOutage(const std::string& key) {
    Asker asker(*this);
    asker.request.skips_permits = true;
    asker.Send(key, Operation::kTake, 3, {}, nullptr);
    EXPECT_TRUE(asker.Finish().allowed);
    asker.request.skips_permits = false;
    store_.failure = absl::UnavailableError("down");
    std::array<Response, 2> answers;
    for (Response& answer : answers) {
      PermitHold hold(permit::Id{.low = 5, .high = 6});
      asker.Send(key, Operation::kTake, 1, {}, &hold);
      answer = asker.Finish();
    }
    return answers;
  }
  // Asks for a permit twice. The store's answer to the first acquisition comes too late: it has
  // given the permit.
  std::array<absl::Status, 2> AcquireWithALateAnswer(const std::string& key) {
    Asker asker(*this);
    std::array<absl::Status, 2> answers;
    for (absl::Status& answer : answers) {
      PermitHold hold(permit::Id{.low = 5, .high = 6});
      asker.Begin(key, Operation::kTake, 1, {}, &hold);
      answer = asker.Check();
      while (asker.response.waiting) {
        store_.answer_is_late = &answer == &answers[0] && store_.waiting() == 1 &&
                                store_.oldest().answer && asker.asked_buckets;
        asker.asked_buckets = asker.asked_buckets || !store_.oldest().answer;
        store_.AnswerOne();
        if (std::exchange(asker.ready, 0) > 0) answer = asker.Continue();
      }
      if (answer.ok() && asker.response.allowed) hold.Keep();
    }
    return answers;
  }

  // Sends it twice, with an id of the request or of its permits. `choose` gets the number of calls
  // that the store has not answered, and returns the one that is answered next.
  enum class IdOf { kRequest, kPermits };
  std::array<Response, 2> SendTwice(const std::string& key, IdOf id_of,
                                    const std::function<size_t(size_t open)>& choose) {
    std::array<std::unique_ptr<Asker>, 2> twins;
    for (auto& twin : twins) {
      twin = std::make_unique<Asker>(*this);
      if (id_of == IdOf::kRequest) {
        twin->Send(key, Operation::kTake, 1, "one", nullptr);
      } else {
        twin->Send(key, Operation::kTake, 1, {}, &twin->hold);
      }
    }
    while (twins[0]->response.waiting || twins[1]->response.waiting) {
      store_.AnswerAt(choose(store_.waiting()));
      for (auto& twin : twins) twin->GoOn();
    }
    for (auto& twin : twins) {
      if (twin->response.allowed) twin->hold.Keep();
    }
    return {twins[0]->response, twins[1]->response};
  }

 private:
  struct Asker {
    explicit Asker(Twins& twins)
        : now(twins.now_),
          store(twins.store_),
          decider(twins.store_, twins.memory_, {}),
          checker(twins.limiter_, 0, decider, BucketNaming{}) {}

    // `keys`: those of the descriptors, with spaces in between.
    void Send(const std::string& keys, Operation operation, uint64_t cost, std::string_view once,
              PermitHold* permits) {
      Begin(keys, operation, cost, once, permits);
      EXPECT_TRUE(Check().ok());
    }
    absl::Status Check() { return checker.Check(request, response, now, &question); }
    absl::Status Continue() { return checker.Continue(question, response, now); }
    void Begin(const std::string& keys, Operation operation, uint64_t cost, std::string_view once,
               PermitHold* permits) {
      words = absl::StrSplit(keys, ' ');
      entries.clear();
      descriptors.clear();
      for (const std::string& key : words) {
        entries.push_back({key, "v"});
        descriptors.push_back({.entries = {&entries.back(), 1}, .cost = cost});
      }
      request.descriptors = descriptors;
      request.operation = operation;
      request.once = {.id = once, .window = 10min};
      request.permits = permits;
    }
    void GoOn() {
      if (std::exchange(ready, 0) > 0) {
        EXPECT_TRUE(Continue().ok());
      }
    }

    const Response& Finish() {
      while (response.waiting) {
        store.AnswerOne();
        GoOn();
      }
      return response;
    }

    const Instant now;
    testing::ManualSharedStore& store;
    SharedDecider decider;
    Checker checker;
    int ready = 0;
    bool asked_buckets = false;
    Question question{[this] { ++ready; }};
    std::vector<std::string> words;
    std::deque<rule::Entry> entries;
    std::vector<rule::Descriptor> descriptors;
    Request request{.domain = "d", .descriptors = {}};
    Response response;
    PermitHold hold{permit::Id{.low = 5, .high = 6}};
  };

  Instant now_ = Instant::FromNanos(1'790'000'000'000'000'000);
  store::MemoryStore memory_{{.max_buckets = 100, .secret = base::SecretFromSeed(1)}};
  testing::ManualSharedStore store_{memory_, now_};
  Limiter limiter_{memory_, nullptr};
};

// Calls `run(choose)` once for each order in which the store can answer.
void InEachOrder(const std::function<void(const std::function<size_t(size_t)>&)>& run) {
  struct Choice {
    size_t taken;
    size_t open;
  };
  std::vector<Choice> path;
  do {
    size_t step = 0;
    run([&](size_t open) {
      if (step == path.size()) path.push_back({0, open});
      return path[step++].taken;
    });
    while (!path.empty() && path.back().taken + 1 == path.back().open) path.pop_back();
    if (!path.empty()) ++path.back().taken;
  } while (!path.empty());
}

TEST(SharedTwins, WithOneIdTakeTogetherWhatOneTakes) {
  for (const std::string key : {"day", "tokens"}) {
    for (uint64_t left = 0; left <= 3; ++left) {
      int orders = 0;
      InEachOrder([&](const auto& choose) {
        Twins twins;
        if (left < 3) twins.Send(key, Operation::kTake, 3 - left);
        const auto [one, other] = twins.SendTwice(key, Twins::IdOf::kRequest, choose);
        const bool passes = one.allowed || other.allowed;
        EXPECT_EQ(passes, left > 0) << key << left;
        EXPECT_TRUE(left <= 1 || (one.allowed && other.allowed)) << key << left;
        EXPECT_EQ(twins.Remaining(key), left - (passes ? 1 : 0)) << key << left;
        // One of them is the first; the other, if it passes, is a repetition.
        EXPECT_EQ(one.repeated + other.repeated, one.allowed && other.allowed ? 1 : 0)
            << key << left;
        ++orders;
      });
      EXPECT_GT(orders, 5) << key << left;
    }
  }
}

// The bucket is exhausted with and without room for permits.
TEST(SharedTwins, WithOneIdOfPermitsTakeTogetherWhatOneTakes) {
  for (uint64_t left = 0; left <= 3; ++left) {
    int orders = 0;
    InEachOrder([&](const auto& choose) {
      Twins twins;
      if (left < 3) twins.Send("permits", Operation::kTake, 3 - left);
      const auto [one, other] = twins.SendTwice("permits", Twins::IdOf::kPermits, choose);
      const bool passes = one.allowed || other.allowed;
      EXPECT_EQ(passes, left > 0) << left;
      EXPECT_TRUE(left <= 1 || (one.allowed && other.allowed)) << left;
      EXPECT_EQ(twins.Remaining("permits"), left - (passes ? 1 : 0)) << left;
      EXPECT_EQ(twins.InFlight("permits"), passes ? 1u : 0u) << left;
      ++orders;
    });
    EXPECT_GT(orders, 5) << left;
  }
}

// Each of them may acquire one of the two permits. There are too many orders to try them all.
TEST(SharedTwins, WithOneIdOfTwoPermitsTakeTogetherWhatOneTakes) {
  for (const uint64_t left : {1u, 2u, 3u}) {
    for (uint32_t seed = 1; seed <= 500; ++seed) {
      Twins twins;
      for (const std::string key : {"day", "permits"})
        if (left < 3) twins.Send(key, Operation::kTake, 3 - left);
      std::mt19937 random(seed);
      const auto [one, other] = twins.SendTwice("day permits others", Twins::IdOf::kPermits,
                                                [&](size_t open) { return random() % open; });
      const bool passes = one.allowed || other.allowed;
      if (left > 1) {
        EXPECT_TRUE(one.allowed && other.allowed) << left << ", seed " << seed;
        for (const std::string key : {"day", "permits"})
          EXPECT_EQ(twins.Remaining(key), left - 1) << key << left << ", seed " << seed;
        EXPECT_EQ(twins.Remaining("others"), 2u) << left << ", seed " << seed;
      }
      for (const std::string key : {"permits", "others"})
        EXPECT_EQ(twins.InFlight(key), passes ? 1u : 0u) << key << left << ", seed " << seed;
    }
  }
}

TEST(SharedTwins, APermitThatWasDeniedStaysDeniedInAnOutage) {
  Twins twins;
  const auto [one, other] = twins.AcquireInAnOutage("permits");
  EXPECT_FALSE(one.allowed);
  EXPECT_FALSE(other.allowed);
}

TEST(SharedTwins, APermitWhoseAnswerIsLateIsPaidOnce) {
  Twins twins;
  const auto [one, other] = twins.AcquireWithALateAnswer("strict");
  EXPECT_TRUE(absl::IsUnavailable(one)) << one;
  EXPECT_TRUE(other.ok()) << other;
  EXPECT_EQ(twins.Remaining("strict"), 2u);
  EXPECT_EQ(twins.InFlight("strict"), 1u);
}

}  // namespace twins_test
}  // namespace headgate::limiter::shared
