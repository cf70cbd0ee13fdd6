// A relay between a client and upstreams that are played. Needs no GoogleTest.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headgate/base/check.h"
#include "headgate/proxy/played_sides.h"
#include "headgate/proxy/relay.h"

namespace headgate::proxy {

inline constexpr base::Instant kStart = base::Instant::FromNanos(1'000'000'000'000);

struct PlayedAdmission final : Admission {
  AdmissionVerdict Admit(std::string_view client, base::Instant) override {
    asked.emplace_back(client);
    return verdict;
  }
  bool SeesRoom(std::string_view, base::Instant) override { return sees_room; }
  bool refuses() const override { return refusing; }
  void OnLeft(const Leaving& leaving, base::Instant) override {
    left.push_back(leaving.how);
    was_sent = leaving.was_sent;
    sent_at = leaving.sent_at;
    number_left = leaving.number;
  }
  AdmissionVerdict verdict{.quota = 10, .remaining = 7, .reset_after = std::chrono::seconds(4)};
  bool sees_room = true;
  bool refusing = true;
  std::vector<std::string> asked;
  std::vector<Left> left;
  // The last one that has left.
  base::Instant sent_at{};
  bool was_sent = false;
  uint64_t number_left = 0;
};

struct RelayRig : Places {
  virtual ~RelayRig() = default;

  Taken Take(Waiter& waiter, base::Instant) override {
    if (free.empty()) {
      waiting = &waiter;
      return {};
    }
    Place* const place = free.front();
    free.pop_front();
    return {.place = place};
  }
  void Forget(Waiter& waiter) override {
    HEADGATE_CHECK(waiting == &waiter);
    waiting = nullptr;
  }

  void Make(http::RequestHead head) {
    relay.emplace(context, std::nullopt, std::move(head), response_fields, client, now);
  }
  // Begins a request; its head is then changed by `change`.
  template <typename Change>
  void Begin(std::string_view method, Change change) {
    http::RequestHead head{.method = std::string(method),
                           .target = "/x",
                           .scheme = "http",
                           .authority = "example.com"};
    change(head);
    Make(std::move(head));
    relay->Begin(now);
  }
  void Begin(std::string_view method) {
    Begin(method, [](http::RequestHead&) {});
  }
  void BeginWithBody(std::string_view method) {
    Begin(method,
          [](http::RequestHead& head) { head.body = {.kind = http::BodyLength::Kind::kUnsized}; });
  }
  void Wait(base::Duration d) {
    now += d;
    wheel.Advance(now);
  }
  http::ResponseReceiver& Answer(PlayedUpstream& asked) { return *asked.receiver; }
  void Fail(PlayedUpstream& asked, http::Failure failure) {
    std::exchange(asked.receiver, nullptr)->OnFailed(failure, "", now);
  }
  uint64_t Count(RelayOutcome outcome) const {
    return counters.outcomes[static_cast<size_t>(outcome)].value();
  }

  base::Instant now = kStart;
  RelayOptions options;
  PlayedAdmission admission;
  TickWheel wheel{kStart};
  RelayCounters counters;
  base::Random random{1};
  RelayContext context{.options = options,
                       .admission = admission,
                       .places = *this,
                       .wheel = wheel,
                       .counters = counters,
                       .random = random};
  http::Fields response_fields;
  PlayedClient client;
  PlayedUpstream upstream;
  PlayedUpstream other;
  std::deque<Place*> free{&upstream, &other};
  Waiter* waiting = nullptr;
  std::optional<Relay> relay;
};

}  // namespace headgate::proxy
