// A client and an upstream that are played by tests and by the fuzzer. Both record what the relay
// does, one word or line for each call, and stop the process if it breaks a rule of
// headgate/http/exchange.h. Needs no GoogleTest.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headgate/base/check.h"
#include "headgate/http/client_session.h"
#include "headgate/http/exchange.h"
#include "headgate/proxy/places.h"

namespace headgate::proxy {

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

// One side of the relay: the message that it gets, and the bytes that the relay took from it.
struct PlayedSide {
  void Begin(const http::BodyLength& length) {
    begun = true;
    ended = false;
    body = length;
    sent = 0;
  }
  void Data(std::string_view bytes) {
    HEADGATE_CHECK(begun && !ended && body.kind != http::BodyLength::Kind::kNone);
    sent += bytes.size();
    HEADGATE_CHECK(body.kind != http::BodyLength::Kind::kSized || sent <= body.bytes);
    got.push_back("data " +
                  std::string(bytes.size() > 1000 ? std::to_string(bytes.size()) : bytes));
    unsent += takes ? 0 : bytes.size();
  }
  void End(const http::Fields& trailers) {
    HEADGATE_CHECK(begun && !std::exchange(ended, true));
    got.push_back("end" + ToString(trailers));
  }
  std::vector<std::string> TakeGot() { return std::exchange(got, {}); }

  std::vector<std::string> got;
  bool begun = false;
  bool ended = false;
  http::BodyLength body{};
  uint64_t sent = 0;  // to this side
  bool takes = true;  // otherwise everything stays unsent
  size_t unsent = 0;
  size_t credited = 0;
};

// The client's connection.
class PlayedClient final : public http::ServerExchange, public PlayedSide {
 public:
  void SendInformational(const http::ResponseHead& head) override {
    HEADGATE_CHECK(!closed && !begun && head.status < 200 && head.status != 101);
    got.push_back("informational " + std::to_string(head.status) + ToString(head.fields));
  }
  void SendHead(const http::ResponseHead& head) override {
    HEADGATE_CHECK(!closed && !begun);
    HEADGATE_CHECK((head.body.kind == http::BodyLength::Kind::kTunnel) == (head.status == 101));
    Begin(head.body);
    got.push_back("head " + std::to_string(head.status) + ToString(head.body) +
                  ToString(head.fields));
  }
  void SendData(std::string_view bytes) override {
    HEADGATE_CHECK(!closed);
    Data(bytes);
  }
  void SendEnd(const http::Fields& trailers) override {
    HEADGATE_CHECK(!closed);
    End(trailers);
  }
  void Abort() override {
    HEADGATE_CHECK(!std::exchange(closed, true));
    got.push_back("abort");
  }
  void Consumed(size_t bytes) override { credited += bytes; }
  size_t unsent_bytes() const override { return unsent; }
  bool request_is_malformed() const override { return malformed; }
  void CallAgain() override { HEADGATE_CHECK(false); }
  std::unique_ptr<http::ConnectionState>& connection_state() override { return state; }

  std::unique_ptr<http::ConnectionState> state;
  bool malformed = false;
  bool closed = false;  // by the client, or by Abort()
};

// A connection to an upstream, and the only exchange on it.
class PlayedUpstream : public http::ClientSession,
                       public http::ClientExchange,
                       public Place,
                       public PlayedSide {
 public:
  // ---- ClientSession
  size_t free_places() const override { return receiver == nullptr ? 1 : 0; }
  bool finished() const override { return false; }
  size_t open_exchanges() const override { return receiver == nullptr ? 0 : 1; }
  http::ClientExchange& Begin(const http::RequestHead& head, http::ResponseReceiver& to,
                              base::Instant) override {
    HEADGATE_CHECK(receiver == nullptr);
    receiver = &to;
    // Until the answer has decided whether there will be a tunnel.
    const http::BodyLength tunnel{.kind = http::BodyLength::Kind::kTunnel};
    PlayedSide::Begin(head.protocol.empty() ? head.body : tunnel);
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
    HEADGATE_CHECK(receiver != nullptr);
    Data(bytes);
  }
  void SendEnd(const http::Fields& trailers) override {
    HEADGATE_CHECK(receiver != nullptr);
    End(trailers);
  }
  void Cancel() override {
    HEADGATE_CHECK(receiver != nullptr);
    got.emplace_back("cancel");
    receiver = nullptr;
  }
  void Consumed(size_t bytes) override { credited += bytes; }
  size_t unsent_bytes() const override { return unsent; }

  // ---- Place
  http::ClientSession& session() override { return *this; }
  bool reused() const override { return is_reused; }
  bool speaks_http2() const override { return http2; }
  void Leave(Places::Waiter&, Ended how, base::Instant) override { left.push_back(how); }

  http::ResponseReceiver* receiver = nullptr;
  bool is_reused = false;
  bool http2 = false;
  std::vector<Ended> left;

 private:
  std::string output_;
};

}  // namespace headgate::proxy
