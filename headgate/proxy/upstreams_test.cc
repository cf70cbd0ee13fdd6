// Which address and which connection a request gets, the queue, and the end of connections. The
// connections are played by the test.
#include "headgate/proxy/upstreams.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <optional>
#include <vector>

#include "headgate/base/check.h"
#include "headgate/proxy/relay_rig.h"

namespace headgate::proxy {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

// A connection whose session has `places`.
struct PlayedConnection final : UpstreamConnection, http::ClientSession {
  http::ClientSession& session() override { return *this; }
  bool may_begin() const override { return !in_call; }
  bool speaks_http2() const override { return false; }
  void Close(base::Instant) override { closed = true; }

  size_t free_places() const override { return places; }
  bool finished() const override { return false; }
  size_t open_exchanges() const override { return 0; }
  http::ClientExchange& Begin(const http::RequestHead&, http::ResponseReceiver&,
                              base::Instant) override {
    HEADGATE_CHECK(false);
  }
  void OnBytes(std::string_view, base::Instant) override {}
  void OnInputEnd(base::Instant) override {}
  void OnBroken(std::string_view, base::Instant) override {}
  std::string& output() override { return output_; }
  void OnUnsent(size_t, base::Instant) override {}
  bool wants_input() const override { return true; }
  bool output_ended() const override { return false; }
  void SetWaker(std::function<void()>) override {}

  size_t address = 0;
  Owner* owner = nullptr;
  size_t places = 1;
  bool in_call = false;
  bool closed = false;
  std::string output_;
};

struct PlayedWaiter final : Places::Waiter {
  void OnPlace(Place& given, base::Instant) override {
    place = &given;
    if (on_place) on_place(given);
  }
  void OnNoPlace(NoPlace why, std::string_view, base::Instant) override { refused = why; }
  Place* place = nullptr;
  std::optional<NoPlace> refused;
  std::function<void(Place&)> on_place;
};

struct UpstreamsTest : testing::Test {
  void Make(size_t addresses) {
    upstreams.emplace(
        options,
        [this](size_t address, UpstreamConnection::Owner& owner) {
          auto connection = std::make_unique<PlayedConnection>();
          connection->address = address;
          connection->owner = &owner;
          made.push_back(connection.get());
          return connection;
        },
        counters, [this] { woken = true; });
    std::vector<size_t> ids(addresses);
    std::iota(ids.begin(), ids.end(), size_t{0});
    upstreams->SetAddresses(ids, now);
  }
  void TearDown() override {
    if (upstreams) upstreams->Close(now);
  }
  // Ends the turn of the loop.
  void Turn() {
    while (std::exchange(woken, false)) upstreams->OnWoken(now);
  }
  // A request takes the place of a connection of HTTP/1.
  Place* Occupy(Place* place) {
    if (place != nullptr) Played(*place).places = 0;
    return place;
  }
  static PlayedConnection& Played(Place& place) {
    return dynamic_cast<PlayedConnection&>(place.session());
  }
  // Connects, and serves the queue.
  void Connected(size_t number) {
    made[number]->owner->OnConnected(now);
    Turn();
  }
  void Leave(Place& place, Ended ended = Ended::kWell) {
    Played(place).places = 1;
    place.Leave(ended, now);
    Turn();
  }
  // Takes a place, which may need a connection first.
  Place& Take() {
    auto& waiter = *waiters.emplace_back(std::make_unique<PlayedWaiter>());
    waiter.on_place = [this](Place& place) { Occupy(&place); };
    const size_t before = made.size();
    const auto taken = upstreams->Take(waiter, now);
    if (taken.place != nullptr) return *Occupy(taken.place);
    if (made.size() > before) Connected(made.size() - 1);
    HEADGATE_CHECK(waiter.place != nullptr);
    return *waiter.place;
  }

