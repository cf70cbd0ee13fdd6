// Upstreams whose connections and requests are played by tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headgate/base/check.h"
#include "headgate/proxy/relay_rig.h"
#include "headgate/proxy/upstreams.h"

namespace headgate::proxy {

// A connection whose session has `places`.
struct PlayedConnection final : UpstreamConnection, http::ClientSession {
  http::ClientSession& session() override { return *this; }
  bool may_begin() const override { return !in_call; }
  bool speaks_http2() const override { return http2; }
  void Close(base::Instant) override { closed = true; }

  size_t free_places() const override { return ended ? 0 : places; }
  bool finished() const override { return ended; }
  bool worn() const override { return is_worn; }
  void Retire() override { ended = true; }
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
  bool http2 = false;
  bool ended = false;  // takes no more exchanges
  bool is_worn = false;
  bool in_call = false;
  bool closed = false;
  std::string output_;
};

struct PlayedWaiter final : Places::Waiter {
  using Places::Waiter::Waiter;
  void OnPlace(Place& given, base::Instant) override {
    place = holds = &given;
    if (on_place) on_place(given);
  }
  void OnNoPlace(NoPlace why, std::string_view, base::Instant) override { refused = why; }
  Place* place = nullptr;
  Place* holds = nullptr;  // until it leaves
  std::optional<NoPlace> refused;
  uint64_t client = 0;  // for tests
  std::function<void(Place&)> on_place;
};

struct UpstreamsRig : ::testing::Test {
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
    std::vector<ServiceAddress> to;
    for (size_t id = 0; id < addresses; ++id) to.push_back({.id = id});
    upstreams->SetAddresses(to, now);
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
    LeaveInTurn(place, ended);
    Turn();
  }
  void LeaveInTurn(Place& place, Ended ended) {
    const auto at = std::find_if(known.begin(), known.end(),
                                 [&](const PlayedWaiter* one) { return one->holds == &place; });
    HEADGATE_CHECK(at != known.end());
    (*at)->holds = nullptr;
    place.Leave(**at, ended, now);
  }
  Places::Taken TakeFor(PlayedWaiter& waiter) {
    if (std::find(known.begin(), known.end(), &waiter) == known.end()) known.push_back(&waiter);
    const auto taken = upstreams->Take(waiter, now);
    if (taken.place != nullptr) waiter.holds = taken.place;
    return taken;
  }
  // Takes a place, which may need a connection first.
  Place& Take() {
    auto& waiter = *waiters.emplace_back(std::make_unique<PlayedWaiter>());
    waiter.on_place = [this](Place& place) { Occupy(&place); };
    const size_t before = made.size();
    const auto taken = TakeFor(waiter);
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
  std::vector<PlayedWaiter*> known;
  std::optional<Upstreams> upstreams;
};

}  // namespace headgate::proxy
