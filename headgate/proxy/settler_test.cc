#include "headgate/proxy/settler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

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
INSTANTIATE_TEST_SUITE_P(Stores, Settlement,
                         ::testing::Values(Store::kMemory, Store::kShared, Store::kLeased));

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

// A stream may never end, so its bytes are charged before its end.
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

// 10 are there, 1 is reserved, and 24 more are charged: 15 are owed.
TEST_P(Settlement, AnswerBeyondTheLimitOverdrawsTheBucketAndDeniesTheKey) {
  SizeRig rig(kTen, GetParam());
  rig.Get(25 * kKiB);
  EXPECT_EQ(rig.Taken(), 10u);
  EXPECT_TRUE(rig.Peek().overdrawn);
  EXPECT_EQ(rig.settled.taken.value(), 24u);
  const auto denied = rig.Begin(Sized(0));
  EXPECT_THAT(denied->client.got.front(),
              AllOf(StartsWith("head 429 "), HasSubstr("Retry-After=16")));
  const auto other = rig.Ask({{"x-client-id", "bob"}});
  rig.Settle();
  EXPECT_THAT(rig.upstream.got.back(), StartsWith("POST /x x-client-id=bob")) << "another key";
}

TEST_P(Settlement, TimePaysForAnOverdrawnBucket) {
  SizeRig rig(kTen, GetParam());
  rig.Get(25 * kKiB);
  for (int i = 1; i < 160; ++i) {
    rig.Pass(100ms);
    const auto denied = rig.Begin(Sized(0));
    ASSERT_THAT(denied->client.got.front(), StartsWith("head 429 ")) << i;
  }
  rig.Pass(100ms);
  rig.upstream.got.clear();
  const auto passed = rig.Begin(Sized(0));
  EXPECT_THAT(rig.upstream.got.back(), StartsWith("POST /x")) << "at the time of Retry-After";
}

TEST_P(Settlement, OverdrawnWindowDeniesUntilItsEnd) {
  SizeRig rig(
      "period: 10s, requests_per_unit: 10, algorithm: fixed_window,"
      " cost: {of: response_bytes, per: 1KiB}",
      GetParam());
  rig.Get(25 * kKiB);  // at the beginning of a window
  EXPECT_TRUE(rig.Peek().overdrawn);
  const auto denied = rig.Begin(Sized(0));
  EXPECT_THAT(denied->client.got.front(), HasSubstr("Retry-After=10"));
  rig.Pass(10s);
  EXPECT_EQ(rig.Taken(), 0u) << "the next window begins with all of its units";
}

