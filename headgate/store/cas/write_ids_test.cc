#include "headgate/store/cas/write_ids.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headgate::store::cas {
namespace write_ids_test {

using ::testing::ElementsAre;
using Writes = std::vector<WriteId>;

// The writes after those of `count` further writers.
Writes After(Writes writes, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) AddWrite({.writer = 1'000 + i, .number = 1}, writes);
  return writes;
}

TEST(WriteIds, AWriteComesFirstAndReplacesTheOneBeforeOfItsWriter) {
  Writes writes{{.writer = 2, .number = 7}, {.writer = 1, .number = 3}};
  AddWrite({.writer = 1, .number = 4}, writes);
  EXPECT_THAT(writes, ElementsAre(WriteId{1, 4}, WriteId{2, 7}));
}

TEST(WriteIds, TheOldestIsDropped) {
  const Writes writes = After({{.writer = 1, .number = 1}}, kWritersMax);
  EXPECT_EQ(writes.size(), kWritersMax);
  EXPECT_EQ(writes.front(), (WriteId{1'000 + kWritersMax - 1, 1}));
  EXPECT_EQ(writes.back(), (WriteId{1'000, 1}));
}

TEST(WriteIds, AWriteThatIsThereWasApplied) {
  const Writes before{{.writer = 2, .number = 7}};
  Writes found = before;
  AddWrite({.writer = 1, .number = 1}, found);
  EXPECT_EQ(FateOf({1, 1}, before, After(found, 3)), WriteFate::kApplied);
  EXPECT_EQ(FateOf({1, 2}, before, After(found, 3)), WriteFate::kNotApplied);
}

TEST(WriteIds, AWriteThatIsNotThereWasNotAppliedWhileAllAreRemembered) {
  const Writes before{{.writer = 2, .number = 7}};
  EXPECT_EQ(FateOf({1, 1}, before, before), WriteFate::kNotApplied);
  EXPECT_EQ(FateOf({1, 1}, before, After(before, kWritersMax - 2)), WriteFate::kNotApplied);
}

TEST(WriteIds, AnOlderOneThatIsStillThereProvesThatNoLaterOneIsGone) {
  // All kWritersMax writers are remembered, and one of them has tried to write.
  const Writes before = After({}, kWritersMax);
  EXPECT_EQ(FateOf({1, 1}, before, After(before, 1)), WriteFate::kNotApplied);
  EXPECT_EQ(FateOf({1, 1}, before, After(before, kWritersMax - 1)), WriteFate::kNotApplied);
  // If it had been applied, all others may have written after it.
  EXPECT_EQ(FateOf({1, 1}, before, {}), WriteFate::kNotApplied);
  Writes all_new;
  for (uint64_t i = 0; i < kWritersMax; ++i) AddWrite({.writer = 1'000 + i, .number = 2}, all_new);
  EXPECT_EQ(FateOf({1, 1}, before, all_new), WriteFate::kUnknown);
}

// Whatever happens after a write, its fate is never told wrongly.
TEST(WriteIds, NoFateIsWrong) {
  uint64_t random = 1;
  const auto below = [&](uint64_t end) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    return (random >> 33) % end;
  };
  int unknown = 0;
  for (int round = 0; round < 20'000; ++round) {
    Writes writes;
    uint64_t number = 0;
    const uint64_t writers = 2 + below(24);
    const auto others_write = [&](uint64_t count) {
      for (uint64_t i = 0; i < count; ++i)
        AddWrite({.writer = 1 + below(writers), .number = ++number}, writes);
    };
    others_write(1 + below(40));
    const Writes before = writes;
    const WriteId ours{.writer = below(2) * 100, .number = ++number};
    const bool applied = below(2) == 0;
    if (applied) AddWrite(ours, writes);
    others_write(below(60));
    const WriteFate fate = FateOf(ours, before, writes);
    if (fate == WriteFate::kUnknown) {
      ++unknown;
    } else {
      ASSERT_EQ(fate == WriteFate::kApplied, applied) << "round " << round;
    }
    if (writers < kWritersMax) {
      ASSERT_NE(fate, WriteFate::kUnknown);
    }
  }
  EXPECT_GT(unknown, 0);
}

}  // namespace write_ids_test
}  // namespace headgate::store::cas
