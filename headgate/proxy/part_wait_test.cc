// Requests that wait for the pool of a fleet.
#include "headgate/proxy/part_wait.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headgate/proxy/application.h"
#include "headgate/proxy/relay_rig.h"

namespace headgate::proxy {
namespace part_wait_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Tells requests to wait until it has an answer.
struct Rounds final : Admission {
  AdmissionVerdict Admit(std::string_view, base::Instant) override { return verdict; }
  AdmissionVerdict Ask(std::string_view client, Asking asking, base::Instant) override {
    asked.emplace_back(client);
    tickets.push_back(asking.ticket);
    if (is_decided || asking.is_last) {
      verdict.ticket = 0;
      verdict.admitted = is_decided;
      verdict.reason = is_decided ? "" : "too slow";
      return verdict;
    }
    verdict.ticket = 7;
    verdict.admitted = false;
    return verdict;
  }
  void OnLeft(const Leaving&, base::Instant) override {}

  AdmissionVerdict verdict{.quota = 10, .remaining = 7, .reset_after = std::chrono::seconds(4)};
  bool is_decided = false;
  std::vector<std::string> asked;
  std::vector<uint64_t> tickets;
};

struct PartWaitTest : ::testing::Test {
  PartWaitTest() { application.SetHeld(held); }

  void Ask() {
    http::RequestHead head{.method = "POST",
                           .target = "/x",
                           .scheme = "http",
                           .authority = "example.com",
                           .body = {.kind = http::BodyLength::Kind::kUnsized}};
    head.fields.Add("X-Client-Id", "ann");
    const net::Peer peer{.ip = base::ParseIpAddress("192.0.2.7")};
    receiver = application.OnRequest(std::move(head), peer, rig.client, rig.now);
  }
  void Wait(base::Duration time) {
    rig.now += time;
    held.Advance(rig.now);
  }

  RelayRig rig;
  Rounds rounds;
  RelayContext context{.options = rig.options,
                       .admission = rounds,
                       .places = rig,
                       .wheel = rig.wheel,
                       .counters = rig.counters,
                       .random = rig.random};
  ApplicationOptions options{.forwarded = {.x_forwarded = Forwarding::kOff, .via = ""},
                             .cycle = std::chrono::seconds(10)};
  ApplicationCounters counters;
  HeldRequests held{1, [](base::Instant) {}};
  Application application{options, context, counters};
  std::unique_ptr<http::RequestReceiver> receiver;
};

TEST_F(PartWaitTest, GoesOnWithItsBodyWhenThePoolHasDecided) {
  Ask();
  receiver->OnData("beginning", rig.now);
  Wait(PartWait::kAskAgain);
  EXPECT_THAT(rig.upstream.got, IsEmpty());
  EXPECT_THAT(rounds.tickets, ElementsAre(0, 7));
  rounds.is_decided = true;
  Wait(PartWait::kAskAgain);
  EXPECT_THAT(rounds.tickets, ElementsAre(0, 7, 7));
  EXPECT_THAT(rounds.asked, ElementsAre("ann", "ann", "ann"));
  receiver->OnData("end", rig.now);
  receiver->OnEnd({}, rig.now);
  ASSERT_FALSE(rig.upstream.got.empty());
  EXPECT_EQ(rig.upstream.got.front(), "POST /x unsized X-Client-Id=ann");
  EXPECT_THAT(::testing::PrintToString(rig.upstream.got), HasSubstr("beginning"));
  EXPECT_EQ(counters.admitted.value(), 1u);
}

TEST_F(PartWaitTest, IsRefusedWhenItsTimeIsOver) {
  Ask();
  for (base::Duration waited{0}; waited <= PartWait::kPatience; waited += PartWait::kAskAgain)
    Wait(PartWait::kAskAgain);
  EXPECT_THAT(rig.upstream.got, IsEmpty());
  EXPECT_THAT(rig.client.got.front(), HasSubstr("head 429"));
  EXPECT_EQ(counters.refused.value(), 1u);
}

TEST_F(PartWaitTest, AsksNoMoreWhenItsClientHasLeft) {
  Ask();
  receiver->OnAbort(rig.now);
  receiver.reset();
  Wait(PartWait::kPatience);
  EXPECT_THAT(rounds.tickets, ElementsAre(0));
  EXPECT_FALSE(held.full());
}

TEST_F(PartWaitTest, ARequestThatFindsTooManyWaitingIsDecidedAtOnce) {
  Ask();
  std::unique_ptr<http::RequestReceiver> first = std::move(receiver);
  EXPECT_TRUE(held.full());
  Ask();
  EXPECT_THAT(rig.client.got.front(), HasSubstr("head 429"));
}

}  // namespace part_wait_test
}  // namespace headgate::proxy
