// The part of the places, and of the queue, that one client may have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <set>
#include <vector>

#include "headgate/base/random.h"
#include "headgate/proxy/dynamic_threshold.h"
#include "headgate/proxy/upstreams_rig.h"

namespace headgate::proxy {
namespace upstreams_parts_test {

using std::chrono::seconds;

constexpr uint64_t kHog = 1;
constexpr uint64_t kAnn = 2;
constexpr uint64_t kBob = 3;

struct UpstreamsPartsTest : UpstreamsRig {
  PlayedWaiter& Ask(std::optional<uint64_t> client) {
    PlayedWaiter& waiter = requests.emplace_back(client);
    waiter.on_place = [this, &waiter](Place& place) {
      Occupy(&place);
      served.push_back(&waiter);
    };
    const auto taken = TakeFor(waiter);
    waiter.refused = taken.refused;
    if (taken.place != nullptr) waiter.OnPlace(*taken.place, now);
    ConnectAll();
    return waiter;
  }
  // All connections that are being made.
  void ConnectAll() {
    for (; connected < made.size(); ++connected) Connected(connected);
  }
  // Returns how many of the requests have a place.
  size_t AskOften(std::optional<uint64_t> client, int times) {
    const size_t before = requests.size();
    for (int i = 0; i < times; ++i) Ask(client);
    size_t with_place = 0;
    for (size_t i = before; i < requests.size(); ++i) with_place += requests[i].holds != nullptr;
    return with_place;
  }
  void TearDown() override {
    for (PlayedWaiter& waiter : requests)
      if (waiter.holds == nullptr) upstreams->Forget(waiter);
    for (PlayedWaiter& waiter : requests)
      if (waiter.holds != nullptr) Leave(*waiter.holds);
    UpstreamsRig::TearDown();
  }

