#include "headgate/store/cas/key_owner.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "headgate/store/cas/fleet_rig.h"

namespace headgate::store::cas {
namespace key_owner_test {

using namespace std::chrono_literals;

const algorithm::LimitSpec kFive{
    .algorithm = algorithm::Algorithm::kTokenBucket, .requests = 5, .period = 1h};

// Asks this many times at once, and returns how many were admitted.
int Admitted(FleetRig& fleet, const LimitHandle& limit, int requests, base::Duration timeout = 1s) {
  int admitted = 0;
  int answered = 0;
  for (int i = 0; i < requests; ++i) {
    fleet.Ask(static_cast<size_t>(i) % fleet.instances(), "k", {.name = "k", .limit = limit},
              timeout, [&](const SharedAnswer& answer) {
                ++answered;
                admitted += answer.status.ok() && answer.decision.allowed;
              });
  }
  fleet.Run();
  EXPECT_EQ(answered, requests);
  return admitted;
}

TEST(KeyOwner, AThousandRequestsOfOneTurnTakeOneReadAndOneWrite) {
  FleetRig fleet(1);
  const LimitHandle limit = fleet.Limit({.requests = 700, .period = 1h});
  EXPECT_EQ(Admitted(fleet, limit, 1'000), 700);
  EXPECT_EQ(fleet.service.gets, 1u);
  EXPECT_EQ(fleet.service.puts, 1u);
  EXPECT_EQ(fleet.owner(0).counters().rounds.value(), 1u);
  EXPECT_EQ(fleet.owner(0).counters().combined.value(), 999u);
}

TEST(KeyOwner, RequestsThatComeWhileARoundIsUnderWayTakeOneRoundMore) {
  FleetRig fleet(1);
  fleet.service.faults.delay_max = 10ms;
  const LimitHandle limit = fleet.Limit({.requests = 1'000, .period = 1h});
  int answered = 0;
  const auto ask = [&] {
    fleet.Ask(0, "k", {.name = "k", .limit = limit}, 1s,
              [&](const SharedAnswer& answer) { answered += answer.decision.allowed; });
  };
  ask();
  fleet.Flush();
  for (int i = 0; i < 500; ++i) {
    ask();
    fleet.Flush();  // each in a turn of its own
  }
  fleet.Run();
  EXPECT_EQ(answered, 501);
  EXPECT_EQ(fleet.owner(0).counters().rounds.value(), 2u);
  EXPECT_EQ(fleet.service.puts, 2u);
}

TEST(KeyOwner, InstancesShareOneBucket) {
  FleetRig fleet(4);
  fleet.service.faults.delay_max = 2ms;
  EXPECT_EQ(Admitted(fleet, fleet.Limit(kFive), 40), 5);
  EXPECT_FALSE(fleet.Ask(3, "k", {.name = "k", .limit = fleet.Limit(kFive)}).decision.allowed);
  EXPECT_TRUE(fleet.Ask(3, "other", {.name = "k", .limit = fleet.Limit(kFive)}).decision.allowed);
}

TEST(KeyOwner, AKnownValueIsWrittenWithoutARead) {
  FleetRig fleet(1);
  const SharedRequest request{.name = "k", .limit = fleet.Limit(kFive)};
  for (uint64_t i = 0; i < 5; ++i) EXPECT_EQ(fleet.Ask(0, "k", request).decision.remaining, 4 - i);
  EXPECT_EQ(fleet.service.gets, 1u);
  EXPECT_EQ(fleet.service.puts, 5u);
}

TEST(KeyOwner, ADenialSeesWhatAnotherInstanceGaveBack) {
  FleetRig fleet(2);
  const LimitHandle limit = fleet.Limit(kFive);
  EXPECT_TRUE(fleet.Ask(0, "k", {.name = "k", .limit = limit, .cost = 5}).decision.allowed);
  fleet.Ask(1, "k", {.name = "k", .limit = limit, .operation = Operation::kRefund});
  EXPECT_TRUE(fleet.Ask(0, "k", {.name = "k", .limit = limit}).decision.allowed);
  EXPECT_EQ(fleet.Ask(1, "k", {.name = "k", .limit = limit, .operation = Operation::kPeek})
                .decision.remaining,
            0u);
}

TEST(KeyOwner, NothingIsMadeForWhatChangesNothing) {
  FleetRig fleet(1);
  const LimitHandle limit = fleet.Limit(kFive);
  fleet.Ask(0, "k", {.name = "k", .limit = limit, .operation = Operation::kPeek});
  fleet.Ask(0, "k", {.name = "k", .limit = limit, .operation = Operation::kRefund});
  fleet.Ask(0, "k", {.name = "k", .limit = limit, .operation = Operation::kReset});
  fleet.Ask(0, "k", {.name = "k", .limit = limit, .cost = 6});
  EXPECT_TRUE(fleet.service.values.empty());
}

TEST(KeyOwner, ADamagedValueFailsRequestsAndIsCountedUntilItIsReset) {
  FleetRig fleet(2);
  const LimitHandle limit = fleet.Limit(kFive);
  fleet.Ask(0, "k", {.name = "k", .limit = limit, .cost = 5});
  fleet.service.values["k"].bytes[20] ^= 1;
  const SharedAnswer answer = fleet.Ask(1, "k", {.name = "k", .limit = limit});
  EXPECT_TRUE(absl::IsDataLoss(answer.status)) << answer.status;
  EXPECT_EQ(fleet.owner(1).counters().damaged.value(), 1u);
  fleet.Ask(1, "k", {.name = "k", .limit = limit, .operation = Operation::kReset});
  EXPECT_EQ(fleet.Ask(0, "k", {.name = "k", .limit = limit}).decision.remaining, 4u);
}

TEST(KeyOwner, TooManyRequestsAreRefusedAtOnce) {
  FleetRig fleet(1, 1, {.requests_per_key_max = 3, .requests_max = 5});
  const LimitHandle limit = fleet.Limit(kFive);
  std::vector<absl::StatusCode> refused;
  int answered = 0;
  const auto ask = [&](std::string_view name) {
    fleet.Ask(0, name, {.name = name, .limit = limit}, 1s, [&](const SharedAnswer& answer) {
      ++answered;
      if (!answer.status.ok()) refused.push_back(answer.status.code());
    });
  };
  for (int i = 0; i < 4; ++i) ask("a");
  EXPECT_EQ(refused.size(), 1u) << "for one key";
  for (int i = 0; i < 3; ++i) ask("b");
  EXPECT_EQ(refused, std::vector(2, absl::StatusCode::kResourceExhausted)) << "for all keys";
  fleet.Run();
  EXPECT_EQ(answered, 7);
  EXPECT_EQ(fleet.owner(0).counters().refused.value(), 2u);
  ask("b");
  fleet.Run();
  EXPECT_EQ(refused.size(), 2u) << "there is room again";
}

TEST(KeyOwner, TheValuesNotUsedForLongestAreForgotten) {
  FleetRig fleet(1, 1, {.remembered_max = 3});
  const LimitHandle limit = fleet.Limit(kFive);
  const auto ask = [&](std::string_view name) {
    const uint64_t gets = fleet.service.gets;
    fleet.Ask(0, name, {.name = name, .limit = limit});
    return fleet.service.gets > gets ? "read" : "known";
  };
  for (const std::string_view name : {"a", "b", "c"}) EXPECT_EQ(ask(name), "read");
  EXPECT_EQ(ask("a"), "known");
  EXPECT_EQ(ask("d"), "read");
  EXPECT_EQ(ask("a"), "known");
  EXPECT_EQ(ask("b"), "read");
  EXPECT_LE(fleet.owner(0).keys(), 4u);
}

TEST(KeyOwner, LargeValuesAreForgottenSooner) {
  FleetRig fleet(1, 1, {.remembered_bytes_max = 4'000});
  const LimitHandle limit = fleet.Limit(
      {.algorithm = algorithm::Algorithm::kSlidingWindowLog, .requests = 1'000, .period = 1h});
  for (const std::string_view name : {"a", "b"}) {
    for (int i = 0; i < 200; ++i) {
      fleet.Ask(0, name, {.name = name, .limit = limit});
      fleet.clock.Advance(1us);  // or the hits are one
    }
  }
  EXPECT_EQ(fleet.owner(0).keys(), 1u);
}

TEST(KeyOwner, EveryRequestIsAnsweredInTime) {
  FleetRig fleet(1);
  fleet.service.faults.delay_max = std::chrono::hours(1);
  const base::BootTime start = fleet.clock.BootNow();
  std::optional<base::Duration> took;
  fleet.Ask(0, "k", {.name = "k", .limit = fleet.Limit(kFive)}, 80ms,
            [&](const SharedAnswer& answer) {
              EXPECT_EQ(answer.status.code(), absl::StatusCode::kUnavailable);
              took = fleet.clock.BootNow() - start;
            });
  fleet.Run();
  ASSERT_TRUE(took.has_value());
  EXPECT_LE(*took, 80ms);
}

TEST(KeyOwner, WhoeverGetsAnAnswerMayAskAgainAtOnce) {
  FleetRig fleet(1);
  const LimitHandle limit = fleet.Limit(kFive);
  int left = 12;
  std::vector<bool> allowed;
  std::function<void(const SharedAnswer&)> again = [&](const SharedAnswer& answer) {
    allowed.push_back(answer.decision.allowed);
    if (--left > 0) fleet.Ask(0, "k", {.name = "k", .limit = limit}, 1s, again);
  };
  fleet.Ask(0, "k", {.name = "k", .limit = limit}, 1s, again);
  fleet.Run();
  EXPECT_EQ(std::count(allowed.begin(), allowed.end(), true), 5);
  EXPECT_EQ(allowed.size(), 12u);
}

}  // namespace key_owner_test
}  // namespace headgate::store::cas
