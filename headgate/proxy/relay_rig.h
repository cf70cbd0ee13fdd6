// Relays between a client and upstreams that are played by tests. Both record what the relay does,
// one word or line for each call.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headgate/proxy/relay.h"

namespace headgate::proxy {

inline constexpr base::Instant kStart = base::Instant::FromNanos(1'000'000'000'000);

inline std::string ToString(const http::Fields& fields) {
  std::string text;
  for (const auto [name, value] : fields) text.append(" ").append(name).append("=").append(value);
  return text;
}

inline std::string ToString(const http::BodyLength& body) {
  switch (body.kind) {
    case http::BodyLength::Kind::kNone:
      return "";
    case http::BodyLength::Kind::kSized:
      return " sized " + std::to_string(body.bytes);
    case http::BodyLength::Kind::kUnsized:
      return " unsized";
    case http::BodyLength::Kind::kTunnel:
      return " tunnel";
  }
  return "";
}

// The client's connection.
class PlayedClient final : public http::ServerExchange {
 public:
  void SendInformational(const http::ResponseHead& head) override {
    got.push_back("informational " + std::to_string(head.status) + ToString(head.fields));
  }
  void SendHead(const http::ResponseHead& head) override {
    got.push_back("head " + std::to_string(head.status) + ToString(head.body) +
                  ToString(head.fields));
  }
  void SendData(std::string_view bytes) override {
    got.push_back("data " +
                  std::string(bytes.size() > 1000 ? std::to_string(bytes.size()) : bytes));
    unsent += takes ? 0 : bytes.size();
  }
  void SendEnd(const http::Fields& trailers) override { got.push_back("end" + ToString(trailers)); }
  void Abort() override { got.push_back("abort"); }
  void Consumed(size_t bytes) override { credited += bytes; }
  size_t unsent_bytes() const override { return unsent; }

  std::vector<std::string> TakeGot() { return std::exchange(got, {}); }

  std::vector<std::string> got;
  bool takes = true;  // otherwise everything stays unsent
  size_t unsent = 0;
  size_t credited = 0;
};

// A connection to an upstream, and the only exchange on it.
class PlayedUpstream final : public http::ClientSession, public http::ClientExchange, public Place {
 public:
  // ---- ClientSession
  size_t free_places() const override { return receiver == nullptr ? 1 : 0; }
  bool finished() const override { return false; }
  size_t open_exchanges() const override { return receiver == nullptr ? 0 : 1; }
  http::ClientExchange& Begin(const http::RequestHead& head, http::ResponseReceiver& to,
                              base::Instant) override {
    EXPECT_EQ(receiver, nullptr);
    receiver = &to;
    got.push_back(head.method + " " + head.target + ToString(head.body) + ToString(head.fields));
    return *this;
  }
  void OnBytes(std::string_view, base::Instant) override {}
  void OnInputEnd(base::Instant) override {}
  void OnBroken(std::string_view, base::Instant) override {}
  std::string& output() override { return output_; }
  void OnUnsent(size_t, base::Instant) override {}
  bool wants_input() const override { return true; }
  bool output_ended() const override { return false; }
  void SetWaker(std::function<void()>) override {}

  // ---- ClientExchange
  void SendData(std::string_view bytes) override {
    got.push_back("data " +
                  std::string(bytes.size() > 1000 ? std::to_string(bytes.size()) : bytes));
    unsent += takes ? 0 : bytes.size();
  }
  void SendEnd(const http::Fields& trailers) override { got.push_back("end" + ToString(trailers)); }
  void Cancel() override {
    got.emplace_back("cancel");
    receiver = nullptr;
  }
  void Consumed(size_t bytes) override { credited += bytes; }
  size_t unsent_bytes() const override { return unsent; }

  // ---- Place
  http::ClientSession& session() override { return *this; }
  bool reused() const override { return is_reused; }
  bool speaks_http2() const override { return http2; }
  void Leave(Places::Waiter&, Ended ended, base::Instant) override { left.push_back(ended); }

  std::vector<std::string> TakeGot() { return std::exchange(got, {}); }

  http::ResponseReceiver* receiver = nullptr;
  bool is_reused = false;
  bool http2 = false;
  bool takes = true;
  size_t unsent = 0;
  size_t credited = 0;
  std::vector<std::string> got;
  std::vector<Ended> left;

 private:
  std::string output_;
};

struct PlayedAdmission final : Admission {
  Verdict Admit(std::string_view client, base::Instant) override {
    asked.emplace_back(client);
    return verdict;
  }
  bool SeesRoom(std::string_view, base::Instant) override { return sees_room; }
  bool refuses() const override { return refusing; }
  void OnLeft(Left how, base::Instant at, base::Instant) override {
    left.push_back(how);
    sent_at = at;
  }
  Verdict verdict{.quota = 10, .remaining = 7, .reset_after = std::chrono::seconds(4)};
  bool sees_room = true;
  bool refusing = true;
  std::vector<std::string> asked;
  std::vector<Left> left;
  base::Instant sent_at{};
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
    EXPECT_EQ(waiting, &waiter);
    waiting = nullptr;
  }

  // Begins a request; its head is then changed by `change`.
  template <typename Change>
  void Begin(std::string_view method, Change change) {
    http::RequestHead head{.method = std::string(method),
                           .target = "/x",
                           .scheme = "http",
                           .authority = "example.com"};
    change(head);
    relay.emplace(context, std::nullopt, std::move(head), response_fields, client, now);
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
  uint64_t Count(Outcome outcome) const {
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
