// The client against a real server on this machine.
#include "headgate/client/http/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "headgate/client/http/test_http_server.h"
#include "headgate/net/test_certificate.h"

namespace headgate::client::http {
namespace client_test {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class TestClient {
 public:
  explicit TestClient(ClientOptions options)
      : client(loop, std::move(options),
               [this](const absl::Status& state) { state.ok() ? ++connected : ++refused; }) {}

  absl::StatusOr<Answer> Send(Request request = {.body = "x"}, base::Duration time = 10s) {
    std::optional<absl::StatusOr<Answer>> answer;
    client.Send(std::move(request), loop.Now() + time,
                [&](absl::StatusOr<Answer> given) { answer = std::move(given); });
    EXPECT_TRUE(Until([&] { return answer.has_value(); }));
    return *std::move(answer);
  }
  bool Until(const std::function<bool()>& done) { return loop.RunUntil(done, 20s); }

  int connected = 0;
  int refused = 0;
  base::SystemClock clock;
  net::EventLoop loop{clock};
  Client client;
};

RigReply Echo(const RigRequest& request) {
  return {.body = request.method + " " + request.target + " " + request.body};
}

TEST(CurlClient, SendsARequestAndReturnsItsAnswer) {
  HttpRig server([](const RigRequest& request) {
    return RigReply{.status = request.method == "GET" ? 200 : 418,
                    .body = "tea for " + request.body,
                    .fields = {"Date: Tue, 15 Nov 1994 08:12:31 GMT"}};
  });
  TestClient client({.origin = server.origin()});
  const auto answer = client.Send(
      {.target = "/pot?x=1", .fields = {"X-Amz-Target: Brew", "Content-Type: a/b"}, .body = "two"});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->status, 418);
  EXPECT_EQ(answer->body, "tea for two");
  EXPECT_EQ(answer->date, "Tue, 15 Nov 1994 08:12:31 GMT");
  EXPECT_EQ(ParseDate(answer->date)->ns, 784'887'151'000'000'000);
  EXPECT_FALSE(ParseDate("").has_value());
  RigRequest seen = server.requests().back();
  EXPECT_EQ(seen.method, "POST");
  EXPECT_EQ(seen.target, "/pot?x=1");
  EXPECT_EQ(seen.fields["x-amz-target"], "Brew");
  EXPECT_EQ(seen.fields["content-type"], "a/b");
  EXPECT_EQ(seen.fields["host"], server.origin().Authority());
  EXPECT_FALSE(seen.fields.contains("expect"));
}

TEST(CurlClient, KeepsItsConnections) {
  HttpRig server(Echo);
  TestClient client({.origin = server.origin(), .connections_max = 4});
  for (int i = 0; i < 50; ++i) EXPECT_EQ(client.Send()->body, "POST / x");
  EXPECT_EQ(server.connections(), 1u);
  int answered = 0;
  for (int i = 0; i < 200; ++i) {
    client.client.Send({.body = std::to_string(i)}, client.loop.Now() + 10s,
                       [&, i](const absl::StatusOr<Answer>& answer) {
                         ASSERT_TRUE(answer.ok()) << answer.status();
                         EXPECT_EQ(answer->body, "POST / " + std::to_string(i));
                         ++answered;
                       });
  }
  EXPECT_TRUE(client.Until([&] { return answered == 200; }));
  EXPECT_LE(server.connections(), 4u);
  EXPECT_EQ(client.client.connections(), server.connections());
}

TEST(CurlClient, OpensAConnectionBeforeTheFirstRequest) {
  HttpRig server(Echo);
  TestClient client({.origin = server.origin()});
  client.client.WarmUp();
  EXPECT_TRUE(client.Until([&] { return client.client.connections() == 1; }));
  EXPECT_EQ(client.connected, 1);
  EXPECT_EQ(server.requests_seen(), 0u);
  client.client.WarmUp();
  EXPECT_EQ(client.Send()->body, "POST / x");
  EXPECT_EQ(server.connections(), 1u);
}

// The handshake is as long as the answer to the warm-up.
TEST(CurlClient, ConnectsAlsoIfThatTakesLongerThanEveryRequestMay) {
  std::atomic<bool> slow{true};
  HttpRig server([&](const RigRequest& request) {
    if (request.method == "GET")
      while (slow) std::this_thread::yield();
    return Echo(request);
  });
  TestClient client({.origin = server.origin(), .connections_max = 2, .warm_up_timeout = 10s});
  for (int i = 0; i < 3; ++i) {
    const absl::Status status = client.Send({.body = "x"}, 10ms).status();
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  }
  slow = false;
  EXPECT_TRUE(client.Until([&] { return client.client.connections() > 0; }));
  EXPECT_TRUE(client.Send().ok());
  EXPECT_LE(server.connections(), 2u);
}

TEST(CurlClient, DoesNotInsistOnMoreConnectionsThanTheServerTakes) {
  int warm_ups = 0;
  HttpRig server([&](const RigRequest& request) {
    return RigReply{.body = "ok", .breaks = request.method == "GET" && ++warm_ups > 1};
  });
  TestClient client({.origin = server.origin(), .connections_max = 4});
  int answered = 0;
  for (int i = 0; i < 300; ++i) {
    client.client.Send({}, client.loop.Now() + 10s, [&](const absl::StatusOr<Answer>& answer) {
      EXPECT_TRUE(answer.ok()) << answer.status();
      ++answered;
    });
  }
  const base::BootTime began = client.loop.Now();
  EXPECT_TRUE(client.Until([&] { return answered == 300; }));
  // The client opens up to four connections at a time, at most ten times a second.
  const auto tries = static_cast<uint32_t>((client.loop.Now() - began) / 100ms) + 2;
  EXPECT_LE(server.connections(), 1 + 4 * tries);
}

TEST(CurlClient, DoesNotSendARequestTwice) {
  // The second request of a connection is read, and then the connection breaks.
  HttpRig server([](const RigRequest& request) {
    return RigReply{.body = "ok", .breaks = request.body == "breaks"};
  });
  TestClient client({.origin = server.origin()});
  ASSERT_TRUE(client.Send().ok());
  const size_t before = server.requests_seen();
  const absl::Status status = client.Send({.body = "breaks"}).status();
  EXPECT_TRUE(absl::IsUnknown(status)) << status;
  EXPECT_EQ(server.requests_seen(), before + 1);
  EXPECT_TRUE(client.Send().ok());
}

TEST(CurlClient, UsesANewConnectionIfTheServerClosedAnIdleOne) {
  HttpRig server(Echo);
  TestClient client({.origin = server.origin()});
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(client.Send().ok()) << i;
    server.CloseConnections();
  }
  EXPECT_EQ(server.requests_seen(), 5u);
  EXPECT_EQ(client.client.connections(), 1u);
}

TEST(CurlClient, UsesANewConnectionIfTheServerSaysThatItCloses) {
  HttpRig server([](const RigRequest& request) {
    return RigReply{.body = "ok", .closes = request.method == "POST"};
  });
  TestClient client({.origin = server.origin()});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(client.Send().ok()) << i;
  EXPECT_EQ(client.client.connections(), 0u);
}

TEST(CurlClient, EndsARequestAtItsDeadline) {
  HttpRig server(
      [](const RigRequest& request) { return RigReply{.is_silent = request.method == "POST"}; });
  TestClient client({.origin = server.origin()});
  client.client.WarmUp();
  ASSERT_TRUE(client.Until([&] { return client.client.connections() == 1; }));
  const base::BootTime began = client.loop.Now();
  const absl::Status status = client.Send({.body = "x"}, 30ms).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_GE(client.loop.Now() - began, 30ms);
  EXPECT_LT(client.loop.Now() - began, 5s);
  // On a kept connection, the late answer would be taken for the answer to the next request.
  EXPECT_EQ(client.client.connections(), 0u);
}

TEST(CurlClient, TellsWhetherARequestWasSent) {
  HttpRig server(
      [](const RigRequest& request) { return RigReply{.is_silent = request.method == "POST"}; });
  TestClient client({.origin = server.origin(), .connections_max = 1, .requests_max = 2});
  client.client.WarmUp();
  ASSERT_TRUE(client.Until([&] { return client.client.connections() == 1; }));
  std::vector<absl::StatusCode> codes;
  for (int i = 0; i < 3; ++i) {
    client.client.Send(
        {}, client.loop.Now() + 50ms + i * 1ms,
        [&](const absl::StatusOr<Answer>& answer) { codes.push_back(answer.status().code()); });
  }
  EXPECT_TRUE(client.Until([&] { return codes.size() == 3; }));
  EXPECT_EQ(codes[0], absl::StatusCode::kResourceExhausted) << "beyond requests_max";
  EXPECT_EQ(codes[1], absl::StatusCode::kDeadlineExceeded) << "sent";
  // Its connection was closed with the other request, so it waited for a new one.
  EXPECT_NE(codes[2], absl::StatusCode::kOk);
}

TEST(CurlClient, IsUnavailableWithoutAServer) {
  std::optional<HttpRig> server(std::in_place, Echo);
  const Origin origin = server->origin();
  server.reset();
  TestClient client({.origin = origin});
  const base::BootTime began = client.loop.Now();
  const absl::Status status = client.Send().status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("not sent"));
  EXPECT_LT(client.loop.Now() - began, 5s) << "at once";
  EXPECT_GE(client.refused, 1);
}

