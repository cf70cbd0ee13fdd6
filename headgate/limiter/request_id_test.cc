// Ids that remember from which descriptors the first request with them took.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "headgate/base/hash_rig.h"
#include "headgate/limiter/checker.h"
#include "headgate/rule/read/load.h"
#include "headgate/store/memory.h"

namespace headgate::limiter {
namespace request_id_test {

using base::Instant;
using namespace std::chrono_literals;

constexpr Instant kStart = Instant::FromNanos(1'790'000'000'000'000'000);

constexpr const char* kRules = R"(
domain: d
descriptors:
  - key: one
    rate_limit: {unit: day, requests_per_unit: 10}
  - key: two
    rate_limits:
      - {unit: day, requests_per_unit: 10}
      - {unit: hour, requests_per_unit: 5}
  - key: quota_1
    quota_mode: true
    rate_limit: {unit: day, requests_per_unit: 10}
  - key: quota_2
    quota_mode: true
    rate_limit: {unit: day, requests_per_unit: 10}
  - key: shade
    shadow_mode: true
    rate_limits:
      - {unit: day, requests_per_unit: 10}
      - {unit: hour, requests_per_unit: 5}
  - key: free
    rate_limit: {unlimited: true}
)";

class IdsTest : public ::testing::Test {
 protected:
  using Took = std::vector<bool>;

  IdsTest() {
    const rule::read::RuleFile file{.name = "f.yaml", .text = kRules};
    const rule::read::LoadResult loaded = rule::read::LoadRules({&file, 1});
    EXPECT_TRUE(loaded.ok());
    EXPECT_TRUE(limiter_.OnRules(loaded.rules, kStart).ok());
  }
  const Response& Take(const std::vector<std::string>& keys, uint64_t cost, std::string_view id,
                       bool tells_takes = true) {
    std::vector<rule::Entry> entries;
    for (const std::string& key : keys) entries.push_back({key, "v"});
    std::vector<rule::Descriptor> descriptors;
    for (const rule::Entry& entry : entries)
      descriptors.push_back({.entries = {&entry, 1}, .cost = cost});
    EXPECT_TRUE(checker_
                    .Check({.domain = "d",
                            .descriptors = descriptors,
                            .once = {id, 1h},
                            .tells_takes = tells_takes},
                           response_, kStart)
                    .ok());
    return response_;
  }
  // The same for two requests with one id.
  Took TookTwice(const std::vector<std::string>& keys, uint64_t cost, std::string_view id) {
    const Took first = Take(keys, cost, id).took;
    EXPECT_FALSE(response_.repeated);
    EXPECT_EQ(Take(keys, cost, id).took, first);
    EXPECT_TRUE(response_.repeated);
    EXPECT_TRUE(response_.allowed);
    return first;
  }

  store::MemoryStore store_{{.max_buckets = 1000, .secret = base::SecretFromSeed(1)}};
  Limiter limiter_{store_, nullptr};
  Checker checker_{limiter_};
  Response response_;
};

TEST_F(IdsTest, RememberFromWhichDescriptorsARequestTook) {
  EXPECT_EQ(TookTwice({"one", "two", "quota_1", "shade", "free", "unknown"}, 2, "a"),
            (Took{true, true, true, true, false, false}));
}

TEST_F(IdsTest, RememberThatAQuotaOrAShadowHasDenied) {
  Take({"quota_1"}, 10, "");
  Take({"shade"}, 4, "");
  EXPECT_EQ(TookTwice({"quota_1", "quota_2", "shade", "one"}, 2, "a"),
            (Took{false, true, false, true}));
  EXPECT_EQ(TookTwice({"shade"}, 2, "b"), Took{false}) << "an id that has nothing to remember";
}

TEST_F(IdsTest, RememberEachOfManyAsFarAsTheyHaveRoom) {
  std::vector<std::string> keys(16, "one");
  EXPECT_EQ(TookTwice(keys, 0, "a"), Took(16, false)) << "nothing was to be taken";
  Take({"quota_1"}, 10, "");
  std::vector<std::string> mixed(15, "unknown");
  mixed.insert(mixed.begin(), {"one", "quota_1", "quota_2"});  // the last two share bits 0 and 1
  Take(mixed, 1, "b");
  EXPECT_TRUE(response_.took[0]);
  EXPECT_FALSE(response_.took[1]);
  EXPECT_TRUE(response_.took[2]);
  Took known(18, false);
  known[2] = true;
  EXPECT_EQ(Take(mixed, 1, "b").took, known) << "descriptor 16 took nothing, so 0 is not known";
}

TEST_F(IdsTest, ADeniedRequestTookNothing) {
  Take({"one"}, 10, "");
  EXPECT_EQ(Take({"one", "two"}, 2, "a").took, (Took{false, false}));
  EXPECT_FALSE(response_.allowed);
}

TEST_F(IdsTest, TellNothingUnlessAsked) {
  EXPECT_TRUE(Take({"one"}, 1, "a", false).took.empty());
  EXPECT_TRUE(Take({"one"}, 1, "a", false).repeated);
}

}  // namespace request_id_test
}  // namespace headgate::limiter
