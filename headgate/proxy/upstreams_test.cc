// Which address and which connection a request gets, the queue, and the end of connections. The
// connections are played by the test.
#include "headgate/proxy/upstreams.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <numeric>
#include <optional>
#include <vector>

#include "headgate/proxy/upstreams_rig.h"

namespace headgate::proxy {
namespace upstreams_test {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

using UpstreamsTest = UpstreamsRig;

TEST_F(UpstreamsTest, RequestWaitsForItsConnectionAndTheNextUsesItAgain) {
  Make(1);
  PlayedWaiter waiter;
  EXPECT_EQ(TakeFor(waiter).place, nullptr);
  EXPECT_EQ(waiter.place, nullptr);
  EXPECT_EQ(counters.queued.value(), 1u);
  Connected(0);
  ASSERT_NE(waiter.place, nullptr);
  EXPECT_FALSE(waiter.place->reused());
  EXPECT_EQ(counters.queued.value(), 0u);
  EXPECT_EQ(counters.outstanding.value(), 1u);
  Leave(*waiter.place);
  const auto again = TakeFor(waiter);
  ASSERT_NE(again.place, nullptr);
  EXPECT_TRUE(again.place->reused());
  EXPECT_EQ(made.size(), 1u);
  Leave(*again.place);
  EXPECT_EQ(counters.outstanding.value(), 0u);
}

TEST_F(UpstreamsTest, FewestOutstandingRequestsDecide) {
  Make(3);
  std::vector<Place*> places;
  std::vector<size_t> used(3);
  for (int i = 0; i < 9; ++i) {
    places.push_back(&Take());
    ++used[Played(*places.back()).address];
  }
  EXPECT_THAT(used, ElementsAre(3, 3, 3));
  // The address that is left has fewer.
  const size_t address = Played(*places[4]).address;
  Leave(*places[4]);
  EXPECT_EQ(Played(Take()).address, address);
  for (size_t i = 0; i < places.size(); ++i) Leave(*places[i]);
}

TEST_F(UpstreamsTest, AddressWithFewerRequestsIsBeforeTheOneWhoseTurnItIs) {
  options.connections_max = 10;
  Make(2);
  Place& stays = Take();
  Place& leaves = Take();
  const size_t address = Played(leaves).address;
  EXPECT_NE(address, Played(stays).address);
  Leave(leaves);
  Place& next = Take();
  EXPECT_EQ(Played(next).address, address);
  EXPECT_EQ(made.size(), 2u) << "no connection to the other one";
  Leave(stays);
  Leave(next);
}

// A burst comes before any connection is made.
TEST_F(UpstreamsTest, RequestsThatWaitForAConnectionCountToo) {
  Make(2);
  std::vector<Place*> places;
  for (int i = 0; i < 3; ++i) places.push_back(&Take());
  std::array<PlayedWaiter, 5> burst;
  for (PlayedWaiter& waiter : burst) {
    waiter.on_place = [this](Place& place) { Occupy(&place); };
    (void)TakeFor(waiter);
  }
  std::vector<size_t> opened(2);
  for (const PlayedConnection* connection : made) ++opened[connection->address];
  EXPECT_THAT(opened, ElementsAre(4, 4));
  for (size_t i = 3; i < made.size(); ++i) Connected(i);
  for (PlayedWaiter& waiter : burst) Leave(*waiter.place);
  for (Place* place : places) Leave(*place);
}

TEST_F(UpstreamsTest, ConnectionThatWasUsedLastIsUsedAgain) {
  Make(1);
  Place& first = Take();
  Place& second = Take();
  Leave(second);
  Leave(first);
  EXPECT_EQ(&Take(), &first);
  Leave(first);
}

TEST_F(UpstreamsTest, QueueIsServedInOrderAndBounded) {
  options.connections_max = 1;
  options.queue_max = 2;
  Make(1);
  Place& only = Take();
  PlayedWaiter first;
  PlayedWaiter second;
  PlayedWaiter third;
  first.on_place = second.on_place = [this](Place& place) { Occupy(&place); };
  (void)TakeFor(first);
  (void)TakeFor(second);
  EXPECT_EQ(TakeFor(third).refused, NoPlace::kQueueFull);
  EXPECT_EQ(counters.refusals_full.value(), 1u);
  EXPECT_EQ(made.size(), 1u);
  Leave(only);
  EXPECT_EQ(first.place, &only);
  EXPECT_EQ(second.place, nullptr);
  Leave(only);
  EXPECT_EQ(second.place, &only);
  Leave(only);
}

TEST_F(UpstreamsTest, RequestThatGivesUpLeavesTheQueueFromAnyPosition) {
  options.connections_max = 1;
  Make(1);
  Place& only = Take();
  PlayedWaiter first;
  PlayedWaiter second;
  PlayedWaiter third;
  first.on_place = third.on_place = [this](Place& place) { Occupy(&place); };
  for (PlayedWaiter* waiter : {&first, &second, &third}) (void)TakeFor(*waiter);
  upstreams->Forget(second);
  upstreams->Forget(second);
  EXPECT_EQ(counters.queued.value(), 2u);
  Leave(only);
  Leave(only);
  EXPECT_EQ(second.place, nullptr);
  EXPECT_EQ(third.place, &only);
  Leave(only);
}

TEST_F(UpstreamsTest, NewRequestDoesNotOvertakeTheQueue) {
  options.connections_max = 1;
  Make(1);
  Place& only = Take();
  PlayedWaiter first;
  PlayedWaiter second;
  (void)TakeFor(first);
  Played(only).places = 1;
  LeaveInTurn(only, Ended::kWell);
  // The turn is not over yet.
  EXPECT_EQ(TakeFor(second).place, nullptr);
  Turn();
  EXPECT_EQ(first.place, &only);
  Leave(only);
  upstreams->Forget(second);
}

// A receiver that is called by a session must not begin another exchange on it.
TEST_F(UpstreamsTest, SessionThatIsBeingCalledHasNoPlace) {
  Make(1);
  Place& place = Take();
  Played(place).in_call = true;
  Played(place).places = 1;
  LeaveInTurn(place, Ended::kNotBegun);
  PlayedWaiter waiter;
  EXPECT_EQ(TakeFor(waiter).place, nullptr);
  Played(place).in_call = false;
  made[0]->owner->OnChanged(now);
  Turn();
  EXPECT_EQ(waiter.place, &place);
  Leave(place);
}

TEST_F(UpstreamsTest, ConnectionOfManyPlacesCarriesManyRequests) {
  options.exchanges_per_connection = 100;
  Make(1);
  PlayedWaiter first;
  PlayedWaiter second;
  (void)TakeFor(first);
  (void)TakeFor(second);
  EXPECT_EQ(made.size(), 1u);
  made[0]->places = 100;
  Connected(0);
  EXPECT_EQ(first.place, second.place);
  EXPECT_EQ(counters.outstanding.value(), 2u);
  first.place->Leave(first, Ended::kWell, now);
  second.place->Leave(second, Ended::kWell, now);
}

// ---- Failures

TEST_F(UpstreamsTest, ConnectIsTriedOnceForEachAddress) {
  Make(2);
  PlayedWaiter waiter;
  (void)TakeFor(waiter);
  made[0]->owner->OnClosed(UpstreamConnection::End::kNotConnected, "refused", now);
  EXPECT_EQ(waiter.refused, std::nullopt);
  ASSERT_EQ(made.size(), 2u);
  EXPECT_NE(made[0]->address, made[1]->address);
  Turn();
  made[1]->owner->OnClosed(UpstreamConnection::End::kConnectTimeout, "late", now);
  EXPECT_EQ(waiter.refused, NoPlace::kTimeout);
  Turn();
  EXPECT_EQ(made.size(), 2u);
  EXPECT_EQ(counters.connect_failures.value(), 2u);
  EXPECT_EQ(counters.connections.value(), 0u);
}

TEST_F(UpstreamsTest, SaysWhyNoConnectionWasMade) {
  using End = UpstreamConnection::End;
  Make(1);
  const std::array<std::pair<End, NoPlace>, 4> reasons = {
      {{End::kNotConnected, NoPlace::kRefused},
       {End::kConnectTimeout, NoPlace::kTimeout},
       {End::kUntrusted, NoPlace::kUntrusted},
       {End::kTlsFailed, NoPlace::kTlsFailed}}};
  for (const auto& [end, why] : reasons) {
    PlayedWaiter waiter;
    (void)TakeFor(waiter);
    made.back()->owner->OnClosed(end, "why", now);
    EXPECT_EQ(waiter.refused, why);
    Turn();
  }
  EXPECT_EQ(counters.connect_failures.value(), 4u);
  EXPECT_EQ(counters.tls_failures.value(), 2u);
}

TEST_F(UpstreamsTest, ThoseBeyondTheirPartGoOnOnceNobodyIsHeldToOne) {
  options.connections_max = 9;
  Make(1);
  std::deque<PlayedWaiter> requests;
  size_t connected = 0;
  for (int i = 0; i < 9; ++i) {
    PlayedWaiter& waiter = requests.emplace_back(uint64_t{7});
    waiter.on_place = [this](Place& place) { Occupy(&place); };
    const auto taken = TakeFor(waiter);
    if (taken.place != nullptr) Occupy(taken.place);
    for (; connected < made.size(); ++connected) Connected(connected);
  }
  EXPECT_EQ(requests.back().place, nullptr) << "the last place is kept for others";
  upstreams->SetDivides(false);
  Turn();
  for (; connected < made.size(); ++connected) Connected(connected);
  EXPECT_EQ(counters.queued.value(), 0u);
  EXPECT_NE(requests.back().place, nullptr);
  for (PlayedWaiter& waiter : requests) Leave(*waiter.holds);
}

TEST_F(UpstreamsTest, NobodyWaitsAfterTheEndOfTheQueue) {
  options.connections_max = 1;
  Make(1);
  PlayedWaiter first;
  PlayedWaiter second;
  PlayedWaiter third;
  (void)TakeFor(first);
  Connected(0);
  Occupy(first.place);
  (void)TakeFor(second);
  upstreams->EndQueue(now);
  EXPECT_EQ(second.refused, NoPlace::kClosed);
  EXPECT_EQ(counters.queued.value(), 0u);
  EXPECT_EQ(TakeFor(third).refused, NoPlace::kClosed);
  Leave(*first.place);
  Place* const place = TakeFor(third).place;
  ASSERT_NE(place, nullptr) << "a connection that is free is still used";
  Leave(*place);
}

TEST_F(UpstreamsTest, NobodyIsRefusedWhileAnotherAddressMayConnect) {
  Make(2);
  std::array<PlayedWaiter, 12> crowd;
  for (PlayedWaiter& waiter : crowd) TakeFor(waiter);
  // Address 1 refuses all connections, until it is out.
  std::vector<size_t> open;
  for (size_t i = 0; i < made.size(); ++i) {
    if (made[i]->address == 0) {
      open.push_back(i);
      continue;
    }
    made[i]->owner->OnClosed(UpstreamConnection::End::kNotConnected, "refused", now);
    Turn();
  }
  for (const PlayedWaiter& waiter : crowd) EXPECT_EQ(waiter.refused, std::nullopt);
  for (PlayedWaiter& waiter : crowd) waiter.on_place = [this](Place& place) { Occupy(&place); };
  for (const size_t number : open) Connected(number);
  for (const PlayedWaiter& waiter : crowd) EXPECT_NE(waiter.place, nullptr);
  for (const PlayedWaiter& waiter : crowd) Leave(*waiter.place);
}

TEST_F(UpstreamsTest, AddressThatFailsGetsNothingForATime) {
  options.health = {.failures_max = 2, .out_min = seconds(1), .out_max = seconds(8)};
  Make(2);
  const size_t bad = [&] {
    Place& place = Take();
    const size_t address = Played(place).address;
    Leave(place, Ended::kFailed);
    return address;
  }();
  // Occupy the good address, so that the bad one is asked again.
  Place* good = nullptr;
  for (int i = 0; i < 2; ++i) {
    Place& place = Take();
    if (Played(place).address == bad) {
      Leave(place, Ended::kTooSlow);
      break;
    }
    good = &place;
  }
  EXPECT_EQ(counters.out.value(), 1u);
  std::vector<Place*> others;
  for (int i = 0; i < 4; ++i) {
    others.push_back(&Take());
    EXPECT_NE(Played(*others.back()).address, bad);
  }
  now += seconds(1);
  others.push_back(&Take());
  EXPECT_EQ(Played(*others.back()).address, bad) << "its time is over, and it has fewer requests";
  for (Place* place : others) Leave(*place);
  if (good != nullptr) Leave(*good);
}

// An address counts as set aside until it has answered, also during an attempt.
TEST_F(UpstreamsTest, DescribesItsAddresses) {
  options.health = {.failures_max = 1, .out_min = seconds(1), .out_max = seconds(8)};
  Make(1);
  std::vector<AddressState> states;
  const auto described = [&]() -> const AddressState& {
    upstreams->DescribeAddresses(states);
    return states.at(0);
  };
  Place* place = &Take();
  EXPECT_EQ(described(), (AddressState{.in_progress = 1}));
  Leave(*place, Ended::kTooSlow);
  EXPECT_EQ(described(), (AddressState{.aside = AsideBecause::kTooSlow}));
  now += seconds(1);
  EXPECT_EQ(described(), (AddressState{.aside = AsideBecause::kTooSlow}));
  Leave(Take(), Ended::kFailed);
  EXPECT_EQ(described(), (AddressState{.aside = AsideBecause::kBroken}));
  now += seconds(2);
  Leave(Take());
  EXPECT_EQ(described(), AddressState{});
  for (int i = 0; i < 2; ++i) upstreams->OnChecked(0, false);
  EXPECT_EQ(described(), (AddressState{.aside = AsideBecause::kChecksFailed}));
  upstreams->OnChecked(0, true);
  EXPECT_EQ(described(), AddressState{});
}

TEST_F(UpstreamsTest, IfAllAreOutAllAreAsked) {
  options.health = {.failures_max = 1};
  Make(2);
  for (int i = 0; i < 2; ++i) Leave(Take(), Ended::kFailed);
  EXPECT_EQ(counters.out.value(), 2u);
  Place& place = Take();
  Leave(place);
}

TEST_F(UpstreamsTest, AddressWhoseChecksFailGetsNothing) {
  Make(2);
  upstreams->OnChecked(0, false);
  std::vector<Place*> places = {&Take(), &Take()};
  EXPECT_NE(Played(*places[0]).address, Played(*places[1]).address) << "one may fail";
  upstreams->OnChecked(0, false);
  for (int i = 0; i < 4; ++i) {
    places.push_back(&Take());
    EXPECT_EQ(Played(*places.back()).address, 1u);
  }
  upstreams->OnChecked(1, false);
  upstreams->OnChecked(1, false);
  places.push_back(&Take());
  EXPECT_EQ(Played(*places.back()).address, 0u) << "if all are down, all are asked";
  upstreams->OnChecked(1, true);
  places.push_back(&Take());
  EXPECT_EQ(Played(*places.back()).address, 1u);
  EXPECT_EQ(counters.checks_failed.value(), 4u);
  for (Place* place : places) Leave(*place);
}

TEST_F(UpstreamsTest, ExchangeThatTheClientCancelledSaysNothingAboutTheUpstream) {
  options.health = {.failures_max = 1};
  Make(1);
  Leave(Take(), Ended::kCancelled);
  Leave(Take(), Ended::kNotBegun);
  EXPECT_EQ(counters.out.value(), 0u);
}

// ---- The end of connections

TEST_F(UpstreamsTest, IdleConnectionsAreClosed) {
  Make(1);
  Place& busy = Take();
  Place& idle = Take();
  Leave(idle);
  now += options.idle_timeout - seconds(1);
  upstreams->OnTick(now);
  EXPECT_FALSE(Played(idle).closed);
  now += seconds(1);
  upstreams->OnTick(now);
  EXPECT_TRUE(Played(idle).closed);
  EXPECT_FALSE(Played(busy).closed);
  EXPECT_EQ(counters.connections.value(), 1u);
  Turn();
  EXPECT_NE(&Take(), &busy);
  EXPECT_EQ(made.size(), 3u);
}

TEST_F(UpstreamsTest, ClosedConnectionIsNotUsedAgain) {
  Make(1);
  Leave(Take());
  made[0]->owner->OnClosed(UpstreamConnection::End::kClosed, "closed", now);
  Turn();
  Leave(Take());
  EXPECT_EQ(made.size(), 2u);
  EXPECT_EQ(counters.connect_failures.value(), 0u);
}

TEST_F(UpstreamsTest, AddressesCanChange) {
  Make(1);
  Place& busy = Take();
  Place& idle = Take();
  Leave(idle);
  PlayedConnection& idle_connection = Played(idle);
  const std::array<ServiceAddress, 2> ids = {{{.id = 7}, {.id = 8}}};
  upstreams->SetAddresses(ids, now);
  EXPECT_TRUE(idle_connection.closed);
  EXPECT_FALSE(Played(busy).closed) << "its exchange is not over";
  Turn();
  std::vector<Place*> places;
  for (int i = 0; i < 4; ++i) {
    places.push_back(&Take());
    EXPECT_GE(Played(*places.back()).address, 7u);
  }
  PlayedConnection& busy_connection = Played(busy);
  Leave(busy);
  upstreams->OnTick(now);
  EXPECT_TRUE(busy_connection.closed);
  for (Place* place : places) Leave(*place);
  EXPECT_EQ(counters.connections.value(), 4u);
}

TEST_F(UpstreamsTest, AddressThatStaysKeepsItsConnections) {
  Make(2);
  Place& first = Take();
  Place& second = Take();
  const size_t stays = Played(first).address;
  Leave(first);
  Leave(second);
  upstreams->SetAddresses(std::array{ServiceAddress{.id = stays}}, now);
  Turn();
  EXPECT_EQ(&Take(), &first);
  Leave(first);
  EXPECT_EQ(made.size(), 2u);
}

// A request that waited for a connection to an address that is gone waits for another.
TEST_F(UpstreamsTest, QueueGoesToTheNewAddresses) {
  Make(1);
  PlayedWaiter waiter;
  (void)TakeFor(waiter);
  upstreams->SetAddresses(std::array{ServiceAddress{.id = 7}}, now);
  EXPECT_TRUE(made[0]->closed);
  ASSERT_EQ(made.size(), 2u);
  EXPECT_EQ(made[1]->address, 7u);
  made[1]->owner->OnConnected(now);
  Turn();
  ASSERT_NE(waiter.place, nullptr);
  Leave(*waiter.place);
}

TEST_F(UpstreamsTest, CloseEndsEverything) {
  options.connections_max = 1;
  Make(1);
  Place& place = Take();
  PlayedWaiter waiter;
  (void)TakeFor(waiter);
  LeaveInTurn(place, Ended::kWell);
  upstreams->Close(now);
  EXPECT_EQ(waiter.refused, NoPlace::kClosed);
  EXPECT_EQ(TakeFor(waiter).refused, NoPlace::kClosed);
  EXPECT_EQ(counters.connections.value(), 0u);
}

}  // namespace upstreams_test
}  // namespace headgate::proxy
