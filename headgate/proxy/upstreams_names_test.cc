// The addresses behind one name: which of them get requests, and how their bounds count.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "headgate/proxy/upstreams_rig.h"

namespace headgate::proxy {
namespace upstreams_names_test {

using std::chrono::seconds;

constexpr ServiceAddress kFirst{.id = 0, .name = 1};
constexpr ServiceAddress kSecond{.id = 1, .name = 1};

struct UpstreamsNamesTest : UpstreamsRig {
  void MakeNames(const std::vector<ServiceAddress>& addresses) {
    Make(1);
    upstreams->SetAddresses(addresses, now);
  }
  // Ends the attempt to connect: `only` accepts, the others refuse.
  void EndAttempt(size_t number, size_t only) {
    if (made[number]->address == only) return Connected(number);
    made[number]->owner->OnClosed(UpstreamConnection::End::kNotConnected, "refused", now);
    Turn();
  }
  // One request, which begins and ends well. Returns the addresses that it has tried.
  std::vector<size_t> Request(size_t only) {
    PlayedWaiter waiter;
    const size_t before = made.size();
    Place* place = TakeFor(waiter).place;
    std::vector<size_t> tried;
    for (size_t i = before; i < made.size(); ++i) {
      tried.push_back(made[i]->address);
      EndAttempt(i, only);
    }
    EXPECT_FALSE(waiter.refused.has_value());
    if (place == nullptr) place = waiter.place;
    EXPECT_NE(place, nullptr);
    if (place == nullptr) return tried;
    Occupy(place);
    Leave(*place);
    known.clear();
    return tried;
  }
  // No connection is kept, so that each request needs one.
  void EndIdle() {
    now += options.idle_timeout;
    upstreams->OnTick(now);
    Turn();
  }
};

// As "::1" and "127.0.0.1" of a service that listens on one of them.
TEST_F(UpstreamsNamesTest, AddressThatNeverAcceptsIsQuietlyOutWhileAnotherAccepts) {
  MakeNames({kFirst, kSecond});
  uint64_t failures = 0;
  for (int i = 0; i < 100; ++i) {
    for (const size_t address : Request(/*only=*/1)) failures += address == 0 ? 1 : 0;
    EndIdle();
  }
  // 100 requests in 400 s. It is tried again after 1, 2, 4, 8, 16, 32, and then each 60 s, and the
  // first attempt may come before the other address has accepted.
  EXPECT_GE(failures, 6u);
  EXPECT_LE(failures, 14u);
  EXPECT_EQ(counters.connect_failures.value(), failures);
  EXPECT_EQ(counters.out.value(), 0u) << "this is no event";
}

TEST_F(UpstreamsNamesTest, AddressThatAcceptsLaterGetsRequests) {
  MakeNames({kFirst, kSecond});
  for (int i = 0; i < 3; ++i) (void)Request(/*only=*/1);
  EndIdle();
  (void)Request(/*only=*/1);
  now += options.health.out_max;
  std::vector<Place*> places = {&Take(), &Take()};
  EXPECT_NE(Played(*places[0]).address, Played(*places[1]).address);
  for (Place* place : places) Leave(*place);
}

// It has failed after it worked: this is an event like any other.
TEST_F(UpstreamsNamesTest, AddressThatHasAcceptedIsJudgedAsUsual) {
  MakeNames({kFirst, kSecond});
  std::vector<Place*> places = {&Take(), &Take()};
  for (Place* place : places) Leave(*place);
  for (int i = 0; i < 40; ++i) {
    EndIdle();
    (void)Request(/*only=*/1);
  }
  EXPECT_GE(counters.out.value(), 1u);
}

// Addresses that were listed one by one, or belong to two names, say nothing about each other.
TEST_F(UpstreamsNamesTest, OnlyAddressesOfTheSameNameAreCompared) {
  for (const size_t other : {size_t{0}, size_t{2}}) {
    MakeNames({{.id = 0, .name = other}, kSecond});
    const uint64_t before = counters.out.value();
    for (int i = 0; i < 40; ++i) {
      (void)Request(/*only=*/1);
      EndIdle();
    }
    EXPECT_GT(counters.out.value(), before);
    upstreams->Close(now);
    made.clear();
  }
}

TEST_F(UpstreamsNamesTest, TheBoundOfConnectionsIsThatOfEachAddress) {
  options.connections_max = 2;
  MakeNames({kFirst, kSecond});
  for (int i = 0; i < 3; ++i) (void)Request(/*only=*/1);
  EndIdle();
  (void)Request(/*only=*/1);
  const size_t before = made.size();
  std::vector<Place*> places = {&Take(), &Take()};
  for (Place* place : places) EXPECT_EQ(Played(*place).address, 1u);
  PlayedWaiter third;
  EXPECT_EQ(TakeFor(third).place, nullptr);
  EXPECT_LE(made.size(), before + 2) << "the address that is out adds no connections";
  upstreams->Forget(third);
  for (Place* place : places) Leave(*place);
}

TEST_F(UpstreamsNamesTest, FailedChecksOfAnAddressThatNeverAcceptedAreNotCounted) {
  MakeNames({kFirst, kSecond});
  upstreams->OnChecked(0, false);
  EXPECT_EQ(counters.checks_failed.value(), 1u) << "nobody has accepted";
  upstreams->OnChecked(1, true);
  upstreams->OnChecked(0, false);
  EXPECT_EQ(counters.checks_failed.value(), 1u);
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(Request(/*only=*/1), i == 0 ? std::vector<size_t>{1} : std::vector<size_t>{});
  upstreams->OnChecked(0, true);
  upstreams->OnChecked(0, false);
  EXPECT_EQ(counters.checks_failed.value(), 2u);
}

// Otherwise each time that a name changes its answer there would be another bound.
TEST_F(UpstreamsNamesTest, AddressThatComesBackHasItsOldConnections) {
  options.connections_max = 2;
  MakeNames({kFirst});
  Place& first = Take();
  Place& second = Take();
  EXPECT_EQ(made.size(), 2u);
  for (int i = 0; i < 3; ++i) {
    upstreams->SetAddresses(std::array{kSecond}, now);
    EXPECT_TRUE(upstreams->HasRetired(kFirst.id));
    upstreams->SetAddresses(std::array{kFirst}, now);
    EXPECT_FALSE(upstreams->HasRetired(kFirst.id));
    Turn();
  }
  PlayedWaiter waiter;
  EXPECT_EQ(TakeFor(waiter).place, nullptr);
  EXPECT_EQ(made.size(), 2u) << "both connections to it are in use";
  waiter.on_place = [this](Place& place) { Occupy(&place); };
  Leave(second);
  EXPECT_EQ(waiter.place, &second) << "its connections are used again";
  upstreams->SetAddresses(std::array{kSecond}, now);
  Leave(first);
  Leave(second);
  upstreams->OnTick(now);
  EXPECT_FALSE(upstreams->HasRetired(kFirst.id)) << "nothing is left of it";
}

TEST_F(UpstreamsNamesTest, AddressThatComesBackIsTriedAgain) {
  options.health = {.failures_max = 1, .out_min = seconds(1), .out_max = seconds(8)};
  MakeNames({kFirst});
  Place& kept = Take();
  Leave(Take(), Ended::kFailed);
  upstreams->OnChecked(kFirst.id, false);
  upstreams->OnChecked(kFirst.id, false);
  upstreams->SetAddresses(std::array{kSecond}, now);
  upstreams->SetAddresses(std::array{kFirst, kSecond}, now);
  Turn();
  Place& busy = Take();
  Place& other = Take();
  EXPECT_NE(Played(busy).address, Played(other).address);
  Leave(kept);
  Leave(busy);
  Leave(other);
}

}  // namespace upstreams_names_test
}  // namespace headgate::proxy
