// A server and a client of this folder that talk to each other in memory, for tests.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "headgate/http/http2/client_session.h"
#include "headgate/http/http2/server_session.h"
#include "headgate/http/http2/test_exchanges.h"

namespace headgate::http::http2 {

inline RequestHead MakeGet(std::string target = "/") {
  RequestHead head{.version = Version::kHttp2};
  head.method = "GET";
  head.target = std::move(target);
  head.scheme = "http";
  head.authority = "a.example";
  return head;
}
inline RequestHead MakePost(BodyLength body) {
  RequestHead head = MakeGet();
  head.method = "POST";
  head.body = body;
  return head;
}
inline RequestHead MakeTunnel() {
  RequestHead head = MakeGet();
  head.protocol = "websocket";
  return head;
}
inline ResponseHead MakeResponse(int status, BodyLength body = {}) {
  return {.status = status, .body = body};
}
inline constexpr BodyLength kUnsized{.kind = BodyLength::Kind::kUnsized};
inline constexpr BodyLength kTunnel{.kind = BodyLength::Kind::kTunnel};
inline constexpr BodyLength Sized(uint64_t bytes) {
  return {.kind = BodyLength::Kind::kSized, .bytes = bytes};
}

struct TestPair {
  explicit TestPair(ServerOptions of_server = {}, ClientOptions of_client = {})
      : server_options(of_server), client_options(of_client) {
    server.SetWaker([this] { server_woken = true; });
    client.SetWaker([this] { client_woken = true; });
  }
  ~TestPair() { client.OnBroken("the test is over", kNow); }

  // Passes output in both directions until there is none.
  void Run() {
    do {
      client_woken = server_woken = false;
      ToServer();
      ToClient();
    } while (client_woken || server_woken || !client.output().empty());
  }
  void ToServer() {
    const std::string bytes = std::exchange(client.output(), {});
    client.OnUnsent(0, kNow);
    if (closed) return;
    progress = server.OnBytes(bytes, from_server, kNow);
    answered += progress.answered;
    closed = progress.close;
  }
  void ToClient() {
    const std::string bytes = std::exchange(from_server, {});
    server.OnUnsent(0, kNow);
    if (!bytes.empty()) client.OnBytes(bytes, kNow);
  }

  TestResponse& Begin(const RequestHead& head) {
    responses.push_back(std::make_unique<TestResponse>());
    TestResponse& response = *responses.back();
    response.exchange = &client.Begin(head, response, kNow);
    return response;
  }
  // Begins, and passes everything on.
  TestResponse& Ask(const RequestHead& head) {
    TestResponse& response = Begin(head);
    Run();
    return response;
  }

  const ServerOptions server_options;
  const ClientOptions client_options;
  Counters server_counters;
  Counters client_counters;
  TestApplication application;
  std::vector<std::unique_ptr<TestResponse>> responses;
  ServerSession server{application, server_options, net::Peer{}, server_counters};
  ClientSession client{client_options, client_counters};
  net::Session::Progress progress;
  std::string from_server;
  uint64_t answered = 0;
  bool server_woken = false;
  bool client_woken = false;
  bool closed = false;
};

}  // namespace headgate::http::http2