TEST(CurlClient, PausesBetweenConnectionsToAServerThatBreaksThem) {
  HttpRig server([](const RigRequest&) { return RigReply{.breaks = true}; });
  TestClient client({.origin = server.origin()});
  int failed = 0;
  // Whoever is refused asks again at once.
  std::function<void()> ask = [&] {
    client.client.Send({}, client.loop.Now() + 10s, [&](const absl::StatusOr<Answer>& answer) {
      EXPECT_TRUE(absl::IsUnavailable(answer.status())) << answer.status();
      ++failed;
      ask();
    });
  };
  ask();
  EXPECT_FALSE(client.loop.RunUntil([] { return false; }, 350ms));
  // At 0, 100, 200 and 300 ms.
  EXPECT_GE(client.client.connects(), 2u);
  EXPECT_LE(client.client.connects(), 4u);
  EXPECT_GE(failed, 1);
}

TEST(CurlClient, BoundsAnAnswer) {
  HttpRig server([](const RigRequest& request) {
    return RigReply{.body = request.method == "GET" ? "" : std::string(2'000, 'x')};
  });
  TestClient client({.origin = server.origin(), .answer_bytes_max = 1'999});
  const absl::Status status = client.Send().status();
  EXPECT_TRUE(absl::IsUnknown(status)) << status;
  TestClient other({.origin = server.origin(), .answer_bytes_max = 2'000});
  EXPECT_EQ(other.Send()->body.size(), 2'000u);
}

TEST(CurlClient, ResolvesNames) {
  HttpRig server(Echo);
  TestClient client({.origin = server.origin("localhost")});
  EXPECT_TRUE(client.Send().ok());
  TestClient lost({.origin = {.host = "no-such-host.invalid", .port = 80}});
  const absl::Status status = lost.Send().status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  TestClient cold({.origin = server.origin("localhost"), .warm_up = false});
  EXPECT_TRUE(cold.Send().ok());
}

TEST(CurlClient, OpensConnectionsByRequestsIfItIsToldSo) {
  HttpRig server(Echo);
  TestClient client({.origin = server.origin(), .warm_up = false});
  EXPECT_EQ(client.Send({.method = "PUT", .target = "/token"})->body, "PUT /token ");
  EXPECT_EQ(client.Send({.method = "GET", .target = "/role"})->body, "GET /role ");
  EXPECT_EQ(server.requests().size(), 2u);
  EXPECT_EQ(server.connections(), 1u);
}

TEST(CurlClient, ChecksTheCertificateOfTheServer) {
  const net::TestCertificate certificate, other;
  HttpRig server(Echo, certificate.certificate_file(), certificate.key_file());
  TestClient client({.origin = server.origin(), .ca_file = certificate.certificate_file()});
  EXPECT_EQ(client.Send()->body, "POST / x");
  EXPECT_EQ(client.Send()->body, "POST / x");
  EXPECT_EQ(server.connections(), 1u);
  TestClient wrong({.origin = server.origin(), .ca_file = other.certificate_file()});
  const absl::Status status = wrong.Send().status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(server.requests_seen(), 2u);
}

TEST(CurlClient, EndsWithRequestsUnderWay) {
  HttpRig server([](const RigRequest&) { return RigReply{.is_silent = true}; });
  bool called = false;
  {
    TestClient client({.origin = server.origin()});
    client.client.Send({}, client.loop.Now() + 10s,
                       [&](const absl::StatusOr<Answer>&) { called = true; });
    EXPECT_TRUE(client.Until([&] { return server.connections() == 1; }));
  }
  EXPECT_FALSE(called);
}

}  // namespace client_test
}  // namespace headgate::client::http
