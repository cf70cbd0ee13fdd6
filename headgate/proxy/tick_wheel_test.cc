#include "headgate/proxy/tick_wheel.h"

#include <gtest/gtest.h>

#include <functional>

#include <memory>
#include <vector>

#include "headgate/base/random.h"

namespace headgate::proxy {
namespace tick_wheel_test {

constexpr base::Instant kStart = base::Instant::FromNanos(1'000'000'000'000);
constexpr base::Duration kTick = TickWheel::kTick;

struct Entry final : TickWheel::Entry {
  void OnTick(base::Instant now) override {
    called.push_back(now);
    if (on_call) on_call();
  }
  std::vector<base::Instant> called;
  std::function<void()> on_call;
};

TEST(TickWheel, CallsWhenDueAndNotBefore) {
  TickWheel wheel(kStart);
  Entry entry;
  wheel.Set(entry, kStart + 3 * kTick);
  wheel.Advance(kStart + 3 * kTick - base::Duration(1));
  EXPECT_TRUE(entry.called.empty());
  wheel.Advance(kStart + 3 * kTick);
  EXPECT_EQ(entry.called.size(), 1u);
  EXPECT_FALSE(entry.is_set());
  wheel.Advance(kStart + 2000 * kTick);
  EXPECT_EQ(entry.called.size(), 1u);
}

TEST(TickWheel, CallsInTheTickThatBeginsAfterATimeInsideOfOne) {
  TickWheel wheel(kStart);
  Entry entry;
  wheel.Set(entry, kStart + 3 * kTick + base::Duration(1));
  wheel.Advance(kStart + 3 * kTick);
  EXPECT_TRUE(entry.called.empty());
  wheel.Advance(kStart + 4 * kTick);
  EXPECT_EQ(entry.called.size(), 1u);
}

TEST(TickWheel, EntryCanBeMovedAndCancelled) {
  TickWheel wheel(kStart);
  Entry entry;
  wheel.Set(entry, kStart + kTick);
  wheel.Set(entry, kStart + 9 * kTick);
  wheel.Advance(kStart + 8 * kTick);
  EXPECT_TRUE(entry.called.empty());
  TickWheel::Cancel(entry);
  wheel.Advance(kStart + 20 * kTick);
  EXPECT_TRUE(entry.called.empty());
}

TEST(TickWheel, TimeInThePastIsTheNextTick) {
  TickWheel wheel(kStart);
  Entry entry;
  wheel.Set(entry, kStart - 100 * kTick);
  wheel.Advance(kStart);
  EXPECT_TRUE(entry.called.empty());
  wheel.Advance(kStart + kTick);
  EXPECT_EQ(entry.called.size(), 1u);
}

TEST(TickWheel, EntrySetsItselfAgainFromItsCall) {
  TickWheel wheel(kStart);
  Entry entry;
  entry.on_call = [&] { wheel.Set(entry, entry.called.back() + TickWheel::kSlots * kTick); };
  wheel.Set(entry, kStart + kTick);
  wheel.Advance(kStart + kTick);
  wheel.Advance(kStart + TickWheel::kSlots * kTick);
  EXPECT_EQ(entry.called.size(), 1u);
  wheel.Advance(kStart + (TickWheel::kSlots + 1) * kTick);
  EXPECT_EQ(entry.called.size(), 2u);
  TickWheel::Cancel(entry);
}

TEST(TickWheel, CallMayDestroyAnotherEntryOfTheSameTick) {
  TickWheel wheel(kStart);
  auto first = std::make_unique<Entry>();
  auto second = std::make_unique<Entry>();
  int calls = 0;
  first->on_call = [&] {
    ++calls;
    second.reset();
  };
  wheel.Set(*first, kStart + kTick);
  wheel.Set(*second, kStart + kTick);
  wheel.Advance(kStart + kTick);
  EXPECT_EQ(calls, 1);
}

// Each entry is called once, in the first Advance at or after its time.
TEST(TickWheel, RandomTimesAndSteps) {
  base::Random random(1);
  TickWheel wheel(kStart);
  constexpr uint64_t kSpan = 200'000'000'000;
  std::vector<std::unique_ptr<Entry>> entries;
  std::vector<base::Instant> due;
  for (int i = 0; i < 1000; ++i) {
    entries.push_back(std::make_unique<Entry>());
    due.push_back(kStart + base::Duration(static_cast<int64_t>(random.Below(kSpan))) +
                  base::Duration(1));
    wheel.Set(*entries.back(), due.back());
  }
  base::Instant now = kStart;
  while (now < kStart + base::Duration(static_cast<int64_t>(kSpan) + kTick.count())) {
    now += base::Duration(static_cast<int64_t>(random.Below(80'000'000'000)));
    wheel.Advance(now);
    for (size_t i = 0; i < entries.size(); ++i) {
      if (due[i] + kTick <= now) {
        ASSERT_EQ(entries[i]->called.size(), 1u) << i;
        EXPECT_GE(entries[i]->called[0], due[i]);
      }
      EXPECT_TRUE(due[i] <= now || entries[i]->called.empty());
    }
  }
}

}  // namespace tick_wheel_test
}  // namespace headgate::proxy