// All 25 count at the beginning of the next window, and 9 of them are left 6.4 s later.
TEST_P(Settlement, OverdrawnSlidingWindowPaysInTheNextOne) {
  SizeRig rig(
      "period: 10s, requests_per_unit: 10, algorithm: sliding_window_counter,"
      " cost: {of: response_bytes, per: 1KiB}",
      GetParam());
  rig.Get(25 * kKiB);  // at the beginning of a window
  EXPECT_EQ(rig.Peek(1).retry_after, 16'400ms);
  rig.Pass(16'400ms);
  EXPECT_TRUE(rig.Peek(1).allowed);
}

// Otherwise a client could take a large answer twice for one undo.
TEST_P(Settlement, WhatHasComeBackByItselfIsNotGivenBackAgain) {
  SizeRig rig(
      "period: 10s, requests_per_unit: 10,"
      " cost: {of: response_bytes, per: 1KiB, reserve: 8KiB}",
      GetParam());
  rig.Get(2 * kKiB);
  const auto exchange = rig.Begin(Sized(0));
  EXPECT_EQ(rig.Taken(), 10u);
  rig.Pass(5s);
  EXPECT_EQ(rig.Taken(), 5u);
  rig.SendHead(kUnsized);
  rig.SendBody(1);
  rig.End();
  // 8 were taken, and 5 of them have come back; of the 7 in excess, 3 go back.
  EXPECT_EQ(rig.Taken(), 2u);
}

TEST_P(Settlement, ClientThatLeavesOwesWhatItGot) {
  SizeRig rig(kTen, GetParam());
  const auto exchange = rig.Begin(Sized(0));
  rig.SendHead(Sized(25 * kKiB));
  EXPECT_EQ(rig.Peek(1).retry_after, 16s);
  rig.SendBody(12 * kKiB);
  rig.Leave(*exchange);
  EXPECT_EQ(rig.Peek(1).retry_after, 3s);
}

// A large download is charged from its beginning. If its client leaves, nothing of that is left.
TEST_P(Settlement, ClientThatLeavesALargeDownloadPaysForWhatItGot) {
  SizeRig rig("period: 1h, requests_per_unit: 3600, cost: {of: response_bytes, per: 1KiB}",
              GetParam());
  rig.Get(3595 * kKiB);
  const auto exchange = rig.Begin(Sized(0));  // 4 are left
  rig.SendHead(Sized(100'000 * kKiB));
  rig.SendBody(25 * kKiB);
  rig.Leave(*exchange);
  EXPECT_EQ(rig.settled.lapsed.value() + rig.settled.forgotten.value(), 0u);
  const auto denied = rig.Begin(Sized(0));
  EXPECT_THAT(denied->client.got.front(), HasSubstr("Retry-After=21"));
  rig.Pass(21s);
  const auto passed = rig.Begin(Sized(0));
  EXPECT_EQ(passed->client.got.size(), 0u);
}

TEST_P(Settlement, HigherLimitPaysFaster) {
  SizeRig rig("period: 1h, requests_per_unit: 10, cost: {of: response_bytes, per: 1KiB}",
              GetParam());
  rig.Get(15 * kKiB);
  EXPECT_EQ(rig.Peek(1).retry_after, 6 * 6min);
  rig.SetLimit("period: 10s, requests_per_unit: 10, cost: {of: response_bytes, per: 1KiB}");
  rig.Pass(6s);
  const auto passed = rig.Begin(Sized(0));
  EXPECT_EQ(passed->client.got.size(), 0u);
}

TEST_P(Settlement, LimitThatIsGoneIsNotCharged) {
  SizeRig rig(kTen, GetParam());
  const auto exchange = rig.Begin(Sized(0));
  rig.SetLimit("period: 10s, requests_per_unit: 10");
  rig.SendHead(kUnsized);
  rig.SendBody(25 * kKiB);
  rig.End();
  EXPECT_EQ(rig.settled.forgotten.value(), 24u);
  EXPECT_EQ(rig.Taken(), 1u);
}

TEST_P(Settlement, NothingIsSettledAfterTheLoop) {
  SizeRig rig(kResponses, GetParam());
  const auto exchange = rig.Begin(Sized(0));
  rig.gate->LeaveLoop();
  rig.Leave(*exchange);
  EXPECT_EQ(rig.Taken(), 4u);
}

// ---- With a shared store

TEST(SettlementWithAStore, OfAClientThatLeavesMeanwhileGoesOnWhenTheStoreHasAnswered) {
  SizeRig rig(kResponses, Store::kShared);
  const auto exchange = rig.Begin(Sized(0));
  rig.Answer(rig.upstream).OnHead({.status = 200, .body = Sized(50 * kKiB)}, rig.now);
  EXPECT_EQ(rig.shared->waiting(), 1u) << "46 more are charged";
  rig.SendBody(15 * kKiB);
  exchange->receiver->OnAbort(rig.now);
  rig.free.push_front(&rig.upstream);
  EXPECT_EQ(rig.shared->waiting(), 1u) << "one question after the other";
  rig.Settle();
  EXPECT_EQ(rig.Taken(), 15u);
  EXPECT_EQ(rig.settled.taken.value(), 46u);
  EXPECT_EQ(rig.settled.returned.value(), 35u);
}

TEST(SettlementWithAStore, IsGivenUpWithTheLoop) {
  SizeRig rig(kResponses, Store::kShared);
  const auto exchange = rig.Begin(Sized(0));
  rig.Answer(rig.upstream).OnHead({.status = 200, .body = Sized(50 * kKiB)}, rig.now);
  rig.gate->LeaveLoop();
  exchange->receiver->OnAbort(rig.now);
  rig.free.push_front(&rig.upstream);
  rig.Settle();
  EXPECT_EQ(rig.Taken(), 50u) << "the store has got the question";
  EXPECT_EQ(rig.settled.taken.value(), 0u);
}

TEST(SettlementWithAStore, ProgressDoesNotTakeALengthBack) {
  SizeRig rig(kResponses, Store::kShared);
  const auto exchange = rig.Begin(Sized(0));
  rig.Answer(rig.upstream).OnHead({.status = 200, .body = Sized(8 * 1024 * kKiB)}, rig.now);
  for (int i = 0; i < 64; ++i) rig.SendBody(32 * kKiB);
  rig.Settle();
  EXPECT_EQ(rig.settled.taken.value(), 8 * 1024u - 4);
  EXPECT_EQ(rig.settled.returned.value(), 0u);
  rig.Leave(*exchange);
  EXPECT_EQ(rig.settled.returned.value(), 6 * 1024u);
}

TEST(SettlementWithAStore, ThatDoesNotAnswerIsCounted) {
  SizeRig rig(
      "period: 10s, requests_per_unit: 10, on_store_failure: deny,"
      " cost: {of: response_bytes, per: 1KiB, reserve: 2KiB}",
      Store::kShared);
  const auto exchange = rig.Begin(Sized(0));
  rig.shared->failure = absl::UnavailableError("away");
  rig.SendHead(Sized(9 * kKiB));
  EXPECT_EQ(rig.settled.forgotten.value(), 7u);
  rig.shared->failure = absl::OkStatus();
  rig.SendBody(1 * kKiB);
  rig.Leave(*exchange);
  EXPECT_EQ(rig.settled.lapsed.value(), 7u) << "what was not taken is not given back";
  EXPECT_EQ(rig.settled.returned.value(), 1u);
  EXPECT_EQ(rig.Taken(), 1u);
}

// The requests have ended, and the store does not answer.
TEST(SettlementWithAStore, HasABound) {
  SizeRig rig(kResponses, Store::kShared);
  const rule::Entry entry{.key = "client", .value = "ann"};
  const rule::Descriptor descriptor{.entries = {&entry, 1}};
  const auto ann = std::make_shared<const limiter::KeptRequest>(
      limiter::Request{.domain = "default", .descriptors = {&descriptor, 1}});
  const limiter::SizeTake take{.cost = {.per_bytes = kKiB, .reserve_bytes = kKiB}, .taken = 1};
  for (size_t i = 0; i <= Settler::kWaitingMax; ++i)
    rig.settler->Follow({limiter::SizeCharge(ann, take)})->OnEnded({.response = 3 * kKiB}, rig.now);
  EXPECT_EQ(rig.settled.forgotten.value(), 2u);
  rig.shared->AnswerAll();
  rig.Pass(base::Duration(0));
  EXPECT_EQ(rig.settled.taken.value(), 2u * Settler::kWaitingMax);
}

// A charge is treated like a request in an outage: it counts in the share of this instance, and is
// taken from the bucket afterwards.
TEST(SettlementWithAStore, ChargesTheShareOfTheInstanceInAnOutage) {
  SizeRig rig(kTen, Store::kShared);
  const auto exchange = rig.Begin(Sized(0));
  rig.shared->failure = absl::UnavailableError("away");
  rig.SendHead(Sized(25 * kKiB));
  EXPECT_EQ(rig.settled.taken.value(), 24u);
  EXPECT_EQ(rig.decider->debts().owed.value(), 24u);
  rig.SendBody(20 * kKiB);
  rig.Leave(*exchange);
  EXPECT_EQ(rig.settled.returned.value(), 5u);
  const auto denied = rig.Begin(Sized(0));
  EXPECT_THAT(denied->client.got.front(), StartsWith("head 429 "));
  rig.shared->failure = absl::OkStatus();
  for (int i = 0; i < 20; ++i) {
    rig.Pass(100ms);
    rig.decider->OnTime();
    rig.Settle();
  }
  // 20 were sent, of which about 2 have come back.
  EXPECT_GT(rig.Peek(1).retry_after, 7s);
  EXPECT_LE(rig.Peek(1).retry_after, 9s);
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
        for (const Store store : {Store::kMemory, Store::kShared, Store::kLeased})
          cases.push_back({algorithm, of, requests, store});
      }
    }
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Algorithms, AllSizes, ::testing::ValuesIn(Cases()));

// Requests of random sizes, with and without lengths, of which some are aborted. At each end, the
// size of all requests was taken, in units.
TEST_P(AllSizes, AreTaken) {
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
      // With leases, a unit that is about to be returned still counts as taken in the store.
      if (c.store == Store::kLeased) continue;
      ASSERT_EQ(rig.Taken(), std::min(used, c.requests)) << i;
    }
    EXPECT_GE(passed, 3u);
    if (c.store == Store::kLeased) rig.decider->ReturnLeases([](uint64_t) {});
    rig.Settle();
    ASSERT_EQ(rig.Taken(), std::min(used, c.requests));
    EXPECT_EQ(rig.settled.lapsed.value() + rig.settled.forgotten.value(), 0u);
  }
}

// The same while time passes: buckets refill, and windows end. All that was reserved, taken or
// given back adds up to the sizes.
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
      ASSERT_EQ(reserved + settled.taken.value(), used + settled.returned.value()) << i;
    }
    EXPECT_EQ(rig.settled.lapsed.value() + rig.settled.forgotten.value(), 0u);
    rig.Pass(1h);
    EXPECT_EQ(rig.Taken(), 0u) << "time has paid for everything";
  }
}

}  // namespace settler_test
}  // namespace headgate::proxy
