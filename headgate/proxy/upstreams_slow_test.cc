// Addresses that do not answer attempts to connect.
#include <gtest/gtest.h>

#include <array>

#include "headgate/proxy/upstreams_rig.h"

namespace headgate::proxy {
namespace upstreams_slow_test {

using std::chrono::milliseconds;

struct UpstreamsSlowTest : UpstreamsRig {
  void Pass(milliseconds time) {
    now += time;
    upstreams->OnTick(now);
    Turn();
  }
  // A request that waits.
  void Wait(PlayedWaiter& waiter) {
    waiter.on_place = [this](Place& place) { Occupy(&place); };
    EXPECT_EQ(TakeFor(waiter).place, nullptr);
  }
};

TEST_F(UpstreamsSlowTest, AnotherAddressIsTriedAfterTheAttemptDelay) {
  Make(2);
  PlayedWaiter waiter;
  Wait(waiter);
  ASSERT_EQ(made.size(), 1u);
  Pass(milliseconds(249));
  EXPECT_EQ(made.size(), 1u);
  Pass(milliseconds(1));
  ASSERT_EQ(made.size(), 2u);
  EXPECT_NE(made[1]->address, made[0]->address);
  Connected(1);
  ASSERT_NE(waiter.place, nullptr);
  EXPECT_EQ(&Played(*waiter.place), made[1]);
  // Others go there too, though it has more requests.
  PlayedWaiter second;
  Wait(second);
  PlayedWaiter third;
  Wait(third);
  ASSERT_EQ(made.size(), 4u);
  EXPECT_EQ(made[2]->address, made[1]->address);
  EXPECT_EQ(made[3]->address, made[1]->address);
  // The first connection is made after all.
  Connected(0);
  EXPECT_NE(second.place, nullptr);
  Connected(2);
  EXPECT_NE(third.place, nullptr);
  PlayedWaiter fourth;
  Wait(fourth);
  ASSERT_EQ(made.size(), 4u) << "a connection that is being made is left over";
  Connected(3);
  for (PlayedWaiter* one : {&waiter, &second, &third, &fourth}) Leave(*one->place);
}

TEST_F(UpstreamsSlowTest, AnIdleConnectionToAnotherAddressIsUsed) {
  Make(2);
  Place& idle = Take();
  Leave(idle);
  PlayedWaiter waiter;
  Wait(waiter);
  ASSERT_EQ(made.size(), 2u);
  EXPECT_NE(made[1]->address, made[0]->address);
  Pass(milliseconds(250));
  EXPECT_EQ(waiter.place, &idle);
  EXPECT_EQ(made.size(), 2u);
  Leave(idle);
}

TEST_F(UpstreamsSlowTest, OneAttemptForEachRequestIfAllAreSlow) {
  Make(2);
  std::array<PlayedWaiter, 2> crowd;
  for (PlayedWaiter& waiter : crowd) Wait(waiter);
  ASSERT_EQ(made.size(), 2u);
  for (int i = 0; i < 9; ++i) Pass(milliseconds(300));
  EXPECT_EQ(made.size(), 2u);
  PlayedWaiter third;
  Wait(third);
  EXPECT_EQ(made.size(), 3u);
  upstreams->Close(now);
}

TEST_F(UpstreamsSlowTest, TheOnlyAddressIsAskedOnceForEachRequest) {
  Make(1);
  PlayedWaiter waiter;
  Wait(waiter);
  for (int i = 0; i < 9; ++i) Pass(milliseconds(300));
  EXPECT_EQ(made.size(), 1u);
  PlayedWaiter second;
  Wait(second);
  EXPECT_EQ(made.size(), 2u);
  upstreams->Close(now);
}

// An address that is out is not asked, however slow the others are.
TEST_F(UpstreamsSlowTest, AddressesThatAreOutAreNotTriedInstead) {
  Make(2);
  upstreams->OnChecked(0, false);
  upstreams->OnChecked(0, false);
  PlayedWaiter waiter;
  Wait(waiter);
  Pass(milliseconds(300));
  ASSERT_EQ(made.size(), 1u);
  EXPECT_EQ(made[0]->address, 1u);
  // An attempt that has failed is not slow any more.
  made[0]->owner->OnClosed(UpstreamConnection::End::kConnectTimeout, "no answer", now);
  Turn();
  EXPECT_EQ(made.size(), 2u);
  upstreams->Close(now);
}

}  // namespace upstreams_slow_test
}  // namespace headgate::proxy