  UpstreamsOptions options;
  UpstreamsCounters counters;
  base::Instant now = kStart;
  bool woken = false;
  std::vector<PlayedConnection*> made;
  std::vector<std::unique_ptr<PlayedWaiter>> waiters;
  std::optional<Upstreams> upstreams;
};

TEST_F(UpstreamsTest, RequestWaitsForItsConnectionAndTheNextUsesItAgain) {
  Make(1);
  PlayedWaiter waiter;
  EXPECT_EQ(upstreams->Take(waiter, now).place, nullptr);
  EXPECT_EQ(waiter.place, nullptr);
  EXPECT_EQ(counters.queued.value(), 1u);
  Connected(0);
  ASSERT_NE(waiter.place, nullptr);
  EXPECT_FALSE(waiter.place->reused());
  EXPECT_EQ(counters.queued.value(), 0u);
  EXPECT_EQ(counters.outstanding.value(), 1u);
  Leave(*waiter.place);
  const auto again = upstreams->Take(waiter, now);
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

// A burst comes before any connection is made.
TEST_F(UpstreamsTest, RequestsThatWaitForAConnectionCountToo) {
  Make(2);
  std::vector<Place*> places;
  for (int i = 0; i < 3; ++i) places.push_back(&Take());
  std::array<PlayedWaiter, 5> burst;
  for (PlayedWaiter& waiter : burst) {
    waiter.on_place = [this](Place& place) { Occupy(&place); };
    (void)upstreams->Take(waiter, now);
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
  (void)upstreams->Take(first, now);
  (void)upstreams->Take(second, now);
  EXPECT_EQ(upstreams->Take(third, now).refused, NoPlace::kQueueFull);
  EXPECT_EQ(counters.queue_refusals.value(), 1u);
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
  for (PlayedWaiter* waiter : {&first, &second, &third}) (void)upstreams->Take(*waiter, now);
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
  (void)upstreams->Take(first, now);
  Played(only).places = 1;
  only.Leave(Ended::kWell, now);
  // The turn is not over yet.
  EXPECT_EQ(upstreams->Take(second, now).place, nullptr);
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
  place.Leave(Ended::kNotBegun, now);
  PlayedWaiter waiter;
  EXPECT_EQ(upstreams->Take(waiter, now).place, nullptr);
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
  (void)upstreams->Take(first, now);
  (void)upstreams->Take(second, now);
  EXPECT_EQ(made.size(), 1u);
  made[0]->places = 100;
  Connected(0);
  EXPECT_EQ(first.place, second.place);
  EXPECT_EQ(counters.outstanding.value(), 2u);
  first.place->Leave(Ended::kWell, now);
  second.place->Leave(Ended::kWell, now);
}

// ---- Failures

TEST_F(UpstreamsTest, ConnectIsTriedOnceForEachAddress) {
  Make(2);
  PlayedWaiter waiter;
  (void)upstreams->Take(waiter, now);
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

TEST_F(UpstreamsTest, NobodyIsRefusedWhileAnotherAddressMayConnect) {
  Make(2);
  std::array<PlayedWaiter, 12> crowd;
  for (PlayedWaiter& waiter : crowd) upstreams->Take(waiter, now);
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
  const std::array<size_t, 2> ids = {7, 8};
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
  upstreams->SetAddresses(std::array{stays}, now);
  Turn();
  EXPECT_EQ(&Take(), &first);
  Leave(first);
  EXPECT_EQ(made.size(), 2u);
}

// A request that waited for a connection to an address that is gone waits for another.
TEST_F(UpstreamsTest, QueueGoesToTheNewAddresses) {
  Make(1);
  PlayedWaiter waiter;
  (void)upstreams->Take(waiter, now);
  upstreams->SetAddresses(std::array<size_t, 1>{7}, now);
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
  (void)upstreams->Take(waiter, now);
  place.Leave(Ended::kWell, now);
  upstreams->Close(now);
  EXPECT_EQ(waiter.refused, NoPlace::kClosed);
  EXPECT_EQ(upstreams->Take(waiter, now).refused, NoPlace::kClosed);
  EXPECT_EQ(counters.connections.value(), 0u);
}

}  // namespace
}  // namespace headgate::proxy
