// Connections of HTTP/2 that take no more exchanges, and still have some.
#include <gtest/gtest.h>

#include <deque>
#include <vector>

#include "headgate/proxy/upstreams_rig.h"

namespace headgate::proxy {
namespace upstreams_draining_test {

// A connection carries this many exchanges.
constexpr size_t kPlaces = 4;

struct UpstreamsDrainingTest : UpstreamsRig {
  UpstreamsDrainingTest() {
    options.connections_max = 2;
    options.exchanges_per_connection = kPlaces;
    Make(1);
  }
  // A request of nobody in particular, which may need a connection. Null: it waits.
  PlayedConnection* Begin() { return Request(waiters_of_tests.emplace_back()); }
  PlayedConnection* BeginOf(uint64_t client) {
    return Request(waiters_of_tests.emplace_back(client));
  }
  PlayedConnection* Request(PlayedWaiter& waiter) {
    waiter.on_place = [](Place& place) { --Played(place).places; };
    const size_t before = made.size();
    Place* const place = TakeFor(waiter).place;
    if (place != nullptr) --Played(*place).places;
    for (size_t i = before; i < made.size(); ++i) {
      made[i]->http2 = true;
      made[i]->places = kPlaces;
      Connected(i);
    }
    return waiter.holds == nullptr ? nullptr : &Played(*waiter.holds);
  }
  // As after GOAWAY.
  void EndBeginning(PlayedConnection& connection) {
    connection.ended = true;
    connection.owner->OnChanged(now);
    Turn();
  }
  // Ends all exchanges, and with them a connection that takes no others.
  void EndExchanges(PlayedConnection& connection) {
    for (PlayedWaiter& waiter : waiters_of_tests) {
      if (waiter.holds == nullptr || &Played(*waiter.holds) != &connection) continue;
      ++connection.places;
      LeaveInTurn(*waiter.holds, Ended::kWell);
    }
    if (connection.ended) connection.owner->OnClosed(UpstreamConnection::End::kClosed, "", now);
    Turn();
  }
  void EndAll() {
    for (PlayedWaiter& waiter : waiters_of_tests) {
      if (waiter.holds != nullptr) LeaveInTurn(*waiter.holds, Ended::kWell);
    }
  }

