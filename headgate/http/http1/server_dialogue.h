// A conversation with a ServerSession for tests: the bytes that a client sends, the requests that
// the application gets, and the output.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headgate/http/http1/server_session.h"

namespace headgate::http::http1 {

// A request as the application got it.
struct Received {
  RequestHead head{};
  ServerExchange* exchange = nullptr;
  std::string body{};
  Fields trailers{};
  size_t unconsumed = 0;
  bool ended = false;
  bool aborted = false;
  bool malformed = false;  // as the exchange states it in OnAbort
  bool alive = true;       // the receiver is
  int writable = 0;        // calls of OnWritable
  size_t held = 0;         // as HeldBytes states it

  void Consume(size_t bytes) {
    unconsumed -= bytes;
    exchange->Consumed(bytes);
  }
  void Answer(std::string_view text, int status = 200) {
    exchange->SendHead({.status = status,
                        .fields = {},
                        .body = {.kind = BodyLength::Kind::kSized, .bytes = text.size()}});
    exchange->SendData(text);
    exchange->SendEnd({});
  }
};

// Answers each request at its end with `answer`, unless a test takes care of it by `on_…`.
class TestApplication final : public Application {
 public:
  std::unique_ptr<RequestReceiver> OnRequest(RequestHead&& head, const net::Peer& /*peer*/,
                                             ServerExchange& exchange,
                                             base::Instant /*now*/) override {
    auto received = std::make_shared<Received>();
    received->head = std::move(head);
    received->exchange = &exchange;
    requests.push_back(received);
    if (on_request) on_request(*received);
    return std::make_unique<Receiver>(*this, received);
  }

  Received& last() { return *requests.back(); }

  std::vector<std::shared_ptr<Received>> requests;
  std::string answer = "ok";
  bool consumes = true;
  std::function<void(Received&)> on_request;
  std::function<void(Received&)> on_end = [this](Received& received) { received.Answer(answer); };
  std::function<void(Received&)> on_writable;

 private:
  class Receiver final : public RequestReceiver {
   public:
    Receiver(TestApplication& application, std::shared_ptr<Received> received)
        : application_(application), received_(std::move(received)) {}
    ~Receiver() override { received_->alive = false; }

    void OnData(std::string_view bytes, base::Instant /*now*/) override {
      EXPECT_FALSE(bytes.empty());
      EXPECT_FALSE(received_->ended || received_->aborted);
      received_->body += bytes;
      received_->unconsumed += bytes.size();
      EXPECT_LE(received_->unconsumed, kWindowBytes);
      if (application_.consumes) received_->Consume(bytes.size());
    }
    void OnEnd(const Fields& trailers, base::Instant /*now*/) override {
      EXPECT_FALSE(received_->ended || received_->aborted);
      received_->ended = true;
      received_->trailers = trailers;
      if (application_.on_end) application_.on_end(*received_);
    }
    void OnAbort(base::Instant /*now*/) override {
      EXPECT_FALSE(received_->aborted);
      received_->aborted = true;
      received_->malformed = received_->exchange->request_is_malformed();
    }
    void OnWritable(base::Instant /*now*/) override {
      ++received_->writable;
      if (application_.on_writable) application_.on_writable(*received_);
    }
    size_t HeldBytes() const override { return received_->held; }

   private:
    TestApplication& application_;
    const std::shared_ptr<Received> received_;
  };
};

// The example of RFC 9110: Sun, 06 Nov 1994 08:49:37 GMT.
inline constexpr base::Instant kNow = base::Instant::FromNanos(784'111'777'000'000'000);

class ServerDialogue {
 public:
  explicit ServerDialogue(ServerOptions o = {}) : options(std::move(o)) {
    session->SetWaker([this] { ++woken; });
  }

  // Feeds bytes like the event loop, and returns the output. The client takes all of it, unless
  // `client_reads` is false.
  std::string Say(std::string_view bytes) {
    rest.append(bytes);
    std::string all;
    do {
      woken = 0;
      std::string output;
      progress = session->OnBytes(rest, output, kNow);
      answered += progress.answered;
      rest.erase(0, progress.consumed);
      if (!client_reads && (unsent > 0 || !output.empty())) {
        unsent += output.size();
        session->OnUnsent(unsent, kNow);
      }
      all += output;
    } while (!progress.close && (progress.more || woken > 0));
    return all;
  }
  // The calls after the application has acted on its own.
  std::string Run() { return Say(""); }
  // The client closes its direction.
  std::string End() {
    if (session->OnInputEnd(kNow)) return Run();
    progress.close = true;
    return "";
  }
  // The client has read everything but `bytes`.
  void ReadAllBut(size_t bytes) {
    unsent = bytes;
    session->OnUnsent(bytes, kNow);
  }

  ServerOptions options;
  TestApplication application;
  std::unique_ptr<ServerSession> session =
      std::make_unique<ServerSession>(application, options, net::Peer{});
  net::Session::Progress progress;
  std::string rest;
  int woken = 0;
  uint64_t answered = 0;
  bool client_reads = true;
  size_t unsent = 0;
};

inline constexpr std::string_view kGet = "GET /x?y=1 HTTP/1.1\r\nHost: a.example\r\n\r\n";
inline constexpr std::string_view kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
inline std::string Get(const std::string& fields) {
  return "GET / HTTP/1.1\r\nHost: a.example\r\n" + fields + "\r\n";
}
inline std::string Post(const std::string& fields, const std::string& body = "") {
  return "POST / HTTP/1.1\r\nHost: a.example\r\n" + fields + "\r\n" + body;
}

}  // namespace headgate::http::http1
