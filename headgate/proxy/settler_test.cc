#include "headgate/proxy/settler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "headgate/proxy/size_rig.h"

namespace headgate::proxy {
namespace settler_test {

using namespace std::chrono_literals;
using http::BodyLength;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::string_view kResponses =
    "unit: minute, requests_per_unit: 100, cost: {of: response_bytes, per: 1KiB, reserve: 4KiB}";
constexpr std::string_view kRequests =
    "unit: minute, requests_per_unit: 100, cost: {of: request_bytes, per: 1KiB, reserve: 4KiB}";
// One unit comes back each second.
constexpr std::string_view kTen =
    "period: 10s, requests_per_unit: 10, cost: {of: response_bytes, per: 1KiB}";

class Settlement : public ::testing::TestWithParam<Store> {};
INSTANTIATE_TEST_SUITE_P(Stores, Settlement, ::testing::Values(Store::kMemory, Store::kShared));

TEST_P(Settlement, AnswerCostsItsReserveAndThenItsSize) {
  SizeRig rig(kResponses, GetParam());
  const auto exchange = rig.Begin(Sized(0));
  exchange->receiver->OnEnd({}, rig.now);
  EXPECT_EQ(rig.Taken(), 4u);
  rig.SendHead(kUnsized);
  rig.SendBody(9 * kKiB + 1);
  EXPECT_EQ(rig.Taken(), 4u) << "the size is not known yet";
  rig.End();
  EXPECT_EQ(rig.Taken(), 10u);
  EXPECT_EQ(rig.settled.taken.value(), 6u);
}

TEST_P(Settlement, SmallAnswerGivesTheRestOfTheReserveBack) {
  SizeRig rig(kResponses, GetParam());
  rig.Get(1);
  EXPECT_EQ(rig.Taken(), 1u);
  rig.Get(0);
  EXPECT_EQ(rig.Taken(), 1u);
  EXPECT_EQ(rig.settled.returned.value(), 7u);
}

TEST_P(Settlement, LengthOfTheAnswerCountsFromItsBeginning) {
  SizeRig rig(kResponses, GetParam());
  const auto exchange = rig.Begin(Sized(0));
  exchange->receiver->OnEnd({}, rig.now);
  rig.SendHead(Sized(50 * kKiB));
  EXPECT_EQ(rig.Taken(), 50u);
  rig.SendBody(50 * kKiB);
  rig.End();
  EXPECT_EQ(rig.Taken(), 50u);
}

// It may never end.
TEST_P(Settlement, LongStreamPaysWhileItFlows) {
  SizeRig rig(
      "unit: hour, requests_per_unit: 100000, algorithm: fixed_window,"
      " cost: {of: response_bytes, per: 1KiB, reserve: 4KiB}",
      GetParam());
  const auto exchange = rig.Begin(Sized(0));
  exchange->receiver->OnEnd({}, rig.now);
  rig.SendHead(kUnsized);
  for (int i = 0; i < 96; ++i) rig.SendBody(32 * kKiB);
  rig.Settle();
  EXPECT_GE(rig.Taken(), 2048u);
  EXPECT_LE(rig.Taken(), 3072u);
  rig.End();
  EXPECT_EQ(rig.Taken(), 3072u);
  EXPECT_EQ(rig.settled.returned.value(), 0u);
}

TEST_P(Settlement, ClientThatLeavesPaysForWhatItGot) {
  SizeRig rig(kResponses, GetParam());
  const auto exchange = rig.Begin(Sized(0));
  exchange->receiver->OnEnd({}, rig.now);
  rig.SendHead(Sized(50 * kKiB));
  rig.SendBody(20 * kKiB);
  exchange->client.unsent = 5 * kKiB;
  rig.Leave(*exchange);
  EXPECT_EQ(rig.Taken(), 15u);
}

TEST_P(Settlement, AnswerWithoutABodyCostsNothing) {
  SizeRig rig(kResponses, GetParam());
  const auto head = rig.Begin(Sized(0), "HEAD");
  head->receiver->OnEnd({}, rig.now);
  rig.SendHead(Sized(50 * kKiB));
  EXPECT_EQ(rig.Taken(), 4u);
  rig.End();
  EXPECT_EQ(rig.Taken(), 0u);
  const auto unchanged = rig.Begin(Sized(0));
  rig.SendHead(Sized(50 * kKiB), 304);
  EXPECT_EQ(rig.Taken(), 4u);
  rig.End();
  EXPECT_EQ(rig.Taken(), 0u);
}

TEST_P(Settlement, UpstreamThatFailsCostsNothing) {
  SizeRig rig(kResponses, GetParam());
  const auto exchange = rig.Begin(Sized(0));
  rig.Fail(rig.upstream, http::Failure::kInvalid);
  rig.Settle();
  EXPECT_THAT(exchange->client.got.front(), StartsWith("head 502 "));
  EXPECT_EQ(rig.Taken(), 0u) << "the answer is the proxy's own";
}

TEST_P(Settlement, RequestThatThePoolRefusesCostsNothing) {
  SizeRig rig(kResponses, GetParam());
  rig.admission.verdict = {.admitted = false, .reason = "used up"};
  const auto exchange = rig.Begin(Sized(0));
  EXPECT_THAT(exchange->client.got.front(), StartsWith("head 429 "));
  rig.Settle();
  EXPECT_EQ(rig.Taken(), 0u);
}

// Each is over after some time in which a part of a unit comes back.
TEST_P(Settlement, RequestsThatEndSoonWithoutAByteCostNothing) {
  SizeRig rig(
      "period: 60s, requests_per_unit: 5, cost: {of: response_bytes, per: 1MiB, reserve: 1MiB}",
      GetParam());
  for (int i = 0; i < 20; ++i) {
    const auto exchange = rig.Begin(Sized(0));
    rig.Pass(1ms);
    ASSERT_TRUE(exchange->client.got.empty()) << i << " is denied";
    exchange->receiver->OnEnd({}, rig.now);
    rig.SendHead(Sized(0));
    rig.End();
  }
  EXPECT_EQ(rig.settled.returned.value(), 20u);
  EXPECT_EQ(rig.Taken(), 0u);
}

TEST_P(Settlement, RequestCostsItsStatedSizeAtOnceAndWhatCameAtTheEnd) {
  SizeRig rig(kRequests, GetParam());
  const auto exchange = rig.Begin(Sized(30 * kKiB));
  EXPECT_EQ(rig.Taken(), 30u);
  exchange->receiver->OnData(std::string(7 * kKiB, 'x'), rig.now);
  rig.Leave(*exchange);
  EXPECT_EQ(rig.Taken(), 7u);
}

TEST_P(Settlement, RequestWithoutALengthReserves) {
  SizeRig rig(kRequests, GetParam());
  const auto exchange = rig.Begin(kUnsized);
  EXPECT_EQ(rig.Taken(), 4u);
  for (int i = 0; i < 20; ++i) exchange->receiver->OnData(std::string(kKiB, 'x'), rig.now);
  exchange->receiver->OnEnd({}, rig.now);
  rig.SendHead(Sized(0));
  rig.End();
  EXPECT_EQ(rig.Taken(), 20u);
}

TEST_P(Settlement, RequestLargerThanTheLimitNeverFits) {
  SizeRig rig(kRequests, GetParam());
  const auto exchange = rig.Begin(Sized(101 * kKiB));
  EXPECT_THAT(exchange->client.got.front(),
              AllOf(StartsWith("head 429 "), Not(HasSubstr("Retry-After"))));
  EXPECT_EQ(rig.Taken(), 0u);
}

TEST_P(Settlement, StatedCostTakesThePlaceOfTheSize) {
  SizeRig rig(kResponses, GetParam());
  rig.Map(
      "mappings:\n- descriptors:\n  - cost: 3\n"
      "    entries: [{key: client, header: X-Client-Id}]\n");
  rig.Get(50 * kKiB);
  EXPECT_EQ(rig.Taken(), 3u);
}

// 10 are there, 1 is reserved, 24 more are used: 9 are taken, 15 owed.
TEST_P(Settlement, WhatTheBucketLacksIsOwedAndDeniesTheKey) {
  SizeRig rig(kTen, GetParam());
  rig.Get(25 * kKiB);
  EXPECT_EQ(rig.Taken(), 10u);
  EXPECT_EQ(rig.Owed(), 15u);
  const auto denied = rig.Begin(Sized(0));
  EXPECT_THAT(denied->client.got.front(),
              AllOf(StartsWith("head 429 "), HasSubstr("Retry-After=16")));
  const auto other = rig.Ask({{"x-client-id", "bob"}});
  rig.Settle();
  EXPECT_THAT(rig.upstream.got.back(), StartsWith("POST /x x-client-id=bob")) << "another key";
}

TEST_P(Settlement, DebtIsPaidByWhatComesBack) {
  SizeRig rig(kTen, GetParam());
  rig.Get(25 * kKiB);
  for (int i = 0; i < 155; ++i) {
    rig.Pass(100ms);
    rig.Settle();
    const auto denied = rig.Begin(Sized(0));
    if (rig.now < kStart + 15s) {
      ASSERT_THAT(denied->client.got.front(), StartsWith("head 429 ")) << i;
    }
  }
  EXPECT_EQ(rig.Owed(), 0u);
  EXPECT_EQ(rig.settled.taken.value(), 24u);
  EXPECT_EQ(rig.limiter.size_debts().keys(), 0u);
  rig.Pass(500ms);
  rig.upstream.got.clear();
  const auto passed = rig.Begin(Sized(0));
  EXPECT_THAT(rig.upstream.got.back(), StartsWith("POST /x")) << "at the time of Retry-After";
}

TEST_P(Settlement, WindowPaysItsDebtInTheNextOnes) {
  SizeRig rig(
      "period: 10s, requests_per_unit: 10, algorithm: fixed_window,"
      " cost: {of: response_bytes, per: 1KiB}",
      GetParam());
  rig.Get(25 * kKiB);  // at the beginning of a window
  EXPECT_EQ(rig.Owed(), 15u);
  const auto denied = rig.Begin(Sized(0));
  // 10 in the next window, 5 in the one after that, which also has room for the request.
  EXPECT_THAT(denied->client.got.front(), HasSubstr("Retry-After=20"));
  rig.Pass(10s);
  rig.Settle();
  EXPECT_EQ(rig.Owed(), 5u);
  rig.Pass(10s);
  rig.Settle();
  EXPECT_EQ(rig.Owed(), 0u);
  EXPECT_EQ(rig.Taken(), 5u);
}

// Otherwise a client could take a large answer twice for one refund.
TEST_P(Settlement, WhatHasComeBackByItselfIsNotGivenBackAgain) {
  SizeRig rig(
      "period: 10s, requests_per_unit: 10,"
      " cost: {of: response_bytes, per: 1KiB, reserve: 8KiB}",
      GetParam());
  const auto exchange = rig.Begin(Sized(0));
  rig.Pass(5s);
  EXPECT_EQ(rig.Taken(), 3u);
  rig.SendHead(kUnsized);
  rig.SendBody(1);
  rig.End();
  // 8 were taken, and 5 of them have come back; of the 7 in excess, 3 go back.
  EXPECT_EQ(rig.Taken(), 0u);
  EXPECT_EQ(rig.settled.returned.value(), 3u);
  EXPECT_EQ(rig.settled.lapsed.value(), 4u);
}

TEST_P(Settlement, RefundPaysADebtFirst) {
  SizeRig rig(kTen, GetParam());
  const auto exchange = rig.Begin(Sized(0));
  rig.SendHead(Sized(25 * kKiB));
  EXPECT_EQ(rig.Owed(), 15u);
  rig.SendBody(12 * kKiB);
  rig.Leave(*exchange);
  EXPECT_EQ(rig.Taken(), 10u);
  EXPECT_EQ(rig.Owed(), 2u);
}

// A large download is owed from its beginning. If its client leaves, the debt ends, and nothing is
// left of it: a later one is paid as if it were the first.
TEST_P(Settlement, CancelledDebtLeavesNothingBehind) {
  SizeRig rig(
      "period: 1h, requests_per_unit: 3600, cost: {of: response_bytes, per: 1KiB, reserve: 4KiB}",
      GetParam());
  const auto exchange = rig.Begin(Sized(0));
  rig.SendHead(Sized(100'000 * kKiB));
  EXPECT_GT(rig.Owed(), 0u);
  rig.SendBody(10 * kKiB);
  rig.Leave(*exchange);
  EXPECT_EQ(rig.Owed(), 0u);
  EXPECT_EQ(rig.limiter.size_debts().keys(), 0u);
  rig.Get(9 * kKiB);
  EXPECT_EQ(rig.Owed(), 0u) << "the bucket has it";
  const auto passed = rig.Begin(Sized(0));
  EXPECT_EQ(passed->client.got.size(), 0u);
}

// One unit comes back each second; the whole debt would have needed an hour.
TEST_P(Settlement, RestOfACancelledDebtIsDueAsIfItWereTheWhole) {
  SizeRig rig("period: 1h, requests_per_unit: 3600, cost: {of: response_bytes, per: 1KiB}",
              GetParam());
  rig.Get(3595 * kKiB);
  const auto exchange = rig.Begin(Sized(0));  // 4 are left
  rig.SendHead(Sized(100'000 * kKiB));
  rig.SendBody(25 * kKiB);
  rig.Leave(*exchange);
  EXPECT_EQ(rig.Owed(), 20u);
  const auto denied = rig.Begin(Sized(0));
  EXPECT_THAT(denied->client.got.front(), HasSubstr("Retry-After=21"));
  for (int i = 0; i < 205; ++i) {
    rig.Pass(100ms);
    rig.Settle();
  }
  EXPECT_EQ(rig.limiter.size_debts().keys(), 0u);
  EXPECT_EQ(rig.settled.forgotten.value(), 0u);
  rig.Pass(500ms);
  const auto passed = rig.Begin(Sized(0));
  EXPECT_EQ(passed->client.got.size(), 0u);
}

TEST_P(Settlement, HigherLimitIsDueEarlier) {
  SizeRig rig("period: 1h, requests_per_unit: 10, cost: {of: response_bytes, per: 1KiB}",
              GetParam());
  rig.Get(15 * kKiB);
  EXPECT_EQ(rig.Owed(), 5u);
  rig.SetLimit("period: 10s, requests_per_unit: 10, cost: {of: response_bytes, per: 1KiB}");
  for (int i = 0; i < 80; ++i) {
    rig.Pass(100ms);
    rig.Settle();
  }
  EXPECT_EQ(rig.Owed(), 0u);
  EXPECT_EQ(rig.settled.taken.value(), 14u);
}

TEST_P(Settlement, LimitThatIsGoneForgetsItsDebts) {
  SizeRig rig(kTen, GetParam());
  rig.Get(25 * kKiB);
  rig.SetLimit("period: 10s, requests_per_unit: 10");
  rig.Pass(1200ms);  // earlier than a unit of the debt would be due
  rig.Settle();
  EXPECT_EQ(rig.limiter.size_debts().keys(), 0u);
  EXPECT_EQ(rig.settled.forgotten.value(), 15u);
}

TEST_P(Settlement, NothingIsSettledAfterTheLoop) {
  SizeRig rig(kResponses, GetParam());
  const auto exchange = rig.Begin(Sized(0));
  rig.gate->LeaveLoop();
  rig.Leave(*exchange);
  EXPECT_EQ(rig.Taken(), 4u);
}

TEST(SettlementWithAStore, ThatCannotBeReachedIsTriedAgain) {
  SizeRig rig(
      "period: 10s, requests_per_unit: 10, on_store_failure: deny,"
      " cost: {of: response_bytes, per: 1KiB}",
      Store::kShared);
  const auto exchange = rig.Begin(Sized(0));
  rig.SendHead(kUnsized);
  rig.SendBody(4 * kKiB);
  rig.shared->failure = absl::UnavailableError("away");
  rig.End();
  EXPECT_EQ(rig.Owed(), 3u);
  rig.shared->failure = absl::OkStatus();
  rig.Pass(1100ms);
  rig.Settle();
  EXPECT_EQ(rig.Owed(), 0u);
  EXPECT_EQ(rig.settled.taken.value(), 3u);
}

// ---- Everything together

struct Case {
  std::string_view algorithm;
  std::string_view of;
  uint64_t requests;  // units of the limit
  Store store;
};

class AllSizes : public ::testing::TestWithParam<Case> {};

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const std::string_view algorithm :
       {"token_bucket", "leaky_bucket", "fixed_window", "fixed_window, align: first_hit",
        "sliding_window_counter"}) {
    for (const std::string_view of : {"request_bytes", "response_bytes"}) {
      for (const uint64_t requests : {40u, 4'000'000u}) {
        for (const Store store : {Store::kMemory, Store::kShared})
          cases.push_back({algorithm, of, requests, store});
      }
    }
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Algorithms, AllSizes, ::testing::ValuesIn(Cases()));

// Requests of random sizes, with and without lengths, of which some are aborted. At each end, what
// was taken and what is owed are together the size of all requests, in units.
TEST_P(AllSizes, AreTakenOrOwed) {
  const Case& c = GetParam();
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    base::Random random(seed);
    SizeRig rig(fmt::format("period: 1h, requests_per_unit: {}, algorithm: {}, "
                            "cost: {{of: {}, per: 1KiB, reserve: 8KiB}}",
                            c.requests, c.algorithm, c.of),
                c.store);
    rig.upstream.takes = rig.other.takes = true;
    uint64_t used = 0;
    uint64_t passed = 0;
    for (int i = 0; i < 30; ++i) {
      const uint64_t up = random.Below(12 * kKiB);
      const uint64_t down = random.Below(12 * kKiB);
      const auto exchange = rig.Begin(random.Below(2) == 0 ? Sized(up) : kUnsized);
      if (!exchange->client.got.empty()) continue;  // denied
      ++passed;
      // 0 to 4: how far it comes.
      const uint64_t steps = random.Below(8);
      uint64_t sent_up = up;
      uint64_t sent_down = down;
      if (steps == 0) sent_up = sent_down = 0;
      if (steps == 1) sent_up = random.Below(up + 1), sent_down = 0;
      if (steps == 2) sent_down = 0;
      if (steps == 3) sent_down = random.Below(down + 1);
      if (sent_up > 0) exchange->receiver->OnData(std::string(sent_up, 'u'), rig.now);
      if (steps >= 2) {
        exchange->receiver->OnEnd({}, rig.now);
        rig.SendHead(random.Below(2) == 0 ? Sized(down) : kUnsized);
      }
      if (sent_down > 0) rig.SendBody(sent_down);
      if (steps < 4) {
        rig.Leave(*exchange);
      } else {
        rig.End();
      }
      const uint64_t bytes = c.of == "request_bytes" ? sent_up : sent_down;
      used += (bytes + kKiB - 1) / kKiB;
      ASSERT_EQ(rig.Taken() + rig.Owed(), used) << i;
    }
    EXPECT_GE(passed, 3u);
    EXPECT_EQ(rig.settled.lapsed.value() + rig.settled.forgotten.value(), 0u);
  }
}

// The same while time passes: buckets refill, windows end, debts are paid. All that was reserved,
// taken, given back, or is owed adds up to the sizes, and time gives nothing away twice.
TEST_P(AllSizes, AddUpWhileTimePasses) {
  const Case& c = GetParam();
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    base::Random random(seed);
    SizeRig rig(fmt::format("period: 60s, requests_per_unit: {}, algorithm: {}, "
                            "cost: {{of: {}, per: 1KiB, reserve: 8KiB}}",
                            c.requests, c.algorithm, c.of),
                c.store);
    const bool of_request = c.of == "request_bytes";
    uint64_t used = 0;
    uint64_t reserved = 0;
    for (int i = 0; i < 60; ++i) {
      rig.Pass(std::chrono::milliseconds(random.Below(30'000)));
      rig.Settle();
      const uint64_t size = random.Below(30 * kKiB);
      const bool is_sized = random.Below(2) == 0;
      const auto exchange = rig.Begin(of_request && is_sized ? Sized(size) : kUnsized);
      if (!exchange->client.got.empty()) continue;  // denied
      reserved += of_request && is_sized ? (size + kKiB - 1) / kKiB : 8;
      rig.Pass(std::chrono::milliseconds(random.Below(10'000)));
      const bool leaves = random.Below(3) == 0;
      const uint64_t sent = leaves ? random.Below(size + 1) : size;
      if (of_request && sent > 0) exchange->receiver->OnData(std::string(sent, 'u'), rig.now);
      rig.SendHead(!of_request && is_sized ? Sized(size) : kUnsized);
      rig.Pass(std::chrono::milliseconds(random.Below(10'000)));
      rig.Settle();
      if (!of_request && sent > 0) rig.SendBody(sent);
      leaves ? rig.Leave(*exchange) : rig.End();
      used += (sent + kKiB - 1) / kKiB;
      const SettleCounters& settled = rig.settled;
      ASSERT_EQ(reserved + settled.taken.value() + rig.Owed(),
                used + settled.returned.value() + settled.lapsed.value())
          << i;
    }
    EXPECT_EQ(rig.settled.forgotten.value(), 0u);
    rig.Pass(1h);
    for (int i = 0; i < 100; ++i) {
      rig.Pass(60s);
      rig.Settle();
    }
    EXPECT_EQ(rig.Owed(), 0u) << "every debt is paid in the end";
    EXPECT_EQ(rig.limiter.size_debts().keys(), 0u);
  }
}

}  // namespace settler_test
}  // namespace headgate::proxy
