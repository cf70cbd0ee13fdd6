// Servers that believe a proxy about the client of a connection.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "headgate/net/server_rig.h"

namespace headgate::net {
namespace proxied_arrival_test {

using namespace std::chrono_literals;

// Answers each line with the address of the client, "local" if it is on this machine, and the line.
class WhoSession final : public Session {
 public:
  explicit WhoSession(const Peer& peer)
      : begin_(peer.address + (peer.loopback ? " local: " : ": ")) {}
  Progress OnBytes(std::span<const char> input, std::string& output, base::Instant) override {
    const std::string_view text(input.data(), input.size());
    const size_t end = text.rfind('\n');
    if (end == text.npos) return {.mid_request = !text.empty()};
    output += begin_;
    output += text.substr(0, end + 1);
    return {.consumed = end + 1};
  }

 private:
  const std::string begin_;
};

struct WhoProtocol {
  static SessionChoice Choose(std::span<const char> bytes, const Peer& peer, Room room) {
    if (bytes.empty()) return {};
    if (room == Room::kNone) return {.made = true, .refusal = "full\n"};
    return {.made = true, .session = std::make_unique<WhoSession>(peer)};
  }
};
using WhoServer = ServerRig<WhoProtocol>;

ListenOptions TrustingThisMachine() {
  return {.proxies = {.networks = base::IpNetworkSet({*base::ParseIpNetwork("127.0.0.0/8")}),
                      .unix_sockets = true}};
}

constexpr std::string_view kFromSeven = "PROXY TCP4 192.0.2.7 10.0.0.1 40000 8080\r\n";

std::string LineFrom(BlockingClient& client) {
  std::string line;
  while (!line.ends_with('\n')) {
    const auto some = client.ReadSome();
    if (!some.ok() || some->empty()) break;
    line += *some;
  }
  return line;
}

std::string Say(BlockingClient& client, std::string_view bytes) {
  EXPECT_TRUE(client.Send(bytes).ok());
  return LineFrom(client);
}

TEST(ProxiedArrival, IsServedAsItsClient) {
  WhoServer server({}, TrustingThisMachine());
  server.server->Start();
  BlockingClient client = server.Connect();
  EXPECT_EQ(Say(client, std::string(kFromSeven) + "hello\n"), "192.0.2.7:40000: hello\n");
  EXPECT_EQ(Say(client, "again\n"), "192.0.2.7:40000: again\n");
}

TEST(ProxiedArrival, TheHeaderMayComeInPieces) {
  WhoServer server({}, TrustingThisMachine());
  server.server->Start();
  BlockingClient client = server.Connect();
  for (const char byte : kFromSeven) {
    EXPECT_TRUE(client.Send(std::string_view(&byte, 1)).ok());
    server.OnLoop([] {});
  }
  EXPECT_EQ(Say(client, "hello\n"), "192.0.2.7:40000: hello\n");
}

TEST(ProxiedArrival, AClientBehindAProxyIsNeverLocal) {
  WhoServer server({}, TrustingThisMachine());
  server.server->Start();
  BlockingClient local = server.Connect();
  EXPECT_EQ(Say(local, "PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\nhello\n"), "127.0.0.1:1: hello\n");
  BlockingClient unknown = server.Connect();
  EXPECT_THAT(Say(unknown, "PROXY UNKNOWN\r\nhello\n"),
              ::testing::MatchesRegex("127.0.0.1:[0-9]+: hello\n"));
}

TEST(ProxiedArrival, TheProxysOwnCheckIsLocalAsTheProxyIs) {
  WhoServer server({}, TrustingThisMachine());
  server.server->Start();
  const std::string check("\r\n\r\n\0\r\nQUIT\n\x20\0\0\0", 16);
  BlockingClient proxy = server.Connect();
  EXPECT_THAT(Say(proxy, check + "hello\n"),
              ::testing::MatchesRegex("127.0.0.1:[0-9]+ local: hello\n"));
}

TEST(ProxiedArrival, WhoIsNotTrustedNamesNobody) {
  WhoServer server(
      {}, {.proxies = {.networks = base::IpNetworkSet({*base::ParseIpNetwork("10.0.0.0/8")})}});
  server.server->Start();
  BlockingClient client = server.Connect();
  EXPECT_THAT(Say(client, kFromSeven),
              ::testing::MatchesRegex("127.0.0.1:[0-9]+ local: PROXY TCP4 .*\n"));
}

TEST(ProxiedArrival, IsTrustedOverAUnixSocketOnlyIfThatIsStated) {
  const std::string path = ::testing::TempDir() + "/proxied.sock";
  WhoServer server({}, TrustingThisMachine(), "unix:" + path);
  const Endpoint direct = server.Listen("unix:" + path + "2");
  server.server->Start();
  BlockingClient proxied = server.Connect();
  EXPECT_EQ(Say(proxied, std::string(kFromSeven) + "hello\n"), "192.0.2.7:40000: hello\n");
  BlockingClient other = server.Connect(direct);
  EXPECT_EQ(Say(other, "hello\n"), "unix local: hello\n");
}

TEST(ProxiedArrival, ABadHeaderEndsTheConnectionAndIsCounted) {
  WhoServer server({}, TrustingThisMachine());
  server.server->Start();
  BlockingClient client = server.Connect();
  EXPECT_EQ(Say(client, "hello\n"), "");
  EXPECT_EQ(server.server->counters().refused_proxy_header, 1u);
  EXPECT_EQ(server.server->counters().connections_accepted, 0u);
}

TEST(ProxiedArrival, AProxyThatLeavesAtOnceIsNoFault) {
  WhoServer server({}, TrustingThisMachine());
  server.server->Start();
  { const BlockingClient check = server.Connect(); }
  BlockingClient client = server.Connect();
  EXPECT_EQ(Say(client, std::string(kFromSeven) + "hello\n"), "192.0.2.7:40000: hello\n");
  EXPECT_EQ(server.server->counters().refused_proxy_header, 0u);
}

TEST(ProxiedArrival, HasATimeForItsHeader) {
  WhoServer server({.proxy_header_timeout = 3s}, TrustingThisMachine());
  server.server->Start();
  BlockingClient client = server.Connect();
  EXPECT_TRUE(client.Send("PROXY").ok());
  BlockingClient other = server.Connect();
  EXPECT_EQ(Say(other, std::string(kFromSeven) + "hello\n"), "192.0.2.7:40000: hello\n");
  server.source.Advance(3s);
  EXPECT_EQ(LineFrom(client), "") << "closed";
  EXPECT_EQ(server.server->counters().refused_proxy_header, 1u);
  EXPECT_EQ(Say(other, "still\n"), "192.0.2.7:40000: still\n");
}

TEST(ProxiedArrival, TheOldestThatWaitsForItsHeaderMakesWay) {
  WhoServer server({.proxy_headers_awaited_max = 2}, TrustingThisMachine());
  server.server->Start();
  std::vector<BlockingClient> silent;
  for (int i = 0; i < 3; ++i) silent.push_back(server.Connect());
  EXPECT_EQ(LineFrom(silent[0]), "") << "closed";
  EXPECT_EQ(Say(silent[1], std::string(kFromSeven) + "hello\n"), "192.0.2.7:40000: hello\n");
  EXPECT_EQ(Say(silent[2], std::string(kFromSeven) + "hello\n"), "192.0.2.7:40000: hello\n");
  EXPECT_EQ(server.server->counters().refused_proxy_header, 1u);
}

TEST(ProxiedArrival, ThePlacesOfAnAddressAreThoseOfTheClient) {
  WhoServer server({.connections_max = 10, .connections_per_address_max = 1},
                   TrustingThisMachine());
  server.server->Start();
  BlockingClient seven = server.Connect();
  EXPECT_EQ(Say(seven, std::string(kFromSeven) + "a\n"), "192.0.2.7:40000: a\n");
  BlockingClient eight = server.Connect();
  EXPECT_EQ(Say(eight, "PROXY TCP4 192.0.2.8 10.0.0.1 1 2\r\nb\n"), "192.0.2.8:1: b\n");
  BlockingClient seven_again = server.Connect();
  EXPECT_EQ(Say(seven_again, std::string(kFromSeven) + "c\n"), "full\n");
}

TEST(ProxiedArrival, OneThatWaitsDoesNotDelayADrain) {
  WhoServer server({}, TrustingThisMachine());
  server.server->Start();
  BlockingClient client = server.Connect();
  EXPECT_TRUE(client.Send("PROXY TCP4").ok());
  EXPECT_TRUE(server.server->Drain(10s));
  EXPECT_EQ(LineFrom(client), "") << "closed";
}

}  // namespace proxied_arrival_test
}  // namespace headgate::net
