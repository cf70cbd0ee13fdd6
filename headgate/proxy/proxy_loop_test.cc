// A proxy between real sockets: a client, a server of HTTP/1 in front of the proxy, and an
// upstream.
#include "headgate/proxy/proxy_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "headgate/http/handler_application.h"
#include "headgate/http/http1/client_session.h"
#include "headgate/http/http1/server_session.h"
#include "headgate/net/server_rig.h"

namespace headgate::proxy {
namespace proxy_loop_test {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct AdmitsAll final : Admission {
  AdmissionVerdict Admit(std::string_view, base::Instant) override { return {}; }
  void OnLeft(const Leaving&, base::Instant) override {}
};

// Answers with the fields of interest and the body of the request.
struct Upstream : http::Handler {
  void Handle(const http::Request& request, http::Response& response, base::Instant) override {
    response.AddField("X-Saw", std::string(request.method) + " " + std::string(request.target) +
                                   " " + std::string(request.Field("via")));
    response.body = request.body;
  }
  net::SessionChoice Choose(std::span<const char>, const net::Peer& peer, net::Room) {
    ++connections;
    return {.made = true,
            .session = std::make_unique<http::http1::ServerSession>(served, http1_options, peer)};
  }
  http::HandlerOptions handler_options;
  http::HandlerApplication served{*this, handler_options};
  http::http1::ServerOptions http1_options{.cancels_abandoned = false};
  std::atomic<int> connections = 0;
};

struct Proxy {
  net::SessionChoice Choose(std::span<const char>, const net::Peer& peer, net::Room) {
    return {.made = true,
            .session = std::make_unique<http::http1::ServerSession>(loop->application(),
                                                                    session_options, peer)};
  }
  AdmitsAll admits_all;
  ProxyOptions options{.application = {.describes_admitted = false}};
  http::http1::ServerOptions session_options;
  std::unique_ptr<ProxyLoop> loop;
};

struct ProxyLoopTest : ::testing::Test {
  ProxyLoopTest() {
    upstream.server->Start();
    StreamConnectionOptions address{
        .target = {.host = "127.0.0.1", .port = upstream.endpoint.port},
        .stream = {.connect_timeout = std::chrono::seconds(10)},
        .make_session = [] { return std::make_unique<http::http1::ClientSession>(); }};
    proxy.options.addresses.push_back(address);
    proxy.loop = std::make_unique<ProxyLoop>(proxy.options, proxy.admits_all, proxy.server->loop(0),
                                             proxy.clock);
    proxy.server->Start();
  }
  ~ProxyLoopTest() override {
    proxy.server->Stop();
    proxy.loop->LeaveLoop();
    // Connections end with the server, and their exchanges before the loop of the proxy.
    proxy.server.reset();
  }
  static std::string Answer(net::BlockingClient& client, std::string_view until) {
    std::string all;
    while (!all.ends_with(until)) {
      const auto some = client.ReadSome();
      if (!some.ok() || some->empty()) break;
      all += *some;
    }
    return all;
  }

  net::ServerRig<Upstream> upstream{net::ServerOptions{}};
  net::ServerRig<Proxy> proxy{net::ServerOptions{}};
};

TEST_F(ProxyLoopTest, RequestsGoOverOneKeptConnection) {
  auto client = proxy.Connect();
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(
        client.Send("POST /x?y HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello")
            .ok());
    EXPECT_THAT(Answer(client, "hello"), AllOf(StartsWith("HTTP/1.1 200 OK\r\n"),
                                               HasSubstr("X-Saw: POST /x?y 1.1 headgate\r\n")));
  }
  EXPECT_EQ(upstream.connections, 1);
  EXPECT_EQ(proxy.loop->counters().relays.begun.value(), 3u);
}

// A connection whose certificate was checked for one name is not used for another.
TEST_F(ProxyLoopTest, AnAddressIsTheSameIfItsServerNameIsTheSame) {
  auto client = proxy.Connect();
  const auto ask = [&] {
    ASSERT_TRUE(
        client.Send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nhi").ok());
    EXPECT_THAT(Answer(client, "hi"), StartsWith("HTTP/1.1 200 OK\r\n"));
  };
  const auto set = [&](const StreamConnectionOptions& address) {
    std::promise<void> done;
    proxy.server->loop(0).Post([&] {
      proxy.loop->SetAddresses({&address, 1});
      done.set_value();
    });
    done.get_future().wait();
  };
  ask();
  StreamConnectionOptions address = proxy.options.addresses.front();
  address.name = 1;
  set(address);
  ask();
  EXPECT_EQ(upstream.connections, 1);
  address.stream.server_name = "other.test";
  set(address);
  ask();
  EXPECT_EQ(upstream.connections, 2);
}

TEST_F(ProxyLoopTest, AnAddressThatComesBackHasTheConnectionsThatAreInUse) {
  const StreamConnectionOptions address = proxy.options.addresses.front();
  StreamConnectionOptions other = address;
  other.stream.server_name = "other.test";
  const auto set = [&](const StreamConnectionOptions& to) {
    std::promise<void> done;
    proxy.server->loop(0).Post([&] {
      proxy.loop->SetAddresses({&to, 1});
      done.set_value();
    });
    done.get_future().wait();
  };
  auto client = proxy.Connect();
  ASSERT_TRUE(client.Send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nh").ok());
  while (proxy.loop->counters().upstreams.outstanding.value() == 0) std::this_thread::yield();
  set(other);
  set(address);
  ASSERT_TRUE(client.Send("i").ok());
  EXPECT_THAT(Answer(client, "hi"), StartsWith("HTTP/1.1 200 OK\r\n"));
  ASSERT_TRUE(
      client.Send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nho").ok());
  EXPECT_THAT(Answer(client, "ho"), StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_EQ(upstream.connections, 1);
}

TEST_F(ProxyLoopTest, LargeBodiesPassInBothDirections) {
  auto client = proxy.Connect();
  const std::string body(1 << 20, 'b');
  ASSERT_TRUE(
      client
          .Send(
              "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n100000\r\n" +
              body + "\r\n0\r\n\r\n")
          .ok());
  std::string all;
  while (all.size() < body.size() || all.find("\r\n\r\n") + 4 + body.size() > all.size()) {
    const auto some = client.ReadSome();
    ASSERT_TRUE(some.ok() && !some->empty());
    all += *some;
  }
  EXPECT_THAT(all, EndsWith(body));
}

TEST_F(ProxyLoopTest, UpstreamThatIsDownIs502) {
  upstream.server.reset();
  auto client = proxy.Connect();
  ASSERT_TRUE(client.Send("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").ok());
  EXPECT_THAT(*client.ReadToEnd(10'000),
              AllOf(StartsWith("HTTP/1.1 502 Bad Gateway\r\n"),
                    HasSubstr("Proxy-Status: headgate; error=connection_refused\r\n")));
}

TEST_F(ProxyLoopTest, InvalidRequestReachesNoUpstream) {
  auto client = proxy.Connect();
  ASSERT_TRUE(client
                  .Send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n"
                        "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
                  .ok());
  EXPECT_THAT(*client.ReadToEnd(10'000), StartsWith("HTTP/1.1 400 Bad Request\r\n"));
  EXPECT_EQ(upstream.connections, 0);
}

// An exchange that is open when the process ends.
TEST_F(ProxyLoopTest, LoopEndsWithOpenExchanges) {
  auto client = proxy.Connect();
  ASSERT_TRUE(
      client.Send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhe").ok());
  while (proxy.loop->counters().upstreams.outstanding.value() == 0) std::this_thread::yield();
}

}  // namespace proxy_loop_test
}  // namespace headgate::proxy