  std::deque<PlayedWaiter> requests;
  std::vector<PlayedWaiter*> served;  // in order
  size_t connected = 0;
};

TEST_F(UpstreamsPartsTest, ClientAloneGetsMostPlacesAndANewcomerGetsOneAtOnce) {
  options.connections_max = 90;
  Make(1);
  // 8 × (90 - 1 - 80) = 72 < 80, and 79 < 8 × (90 - 1 - 79).
  EXPECT_EQ(AskOften(kHog, 200), 80u);
  EXPECT_EQ(counters.queued.value(), 120u);
  EXPECT_EQ(counters.waits_for_client.value(), 120u);
  EXPECT_EQ(counters.outstanding.value(), 80u);
  EXPECT_NE(Ask(kAnn).place, nullptr);
  EXPECT_NE(Ask(kBob).place, nullptr);
}

TEST_F(UpstreamsPartsTest, RequestsBeyondThePartWaitUntilOthersOfTheClientHaveEnded) {
  options.connections_max = 4;
  Make(1);
  EXPECT_EQ(AskOften(kHog, 4), 3u);
  EXPECT_EQ(requests[3].place, nullptr);
  Leave(*requests[1].place);
  EXPECT_NE(requests[3].place, nullptr);
  EXPECT_EQ(made.size(), 3u) << "nothing waits that another connection would help";
}

TEST_F(UpstreamsPartsTest, ClientWithFewerPlacesIsServedFirst) {
  options.connections_max = 3;
  Make(1);
  EXPECT_EQ(AskOften(kHog, 5), 2u);
  PlayedWaiter& ann = Ask(kAnn);
  ASSERT_NE(ann.place, nullptr);
  PlayedWaiter& bob = Ask(kBob);
  EXPECT_EQ(bob.place, nullptr);
  EXPECT_EQ(counters.waits_for_place.value(), 1u);
  Leave(*requests[0].place);
  EXPECT_NE(bob.place, nullptr) << "although three requests came earlier";
  EXPECT_EQ(requests[2].place, nullptr);
}

TEST_F(UpstreamsPartsTest, RequestsOfOneClientStayInOrder) {
  options.connections_max = 2;
  Make(1);
  EXPECT_EQ(AskOften(kHog, 3), 1u);
  LeaveInTurn(*requests[0].place, Ended::kWell);
  Played(*requests[0].place).places = 1;
  // The turn is not over yet.
  PlayedWaiter& late = Ask(kHog);
  EXPECT_EQ(late.place, nullptr);
  Turn();
  EXPECT_NE(requests[1].place, nullptr);
  EXPECT_EQ(requests[2].place, nullptr);
}

// A burst comes before any connection is made.
TEST_F(UpstreamsPartsTest, RequestsOfABurstKnowWhyTheyWait) {
  options.connections_max = 8;
  Make(1);
  for (int i = 0; i < 20; ++i) {
    PlayedWaiter& waiter = requests.emplace_back(kHog);
    waiter.on_place = [this](Place& place) { Occupy(&place); };
    (void)TakeFor(waiter);
  }
  ConnectAll();
  // 6 < 8 × (8 - 6 - 1), and 7 > 8 × (8 - 7 - 1).
  EXPECT_EQ(counters.outstanding.value(), 7u);
  EXPECT_EQ(counters.waits_for_client.value(), 13u);
  EXPECT_EQ(counters.waits_for_place.value(), 0u);
}

TEST_F(UpstreamsPartsTest, QueueIsDividedToo) {
  options.connections_max = 1;
  options.queue_max = 10;
  Make(1);
  EXPECT_EQ(AskOften(kHog, 20), 1u);
  EXPECT_EQ(counters.queued.value(), 8u);
  EXPECT_EQ(counters.refusals_client.value(), 11u);
  EXPECT_EQ(requests.back().refused, NoPlace::kQueueFull);
  EXPECT_EQ(Ask(kAnn).refused, std::nullopt);
  EXPECT_EQ(Ask(kBob).refused, std::nullopt);
  EXPECT_EQ(Ask(4).refused, NoPlace::kQueueFull);
  EXPECT_EQ(counters.refusals_full.value(), 1u);
}

TEST_F(UpstreamsPartsTest, RequestsWithoutAClientAreNotLimited) {
  options.connections_max = 5;
  Make(1);
  EXPECT_EQ(AskOften(std::nullopt, 9), 5u);
  EXPECT_EQ(counters.waits_for_client.value(), 0u);
  EXPECT_EQ(counters.waits_for_place.value(), 4u);
}

// An address that is out gives no places that a client could have a part of.
TEST_F(UpstreamsPartsTest, PlacesOfAnAddressThatIsOutDoNotCount) {
  options.connections_max = 9;
  options.failed_checks_max = 1;
  Make(2);
  upstreams->OnChecked(1, false);
  EXPECT_EQ(AskOften(kHog, 20), 8u);
  upstreams->OnChecked(1, true);
  // 8 × (18 - 1 - 15) = 16 > 15.
  EXPECT_NE(Ask(kAnn).place, nullptr);
  EXPECT_NE(Ask(kAnn).place, nullptr);
}

TEST_F(UpstreamsPartsTest, PlacesOfAConnectionAreThoseThatTheUpstreamAllows) {
  options.connections_max = 1;
  options.exchanges_per_connection = 100;
  Make(1);
  std::deque<PlayedWaiter> hog;
  const auto ask = [&](uint64_t client) -> PlayedWaiter& {
    PlayedWaiter& waiter = hog.emplace_back(client);
    waiter.on_place = [this](Place& place) { --Played(place).places; };
    const auto taken = upstreams->Take(waiter, now);
    if (taken.place != nullptr) waiter.OnPlace(*taken.place, now);
    return waiter;
  };
  ask(kHog);
  made[0]->places = 9;
  Connected(0);
  for (int i = 0; i < 20; ++i) ask(kHog);
  EXPECT_EQ(counters.outstanding.value(), 8u) << "8 of 9, as if each were a connection";
  EXPECT_NE(ask(kAnn).place, nullptr);
  for (PlayedWaiter& waiter : hog) {
    if (waiter.place == nullptr) upstreams->Forget(waiter);
  }
  for (PlayedWaiter& waiter : hog) {
    if (waiter.place != nullptr) waiter.place->Leave(waiter, Ended::kWell, now);
  }
}

// With HTTP/2 the upstream's limit comes after the first requests.
TEST_F(UpstreamsPartsTest, ANewConnectionDoesNotPromiseMorePlacesThanAnother) {
  options.connections_max = 2;
  options.exchanges_per_connection = 100;
  Make(1);
  std::deque<PlayedWaiter> asked;
  const auto ask = [&](uint64_t client) -> PlayedWaiter& {
    PlayedWaiter& waiter = asked.emplace_back(client);
    waiter.on_place = [this](Place& place) { --Played(place).places; };
    const auto taken = upstreams->Take(waiter, now);
    if (taken.place != nullptr) waiter.OnPlace(*(waiter.place = taken.place), now);
    return waiter;
  };
  PlayedWaiter& first = ask(kAnn);
  made[0]->places = 100;
  Connected(0);
  ASSERT_NE(first.place, nullptr);
  made[0]->places = 4;
  std::exchange(first.place, nullptr)->Leave(first, Ended::kWell, now);
  Turn();

  for (int i = 0; i < 20; ++i) ask(kHog);
  ASSERT_EQ(made.size(), 2u);
  made[1]->places = 100;
  Connected(1);
  EXPECT_EQ(counters.outstanding.value(), 7u) << "of two times four";
  EXPECT_NE(ask(kAnn).place, nullptr);
  for (PlayedWaiter& waiter : asked) {
    if (waiter.place == nullptr) upstreams->Forget(waiter);
  }
  for (PlayedWaiter& waiter : asked) {
    if (waiter.place != nullptr) waiter.place->Leave(waiter, Ended::kWell, now);
  }
}

// Two clients whose requests last equally long, of which one always has many waiting.
TEST_F(UpstreamsPartsTest, PatientClientGetsAsMuchAsOneWithALongLine) {
  options.connections_max = 10;
  Make(1);
  AskOften(kHog, 200);
  AskOften(kAnn, 40);
  for (size_t ended = 0; ended < 50; ++ended) {
    Leave(*served[ended]->holds);
    ConnectAll();
  }
  size_t of_ann = 0;
  for (size_t i = 200; i < requests.size(); ++i) of_ann += requests[i].place != nullptr;
  EXPECT_GE(of_ann, 25u);
}

// The steady state makes no connections and wakes nobody in vain.
TEST_F(UpstreamsPartsTest, ClientBeyondItsPartOpensNoConnections) {
  options.connections_max = 90;
  Make(1);
  AskOften(kHog, 100);
  const size_t before = made.size();
  for (int i = 0; i < 10; ++i) {
    now += seconds(1);
    upstreams->OnTick(now);
    Turn();
  }
  EXPECT_EQ(made.size(), before);
}

// Otherwise the one place that is kept could be that of the address that leaves.
TEST_F(UpstreamsPartsTest, ThereIsRoomForANewcomerAfterAnAddressHasLeft) {
  options.connections_max = 4;
  Make(2);
  // The last place of each address is kept.
  EXPECT_EQ(AskOften(kHog, 20), 6u);
  upstreams->SetAddresses(std::array{ServiceAddress{.id = 0}}, now);
  Turn();
  EXPECT_NE(Ask(kAnn).place, nullptr);
  EXPECT_EQ(counters.waits_for_client.value(), 14u);
}

// At first nobody knows that an address accepts no connections.
TEST_F(UpstreamsPartsTest, ThereIsRoomForANewcomerBesideAnAddressThatRefusesConnections) {
  options.connections_max = 4;
  options.health.failures_max = 1'000'000;
  Make(2);
  for (int i = 0; i < 20; ++i) {
    PlayedWaiter& waiter = requests.emplace_back(kHog);
    waiter.on_place = [this](Place& place) { Occupy(&place); };
    (void)TakeFor(waiter);
  }
  const auto settle = [&] {
    for (int i = 0; i < 100 && connected < made.size(); ++i) {
      PlayedConnection& connection = *made[connected++];
      if (connection.address == 1) {
        connection.owner->OnClosed(UpstreamConnection::End::kNotConnected, "refused", now);
      } else {
        connection.owner->OnConnected(now);
      }
      Turn();
    }
  };
  settle();
  EXPECT_EQ(counters.outstanding.value(), 3u);
  PlayedWaiter& ann = requests.emplace_back(kAnn);
  ann.on_place = [this](Place& place) { Occupy(&place); };
  if (const auto taken = TakeFor(ann); taken.place != nullptr) ann.OnPlace(*taken.place, now);
  Turn();
  settle();
  EXPECT_NE(ann.place, nullptr);
}

// Random events of many clients: the accounts are right, nobody without a place waits beside a free
// one, and everybody is served in the end.
TEST_F(UpstreamsPartsTest, KeepsItsAccountsInAnyOrder) {
  options.connections_max = 6;
  options.queue_max = 40;
  options.health.failures_max = 1'000'000;
  Make(2);
  base::Random random(11);
  std::vector<PlayedWaiter*> open;  // they wait, or have a place
  size_t refused = 0;
  std::array<int, 2> failed{};  // checks in a row
  const auto settle = [&] {
    Turn();
    refused += static_cast<size_t>(
        std::erase_if(open, [](const PlayedWaiter* one) { return one->refused.has_value(); }));
    size_t holding = 0;
    std::set<uint64_t> holders;
    std::array<size_t, 2> used{};
    for (const PlayedWaiter* one : open) {
      if (one->holds == nullptr) continue;
      ++holding;
      holders.insert(one->client);
      ++used[Played(*one->holds).address];
    }
    ASSERT_EQ(counters.outstanding.value(), holding);
    ASSERT_EQ(counters.queued.value(), open.size() - holding);
    if (connected < made.size()) return;  // a place may be on its way
    const bool all_out = failed[0] >= 2 && failed[1] >= 2;
    for (const PlayedWaiter* one : open) {
      if (one->holds != nullptr || holders.contains(one->client)) continue;
      for (size_t address = 0; address < 2; ++address) {
        if (!all_out && failed[address] >= 2) continue;
        ASSERT_EQ(used[address], options.connections_max) << "a client without a place waits";
      }
    }
  };
  for (int step = 0; step < 20'000; ++step) {
    switch (random.Below(6)) {
      case 0:
      case 1: {
        const uint64_t client = random.Below(8);
        PlayedWaiter& waiter = requests.emplace_back(client);
        waiter.client = client;
        waiter.on_place = [this](Place& place) { Occupy(&place); };
        const auto taken = TakeFor(waiter);
        waiter.refused = taken.refused;
        if (taken.place != nullptr) waiter.OnPlace(*taken.place, now);
        open.push_back(&waiter);
        break;
      }
      case 2: {
        if (open.empty()) break;
        const size_t which = random.Below(open.size());
        PlayedWaiter& waiter = *open[which];
        open.erase(open.begin() + static_cast<ptrdiff_t>(which));
        if (waiter.holds != nullptr) {
          Leave(*waiter.holds, random.Below(2) == 0 ? Ended::kWell : Ended::kCancelled);
        } else {
          upstreams->Forget(waiter);
        }
        break;
      }
      case 3: {
        if (connected == made.size()) break;
        PlayedConnection& connection = *made[connected++];
        if (random.Below(8) == 0) {
          connection.owner->OnClosed(UpstreamConnection::End::kNotConnected, "refused", now);
        } else {
          connection.owner->OnConnected(now);
        }
        break;
      }
      case 4:
        now += std::chrono::milliseconds(100);
        upstreams->OnTick(now);
        break;
      default: {
        const size_t address = random.Below(2);
        const bool passed = random.Below(4) != 0;
        failed[address] = passed ? 0 : failed[address] + 1;
        upstreams->OnChecked(address, passed);
        break;
      }
    }
    settle();
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(counters.waits_for_client.value(), 100u);
  EXPECT_GT(refused, 0u);
  for (size_t i = 0; i < open.size(); ++i) {
    ConnectAll();
    for (PlayedWaiter* one : open) {
      if (one->holds != nullptr) Leave(*one->holds);
    }
  }
  EXPECT_EQ(counters.queued.value(), 0u);
  EXPECT_EQ(counters.outstanding.value(), 0u);
}

}  // namespace upstreams_parts_test
}  // namespace headgate::proxy
