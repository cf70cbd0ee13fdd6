// Tiny leases: of a key that is asked for less often than once in a ttl, far below its limit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headgate/limiter/lease/lease_book.h"
#include "headgate/testing/lease_dialogue.h"

namespace headgate::limiter::lease {
namespace lease_tiny_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace std::chrono_literals;

class TinyLeaseTest : public testing::LeaseDialogue {
 protected:
  TinyLeaseTest() { limit = Intern({.requests = 100'000, .period = 1h}); }

  // The first actions of the book by itself before `end`.
  std::vector<std::string> SaysBefore(base::Duration end) {
    std::vector<std::string> said;
    for (; at < end && said.empty(); at += 50ms) said = Time();
    return said;
  }

  // Two requests, 5 s apart: the store grants a tiny lease with the second.
  void TinyLease(uint64_t remaining = 50'000) {
    ASSERT_EQ(Says(), "ask the store");
    ASSERT_TRUE(Exact(1, Allowed(remaining)));
    at += 5s;
    ASSERT_EQ(Says(), "await the answer; ask #1 of k, taking 1, for 1 or 0 of a part of 2");
    ASSERT_EQ(Grant(1, 1, remaining, 20s), "");
    at += 5s;
  }
};

TEST_F(TinyLeaseTest, TheNextRequestIsDecidedFromItAndReportedInTheBackground) {
  TinyLease();
  for (uint64_t number = 2; number < 10; ++number) {
    const LeaseVerdict verdict = Take();
    EXPECT_EQ(verdict.kind, LeaseVerdict::Kind::kAllowed);
    ASSERT_NE(verdict.action, nullptr);
    EXPECT_EQ(verdict.action->ask.cost, 0u);
    EXPECT_EQ(verdict.action->ask.want, 1u);
    EXPECT_EQ(verdict.action->ask.brief, 0u);
    EXPECT_EQ(verdict.action->ask.ttl, 20s);
    ASSERT_EQ(verdict.action->ask.reports.size(), 1u);
    EXPECT_EQ(verdict.action->ask.reports[0].spent, 1u);
    EXPECT_EQ(Grant(number, 1, 50'000, 20s), "");
    at += 15s;
    EXPECT_THAT(Time(), IsEmpty()) << "it lives on";
  }
}

TEST_F(TinyLeaseTest, AKeyThatWasNotAskedForSoLongHasNone) {
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(Says(), "ask the store");
    Exact(1, Allowed(50'000));
    at += 20s;
  }
}

TEST_F(TinyLeaseTest, IsAskedForOnlyFarBelowTheLimit) {
  Says();
  Exact(1, Allowed(1023));
  at += 5s;
  EXPECT_EQ(Says(), "ask the store") << "one is more than 1/1024 of the rest";
  Exact(1, Allowed(1024));
  at += 5s;
  EXPECT_THAT(Says(), HasSubstr("for 1 or 0"));
}

TEST_F(TinyLeaseTest, PaysForARequestLikeTheLast) {
  EXPECT_EQ(Says(40), "ask the store");
  Exact(40, Allowed(50'000));
  at += 5s;
  EXPECT_EQ(Says(40), "await the answer; ask #1 of k, taking 40, for 40 or 0 of a part of 2");
}

TEST_F(TinyLeaseTest, IsReturnedBeforeItEndsIfNobodyAsked) {
  TinyLease();
  for (; at < 5s + 18s; at += 50ms) EXPECT_THAT(Time(), IsEmpty()) << at / 1ms << " ms";
  EXPECT_THAT(SaysBefore(5s + 19s), ElementsAre(HasSubstr("#1 spent 0, returned")));
}

TEST_F(TinyLeaseTest, IsReturnedIfTheRestIsSmallerThanTheNodeBelieved) {
  Says();
  Exact(1, Allowed(50'000));
  at += 5s;
  Says();
  EXPECT_EQ(Grant(1, 1, /*remaining=*/100, 20s), "");
  EXPECT_THAT(SaysBefore(5s + 2s), ElementsAre(HasSubstr("#1 spent 0, returned")));
}

// The store may have granted it: no request of it is spent, and it is returned as long as it lives.
TEST_F(TinyLeaseTest, OneThatMayHaveBeenGrantedIsReturned) {
  Says();
  Exact(1, Allowed(50'000));
  at += 5s;
  Says();
  EXPECT_EQ(Fail(1, absl::DeadlineExceededError("late")), "");
  EXPECT_EQ(Held(), 0u);
  at += 5s;
  EXPECT_THAT(Says(), HasSubstr("#1 spent 0, returned"));
}

TEST_F(TinyLeaseTest, TinyLeasesFillAQuarterOfTheTableAtMost) {
  uint64_t asked = 0;
  for (uint64_t round = 0; round < 2; ++round) {
    for (uint64_t i = 0; i < 60; ++i) {
      const base::Hash128 key{i % 8, i};
      const LeaseVerdict verdict = Take(1, key);
      const store::SharedAnswer exact = Allowed(50'000);
      if (verdict.action == nullptr) {
        EXPECT_TRUE(book.OnExact(key, *limit, 1, exact, now()));
        continue;
      }
      ++asked;
      store::SharedAnswer answer = Allowed(50'000);
      answer.grant = {.granted = 1, .ttl = 20s};
      EXPECT_EQ(book.OnGrant(key, verdict.action->ask.id.number, answer, now()), nullptr);
    }
    at += 5s;
  }
  EXPECT_EQ(asked, 16u) << "of 64 places";
}

// One for each instance of a large fleet would be much of the rest.
TEST(TinyShare, AllInstancesTogetherHoldASmallShareAtMost) {
  LeaseBookOptions options{.instances = [] { return 100u; }};
  const LeaseSizing sizing(options);
  LeaseRecord record;
  record.shared_rest = 3199;
  EXPECT_FALSE(sizing.IsTinyShare(record, 1));
  record.shared_rest = 3200;
  EXPECT_TRUE(sizing.IsTinyShare(record, 1));
  EXPECT_FALSE(sizing.IsTinyShare(record, 2));
}

}  // namespace lease_tiny_test
}  // namespace headgate::limiter::lease
