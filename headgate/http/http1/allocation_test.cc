// Memory that an exchange and an idle connection take. A proxy has very many of both.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "headgate/http/http1/client_session.h"
#include "headgate/http/http1/server_session.h"
#include "headgate/testing/count_allocations.h"

namespace headgate::http::http1 {
namespace allocation_test {

constexpr base::Instant kNow = base::Instant::FromNanos(0);

uint64_t Allocations() { return testing::allocation_count.load(std::memory_order_relaxed); }

// Both sides of an exchange.
struct Quiet final : RequestReceiver, ResponseReceiver {
  Quiet() = default;
  Quiet(ServerExchange* server_exchange, const ResponseHead* server_answer)
      : exchange(server_exchange), answer(server_answer) {}
  void OnData(std::string_view bytes, base::Instant /*now*/) override {
    if (exchange != nullptr) exchange->Consumed(bytes.size());
  }
  void OnEnd(const Fields& trailers, base::Instant /*now*/) override {
    if (exchange == nullptr) return;
    exchange->SendHead(*answer);
    for (int i = 0; i < 100; ++i) exchange->SendData("hello");
    exchange->SendEnd(trailers);
  }
  void OnAbort(base::Instant /*now*/) override {}
  void OnWritable(base::Instant /*now*/) override {}
  void OnInformational(const ResponseHead& /*head*/, base::Instant /*now*/) override {}
  void OnHead(ResponseHead /*head*/, base::Instant /*now*/) override {}
  void OnFailed(Failure /*failure*/, std::string_view /*detail*/, base::Instant /*now*/) override {}

  ServerExchange* const exchange = nullptr;
  const ResponseHead* const answer = nullptr;
};

struct QuietApplication final : Application {
  std::unique_ptr<RequestReceiver> OnRequest(RequestHead&& /*head*/, const net::Peer& /*peer*/,
                                             ServerExchange& exchange,
                                             base::Instant /*now*/) override {
    return std::make_unique<Quiet>(&exchange, &answer);
  }
  ResponseHead answer;
};

TEST(Http1Allocations, ServerAllocatesOnlyForTheApplication) {
  QuietApplication application;
  application.answer.fields.Add("Content-Type", "text/plain; charset=utf-8");
  application.answer.body.kind = BodyLength::Kind::kUnsized;
  const ServerOptions options;
  ServerSession session(application, options, net::Peer{});
  const std::string head =
      "POST /x HTTP/1.1\r\nHost: a.example\r\nUser-Agent: a long name of a program\r\n"
      "Connection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n";
  std::string output;
  output.reserve(4096);
  // The first exchange makes the buffers. The others take one allocation for the receiver: this
  // application leaves the head to the session.
  for (int i = 0; i < 3; ++i) {
    const uint64_t before = Allocations();
    session.OnBytes(head, output, kNow);
    if (i > 0) {
      EXPECT_EQ(Allocations() - before, 1u);
    }
    const uint64_t at_body = Allocations();
    for (int chunk = 0; chunk < 100; ++chunk) {
      output.clear();
      session.OnBytes(std::string_view("5\r\nhello\r\n"), output, kNow);
    }
    const auto progress = session.OnBytes(std::string_view("0\r\n\r\n"), output, kNow);
    EXPECT_EQ(Allocations() - at_body, 0u);
    EXPECT_EQ(progress.answered, 1u);
    output.clear();
  }
}

TEST(Http1Allocations, ClientAllocatesOnlyForTheReceiver) {
  ClientSession session;
  Quiet receiver;
  RequestHead head;
  head.method = "GET";
  head.target = "/x";
  head.authority = "a.example";
  head.fields.Add("User-Agent", "a long name of a program");
  const std::string_view answer =
      "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: "
      "5\r\n\r\nhello";
  for (int i = 0; i < 3; ++i) {
    const uint64_t before = Allocations();
    session.Begin(head, receiver, kNow).SendEnd({});
    session.output().clear();  // a real owner swaps it
    session.OnUnsent(0, kNow);
    session.OnBytes(answer, kNow);
    EXPECT_EQ(session.free_places(), 1u);
    if (i > 0) {
      EXPECT_EQ(Allocations() - before, 2u) << "the fields of the head";
    }
  }
}

// 10,000 idle connections should take far less than 150 MiB, with the socket's side.
TEST(Http1Allocations, IdleSessionsAreSmall) {
  EXPECT_LE(sizeof(ServerSession), 1024u);
  EXPECT_LE(sizeof(ClientSession), 1024u);
}

}  // namespace allocation_test
}  // namespace headgate::http::http1
