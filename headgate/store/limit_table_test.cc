#include "headgate/store/limit_table.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace headgate::store {
namespace limit_table_test {

using algorithm::Limit;
using namespace std::chrono_literals;

Limit Numbered(uint64_t requests) { return *Limit::Make({.requests = requests, .period = 1h}); }

// Runs a complete pass in which the buckets refer to `in_use`.
void Pass(LimitTable& table, const std::vector<uint32_t>& in_use) {
  std::vector<bool> seen(LimitTable::kIdsMax);
  for (const uint32_t id : in_use) seen[id] = true;
  for (uint32_t next = table.EndPass(seen, 0); next != 0;) next = table.EndPass(seen, next);
}

// A table whose pass runs when the test says so.
struct Scanned : LimitTable {
  explicit Scanned(const LimitTableOptions& options) : LimitTable(options) {
    SetScan([this](uint64_t due) { steps += due; }, 1000);
  }
  uint64_t steps = 0;
};

TEST(LimitTable, OneLimitOfOneOwnerIsOneEntry) {
  LimitTable table;
  const LimitHandle limit = *table.Intern(Numbered(1));
  EXPECT_EQ(table.Intern(Numbered(1))->get(), limit.get());
  EXPECT_NE(table.Intern(Numbered(1), 1)->get(), limit.get());
  const LimitHandle of_rule = *table.Intern(Numbered(1), 0, LimitOwner::Rule("a"));
  EXPECT_NE(of_rule.get(), limit.get());
  EXPECT_NE(of_rule->owner, limit->owner);
  EXPECT_EQ(table.Intern(Numbered(2), 0, LimitOwner::Rule("a")).value()->owner, of_rule->owner);
  EXPECT_NE(table.Intern(Numbered(2), 0, LimitOwner::Rule("b")).value()->owner, of_rule->owner);
}

TEST(LimitTable, TheLeastRecentlyUsedLimitOfClientsMakesWay) {
  Scanned table({.client_limits_max = 3});
  std::vector<uint32_t> ids(6);
  for (const uint64_t i : {1u, 2u, 3u, 1u, 4u}) ids[i] = table.Intern(Numbered(i)).value()->id;
  EXPECT_TRUE(table.IsRetired(ids[2]));
  for (const uint64_t i : {1u, 3u, 4u}) EXPECT_FALSE(table.IsRetired(ids[i])) << i;
  EXPECT_EQ(table.client_limits(), 3u);
  EXPECT_EQ(table.client_limits_forgotten(), 1u);
  // Interned again, it is unchanged, and another limit is retired.
  EXPECT_EQ(table.Intern(Numbered(2)).value()->id, ids[2]);
  EXPECT_FALSE(table.IsRetired(ids[2]));
  EXPECT_TRUE(table.IsRetired(ids[3]));
}

TEST(LimitTable, ALimitInUseDoesNotMakeWay) {
  Scanned table({.client_limits_max = 2});
  std::vector<LimitHandle> used;
  for (uint64_t i = 1; i <= 100; ++i) used.push_back(*table.Intern(Numbered(i)));
  for (const LimitHandle& limit : used) EXPECT_FALSE(table.IsRetired(limit->id));
  for (uint64_t i = 101; i <= 200; ++i) ASSERT_TRUE(table.Intern(Numbered(i)).ok());
  for (const LimitHandle& limit : used) EXPECT_FALSE(table.IsRetired(limit->id));
  used.clear();
  for (uint64_t i = 201; i <= 500; ++i) ASSERT_TRUE(table.Intern(Numbered(i)).ok());
  EXPECT_GT(table.client_limits_forgotten(), 100u);
}

TEST(LimitTable, ANumberIsNobodyElsesWhileABucketRefersToIt) {
  Scanned table({.client_limits_max = 1});
  const uint32_t first = table.Intern(Numbered(1)).value()->id;
  ASSERT_TRUE(table.Intern(Numbered(2)).ok());
  for (int i = 0; i < 5; ++i) Pass(table, {first});
  EXPECT_EQ(table.Get(first).capacity(), 1u);
  // A bucket may be added to a segment that the pass has already visited, so one pass without a
  // bucket is not enough.
  Pass(table, {});
  EXPECT_EQ(table.Get(first).capacity(), 1u);
  Pass(table, {});
  EXPECT_EQ(table.Intern(Numbered(3)).value()->id, first);
}

TEST(LimitTable, AHandleOrAnotherInternKeepsAnEntryThroughPasses) {
  LimitTable table;
  const LimitHandle pinned = *table.Intern(Numbered(1));
  const uint32_t asked = table.Intern(Numbered(2)).value()->id;
  for (int i = 0; i < 5; ++i) {
    Pass(table, {});
    EXPECT_EQ(table.Intern(Numbered(2)).value()->id, asked);
  }
  EXPECT_EQ(table.size(), 2u);
  for (int i = 0; i < 2; ++i) Pass(table, {});
  EXPECT_EQ(table.size(), 1u);
}

TEST(LimitTable, StepsAreDueBeforeTheNumbersRunOut) {
  Scanned table({.client_limits_max = 1000});
  for (uint64_t i = 1; i <= 1000; ++i) ASSERT_TRUE(table.Intern(Numbered(i)).ok());
  EXPECT_EQ(table.steps, 0u);
  uint64_t interned = 1000;
  // Without passes, the numbers run out in the end; each attempt still takes bounded time.
  while (table.Intern(Numbered(++interned)).ok()) {
    ASSERT_LT(interned, uint64_t{LimitTable::kIdsMax});
  }
  EXPECT_GT(table.steps, 3u * 1000);
  const uint64_t before = table.steps;
  EXPECT_EQ(table.Intern(Numbered(interned)).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_LE(table.steps - before, 256u);
  // Two passes later, Intern works again.
  for (int i = 0; i < 2; ++i) Pass(table, {});
  EXPECT_TRUE(table.Intern(Numbered(interned)).ok());
}

TEST(LimitTable, ClientsTakeNoRoomFromRulesNorRulesFromClients) {
  Scanned table({.client_limits_max = 10, .rule_limits_max = 4});
  for (uint64_t i = 1; i <= 10'000; ++i) ASSERT_TRUE(table.Intern(Numbered(i)).ok());
  std::vector<LimitHandle> rules;
  for (uint64_t i = 1; i <= 4; ++i)
    rules.push_back(*table.Intern(Numbered(i), 0, LimitOwner::Rule("r")));
  const auto beyond = table.Intern(Numbered(5), 0, LimitOwner::Rule("r"));
  EXPECT_EQ(beyond.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(beyond.status().message(), "4 different limits of rules are in use already");
  EXPECT_TRUE(table.Intern(Numbered(10'001)).ok());
}

TEST(LimitTable, LimitsThatNoRuleHasAnyMoreMakeWayForThoseOfRules) {
  Scanned table({.rule_limits_max = 4});
  for (uint64_t i = 1; i <= 100; ++i) {
    ASSERT_TRUE(table.Intern(Numbered(i), 0, LimitOwner::Rule("r")).ok()) << i;
    Pass(table, {});
  }
  EXPECT_EQ(table.client_limits_forgotten(), 0u);
}

TEST(LimitTable, TheLastOfVeryManyRulesShareTheirEntries) {
  LimitTable table({.rule_limits_max = 90});
  std::vector<LimitHandle> rules;
  for (int i = 0; i < 1000; ++i) {
    auto limit = table.Intern(Numbered(7), 0, LimitOwner::Rule("r" + std::to_string(i)));
    ASSERT_TRUE(limit.ok()) << i;
    rules.push_back(*limit);
  }
  EXPECT_NE(rules[0]->owner, rules[1]->owner);
  EXPECT_EQ(rules[998].get(), rules[999].get());
  EXPECT_EQ(rules[999]->owner->owner, LimitOwner::FurtherRules());
}

TEST(LimitTable, NothingMakesWayForWhatIsInternedWhereThereIsRoom) {
  Scanned table({.client_limits_max = 2});
  EXPECT_TRUE(table.InternWhereRoom(Numbered(1), LimitOwner::Clients()).ok());
  EXPECT_TRUE(table.InternWhereRoom(Numbered(2), LimitOwner::Clients()).ok());
  EXPECT_FALSE(table.InternWhereRoom(Numbered(3), LimitOwner::Clients()).ok());
  EXPECT_TRUE(table.InternWhereRoom(Numbered(1), LimitOwner::Clients()).ok());
  EXPECT_EQ(table.client_limits_forgotten(), 0u);
}

}  // namespace limit_table_test
}  // namespace headgate::store
