#include "headgate/front/resp/limit_cache.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "headgate/front/resp/throttle_arguments.h"
#include "headgate/store/memory.h"

namespace headgate::front::resp {
namespace limit_cache_test {

class CachedLimits : public ::testing::Test {
 protected:
  const store::LimitEntry* Put(const ThrottleLimit& limit) {
    return cache_.Put(limit, store_.limits().Intern(LimitOf(limit).value()).value());
  }

  store::MemoryStore store_{{.max_buckets = 1024}};
  LimitCache cache_;
};

TEST_F(CachedLimits, AreFoundByTheirNumbers) {
  EXPECT_EQ(cache_.Find(ThrottleLimit{15, 30, 60}), nullptr);
  const store::LimitEntry* const entry = Put({15, 30, 60});
  EXPECT_EQ(cache_.Find(ThrottleLimit{15, 30, 60}), entry);
  EXPECT_EQ(cache_.Find(ThrottleLimit{15, 30, 60, 1}), nullptr);
}

TEST_F(CachedLimits, AreFoundByANotedText) {
  const store::LimitEntry* const entry = Put({15, 30, 60});
  EXPECT_EQ(cache_.Find(LimitText{"15", "30", "60"}), nullptr);
  cache_.Note({"15", "30", "60"}, {15, 30, 60});
  EXPECT_EQ(cache_.Find(LimitText{"15", "30", "60"}), entry);
  EXPECT_EQ(cache_.Find(LimitText{"015", "30", "00000060"}), entry);
  for (const LimitText& other : {LimitText{"15", "30", "61"},
                                 {"15", "60", "30"},
                                 {"1", "530", "60"},
                                 {"150", "30", "60"},
                                 {"", "30", "60"},
                                 {"15", "", "60"},
                                 {"15", "30", ""},
                                 {"+15", "30", "60"},
                                 {"000000015", "30", "60"}}) {
    EXPECT_EQ(cache_.Find(other), nullptr)
        << other.max_burst << " " << other.count << " " << other.period_s;
  }
}

// Any eight bytes are short enough to be looked up.
TEST_F(CachedLimits, NoTextIsFoundBeforeItIsNoted) {
  const std::string zeros(8, '\0');
  for (int64_t i = 0; i < 5000; ++i) Put({i, 30, 60});  // in each place
  EXPECT_EQ(cache_.Find(LimitText{zeros, zeros, zeros}), nullptr);
}

// The words of "+5" are those of "000000+5", which is not a number.
TEST_F(CachedLimits, ATextWithASignIsNotNoted) {
  Put({5, 30, 60});
  cache_.Note({"+5", "30", "60"}, {5, 30, 60});
  EXPECT_EQ(cache_.Find(LimitText{"+5", "30", "60"}), nullptr);
  EXPECT_EQ(cache_.Find(LimitText{"000000+5", "30", "60"}), nullptr);
}

// With more limits than places, the last one of each place is found, and no text finds the limit of
// another.
TEST_F(CachedLimits, ATextNeverFindsTheLimitThatReplacedItsOwn) {
  constexpr int64_t kLimits = 5000;
  std::vector<const store::LimitEntry*> entries;
  std::vector<store::LimitHandle> pinned;  // so that no entry is used again
  for (int64_t i = 0; i < kLimits; ++i) {
    const ThrottleLimit limit{.max_burst = i, .count = 30, .period_s = 60};
    pinned.push_back(store_.limits().Intern(LimitOf(limit).value()).value());
    entries.push_back(cache_.Put(limit, pinned.back()));
    cache_.Note({std::to_string(i), "30", "60"}, limit);
    EXPECT_EQ(cache_.Find(LimitText{std::to_string(i), "30", "60"}), entries.back());
  }
  int64_t found = 0;
  for (int64_t i = 0; i < kLimits; ++i) {
    const auto* entry = cache_.Find(LimitText{std::to_string(i), "30", "60"});
    if (entry == nullptr) continue;
    EXPECT_EQ(entry, entries[static_cast<size_t>(i)]);
    ++found;
  }
  EXPECT_GT(found, 0);
  EXPECT_LE(found, 1024);
}

}  // namespace limit_cache_test
}  // namespace headgate::front::resp