  std::deque<PlayedWaiter> waiters_of_tests;
};

TEST_F(UpstreamsDrainingTest, TheyHaveABoundOfTheirOwn) {
  for (size_t i = 0; i < 2; ++i) {
    PlayedConnection* const connection = Begin();
    ASSERT_NE(connection, nullptr);
    EndBeginning(*connection);
  }
  // The full number of places is there for others.
  for (size_t i = 0; i < 2 * kPlaces; ++i) EXPECT_NE(Begin(), nullptr) << i;
  EXPECT_EQ(made.size(), 4u);
  EXPECT_EQ(counters.connections.value(), 4u);
  EXPECT_EQ(Begin(), nullptr);
  EXPECT_EQ(counters.waits_for_place.value(), 1u);
  EndAll();
}

TEST_F(UpstreamsDrainingTest, BeyondTheirBoundTheyCountAmongTheOthers) {
  std::vector<PlayedConnection*> ended;
  for (size_t i = 0; i < 4; ++i) {
    PlayedConnection* const connection = Begin();
    ASSERT_NE(connection, nullptr) << i;
    EndBeginning(*connection);
    ended.push_back(connection);
  }
  EXPECT_EQ(Begin(), nullptr) << "two are within their bound, and two have the places of others";
  EXPECT_EQ(counters.connections.value(), 4u);
  EXPECT_EQ(counters.queued.value(), 1u);
  EndExchanges(*ended[1]);
  EXPECT_EQ(made.size(), 5u) << "the request that waited has a connection";
  made.back()->http2 = true;
  made.back()->places = kPlaces;
  Connected(4);
  EXPECT_EQ(counters.queued.value(), 0u);
  EndAll();
}

// Otherwise one client could let all connections drain, with a request on each.
TEST_F(UpstreamsDrainingTest, IfTooManyDrainTheLastPlacesAreForClientsWithoutOne) {
  options.connections_max = 3;
  for (size_t i = 0; i < 5; ++i) {
    PlayedConnection* const connection = BeginOf(1);
    ASSERT_NE(connection, nullptr) << i;
    EndBeginning(*connection);
  }
  // Three of the five that drain are within a bound of their own. The two others take two
  // of the three places for other connections.
  EXPECT_EQ(BeginOf(1), nullptr);
  EXPECT_NE(BeginOf(2), nullptr);
  EXPECT_EQ(BeginOf(2), nullptr);
  EXPECT_NE(BeginOf(3), nullptr);
  EndExchanges(*made[0]);
  EXPECT_EQ(counters.queued.value(), 0u) << "half of them are enough for all";
  EndAll();
}

// Requests on connections that drain count for their client. But the places of these connections
// are not among the places of the other connections, neither as free nor as taken ones.
TEST_F(UpstreamsDrainingTest, TheirPlacesAreNeitherFreeNorTaken) {
  for (size_t i = 0; i < kPlaces; ++i) ASSERT_NE(BeginOf(1), nullptr);
  EndBeginning(*made[0]);
  // The last one of the eight free places is kept for clients without one.
  for (size_t i = 0; i < 2 * kPlaces - 1; ++i) EXPECT_NE(BeginOf(2), nullptr) << i;
  EXPECT_EQ(BeginOf(2), nullptr);
  EXPECT_EQ(counters.waits_for_client.value(), 1u);
  EXPECT_NE(BeginOf(3), nullptr);
  EndAll();
}

TEST_F(UpstreamsDrainingTest, WornConnectionIsRetired) {
  PlayedConnection* const worn = Begin();
  worn->is_worn = true;
  worn->owner->OnChanged(now);
  EXPECT_TRUE(worn->ended);
  EXPECT_NE(Begin(), worn);
  EndAll();
}

TEST_F(UpstreamsDrainingTest, WornConnectionsGoOnIfTooManyDrain) {
  for (size_t i = 0; i < 2; ++i) {
    PlayedConnection* const connection = Begin();
    connection->is_worn = true;
    connection->owner->OnChanged(now);
    ASSERT_TRUE(connection->ended);
  }
  PlayedConnection* const third = Begin();
  third->is_worn = true;
  third->owner->OnChanged(now);
  EXPECT_FALSE(third->ended);
  for (size_t i = 1; i < 2 * kPlaces; ++i) {
    PlayedConnection* const connection = Begin();
    ASSERT_NE(connection, nullptr) << i;
    connection->is_worn = true;
    connection->owner->OnChanged(now);
    EXPECT_FALSE(connection->ended);
  }
  EXPECT_EQ(made.size(), 4u);
  EndExchanges(*made[0]);
  third->owner->OnChanged(now);
  EXPECT_TRUE(third->ended) << "one drains less";
  EndAll();
}

// The last request on each connection of HTTP/1 counts.
TEST_F(UpstreamsDrainingTest, ConnectionsOfHttp1CountUntilTheyEnd) {
  for (size_t i = 0; i < 2; ++i) {
    PlayedWaiter& waiter = waiters_of_tests.emplace_back();
    (void)TakeFor(waiter);
    ASSERT_EQ(made.size(), i + 1);
    // The others that it is expected to carry are taken first.
    made[i]->places = 1;
    waiter.on_place = [](Place& place) { Played(place).places = 0; };
    Connected(i);
    EndBeginning(*made[i]);
  }
  PlayedWaiter& third = waiters_of_tests.emplace_back();
  EXPECT_EQ(TakeFor(third).place, nullptr);
  EXPECT_EQ(made.size(), 2u);
  EndAll();
}

}  // namespace upstreams_draining_test
}  // namespace headgate::proxy
