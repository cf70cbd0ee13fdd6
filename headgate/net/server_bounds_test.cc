// The behavior of a server at its bounds: reserved places of an address, refusals in the client's
// protocol, and the budget of all buffers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "headgate/net/server_rig.h"

namespace headgate::net {
namespace server_bounds_test {

using namespace std::chrono_literals;
using ::testing::StartsWith;

// Echoes each line. Keeps an incomplete line, as a session keeps the body of a request. Before a
// line, the sign # means nothing.
class KeepingSession final : public Session {
 public:
  Progress OnBytes(std::span<const char> input, std::string& output, base::Instant) override {
    kept_.append(input.data(), input.size());
    while (kept_.starts_with('#')) kept_.erase(0, 1);
    const size_t end = kept_.rfind('\n');
    if (end == std::string::npos) return {.consumed = input.size(), .mid_request = !kept_.empty()};
    output.append(kept_, 0, end + 1);
    kept_.erase(0, end + 1);
    return {.consumed = input.size(), .answered = 1, .mid_request = !kept_.empty()};
  }
  void OnGivenUp(GivenUp why, std::string& output, base::Instant) override {
    output += why == GivenUp::kNoBuffers ? "no buffers\n" : "too slow\n";
  }
  size_t BufferedBytes() const override { return kept_.size(); }

 private:
  std::string kept_;
};

struct KeepingProtocol {
  // A refused client is answered in its own protocol: in capitals if it writes capitals.
  static SessionChoice Choose(std::span<const char> bytes, const Peer&, Room room) {
    if (bytes.empty()) return {};
    if (room == Room::kForIt) return {.made = true, .session = std::make_unique<KeepingSession>()};
    return {.made = true, .refusal = bytes[0] == 'P' ? "FULL HOUSE\n" : "full house\n"};
  }
};
using BoundedServer = ServerRig<KeepingProtocol>;

std::string Ask(BlockingClient& client, std::string_view line) {
  EXPECT_TRUE(client.Send(line).ok());
  return ReadBytes(client, line.size());
}

TEST(ServerBounds, AnAddressWithPlacesOfItsOwnIsNotShutOutByTheOthers) {
  BoundedServer server({.connections_max = 2, .connections_per_address_max = 2});
  const Endpoint reserved = server.Listen("127.0.0.1:0", {.reserved_connections_max = 1});
  server.server->Start();
  BlockingClient first = server.Connect();
  BlockingClient second = server.Connect();
  EXPECT_EQ(Ask(first, "PING\n"), "PING\n");
  EXPECT_EQ(Ask(second, "PING\n"), "PING\n");
  BlockingClient admin = server.Connect(reserved);
  EXPECT_EQ(Ask(admin, "PING\n"), "PING\n");
  BlockingClient another = server.Connect(reserved);
  EXPECT_EQ(Ask(another, "PING 1234567890 1234567890 1234567890\n"), "FULL HOUSE\n");
  EXPECT_EQ(server.server->counters().refused_reserved_limit, 1u);
  EXPECT_EQ(server.server->counters().refused_total_limit, 0u);
  EXPECT_TRUE(server.server->Drain(10s));
}

TEST(ServerBounds, OneAddressGetsThreeQuartersOfTheReservedPlaces) {
  BoundedServer server({});
  const ListenOptions four{
      .reserved_connections_max = 4,
      .proxies = {.networks = base::IpNetworkSet({*base::ParseIpNetwork("127.0.0.0/8")})}};
  const Endpoint reserved = server.Listen("127.0.0.1:0", four);
  server.server->Start();
  std::vector<BlockingClient> clients;
  const auto answer_from = [&](std::string_view address) {
    clients.push_back(server.Connect(reserved));
    const auto proxy = "PROXY TCP4 " + std::string(address) + " 192.0.2.1 40000 8081\r\n";
    EXPECT_TRUE(clients.back().Send(proxy + "PING 78901\n").ok());
    return ReadBytes(clients.back(), 11);
  };
  for (int i = 0; i < 3; ++i) EXPECT_EQ(answer_from("192.0.2.7"), "PING 78901\n");
  EXPECT_EQ(answer_from("192.0.2.7"), "FULL HOUSE\n");
  EXPECT_EQ(answer_from("192.0.2.8"), "PING 78901\n");
  EXPECT_EQ(answer_from("192.0.2.9"), "FULL HOUSE\n");
  EXPECT_EQ(server.server->counters().refused_reserved_limit, 2u);
}

TEST(ServerBounds, AReservedPlaceIsOnlyKeptWithARequest) {
  BoundedServer server({.request_timeout = 10s, .idle_timeout = 60s});
  const Endpoint reserved = server.Listen("127.0.0.1:0", {.reserved_connections_max = 4});
  server.server->Start();
  BlockingClient silent = server.Connect(reserved);
  BlockingClient quiet = server.Connect(reserved);
  BlockingClient honest = server.Connect(reserved);
  // Elsewhere a silent connection stays.
  BlockingClient other = server.Connect();
  // These bytes are a part of no request.
  ASSERT_TRUE(quiet.Send("#").ok());
  EXPECT_EQ(Ask(honest, "PING\n"), "PING\n");
  while (server.server->counters().connections_open < 4) std::this_thread::yield();
  while (server.server->counters().bytes_read < 6) std::this_thread::yield();
  server.source.Advance(9s);
  EXPECT_EQ(Ask(honest, "PING\n"), "PING\n");
  EXPECT_EQ(server.server->counters().request_timeouts, 0u);
  server.source.Advance(1s);
  EXPECT_EQ(*silent.ReadToEnd(1000), "");
  EXPECT_EQ(*quiet.ReadToEnd(1000), "");
  EXPECT_EQ(server.server->counters().request_timeouts, 2u);
  EXPECT_EQ(Ask(other, "PING\n"), "PING\n");
  server.source.Advance(49s);
  EXPECT_EQ(Ask(honest, "PING\n"), "PING\n");
}

TEST(ServerBounds, OneAddressGetsAQuarterOfThePlacesUnlessToldOtherwise) {
  BoundedServer server({.connections_max = 8});
  server.server->Start();
  BlockingClient first = server.Connect();
  BlockingClient second = server.Connect();
  EXPECT_EQ(Ask(first, "PING\n"), "PING\n");
  EXPECT_EQ(Ask(second, "PING\n"), "PING\n");
  BlockingClient third = server.Connect();
  ASSERT_TRUE(third.Send("PING\n").ok());
  EXPECT_EQ(*third.ReadToEnd(1000), "FULL HOUSE\n");
  EXPECT_EQ(server.server->counters().refused_address_limit, 1u);
}

TEST(ServerBounds, ARefusedClientHearsWhyInItsOwnProtocol) {
  BoundedServer server({.connections_max = 1});
  server.server->Start();
  BlockingClient open = server.Connect();
  EXPECT_EQ(Ask(open, "PING\n"), "PING\n");
  BlockingClient small = server.Connect();
  ASSERT_TRUE(small.Send("ping\n").ok());
  EXPECT_EQ(*small.ReadToEnd(1000), "full house\n");
  BlockingClient large = server.Connect();
  ASSERT_TRUE(large.Send("PING\n").ok());
  EXPECT_EQ(*large.ReadToEnd(1000), "FULL HOUSE\n");
}

TEST(ServerBounds, ARefusedClientThatSaysNothingIsLetGoAndIsNoIdleConnection) {
  BoundedServer server({.connections_max = 1, .refusal_timeout = 1s});
  server.server->Start();
  BlockingClient open = server.Connect();
  EXPECT_EQ(Ask(open, "PING\n"), "PING\n");
  BlockingClient silent = server.Connect();
  while (server.server->counters().refused_total_limit == 0) std::this_thread::yield();
  // This answer shows that the loop has created its connection.
  EXPECT_EQ(Ask(open, "PING\n"), "PING\n");
  server.source.Advance(1s);
  EXPECT_EQ(*silent.ReadToEnd(1000), "");
  EXPECT_EQ(server.server->counters().idle_timeouts, 0u);
  EXPECT_EQ(server.server->counters().connections_open, 1u);
}

TEST(ServerBounds, TheOldestSilentRefusedClientMakesWay) {
  BoundedServer server({.connections_max = 1, .refusals_max = 2});
  server.server->Start();
  BlockingClient open = server.Connect();
  EXPECT_EQ(Ask(open, "PING\n"), "PING\n");
  std::vector<BlockingClient> silent;
  for (int i = 0; i < 5; ++i) silent.push_back(server.Connect());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(*silent[static_cast<size_t>(i)].ReadToEnd(1000), "");
  ASSERT_TRUE(silent[4].Send("PING\n").ok());
  EXPECT_EQ(*silent[4].ReadToEnd(1000), "FULL HOUSE\n");
}

TEST(ServerBounds, BeyondTheBudgetOfAllBuffersTheLargestAreGivenUpAndTheOthersServed) {
  constexpr size_t kBudget = size_t{1} << 20;
  for (const uint32_t threads : {1u, 3u}) {
    BoundedServer server({.threads = threads, .buffer_bytes_max = kBudget});
    server.server->Start();
    BlockingClient small = server.Connect();
    EXPECT_EQ(Ask(small, "PING\n"), "PING\n");
    ASSERT_TRUE(small.Send("ECHO " + std::string(20'000, 's')).ok());
    std::vector<BlockingClient> large;
    for (int i = 0; i < 30; ++i) {
      large.push_back(server.Connect());
      ASSERT_TRUE(large.back().Send("ECHO " + std::string(100'000, 'x')).ok());
    }
    // Thirty connections hold at least 3 MB together.
    while (server.server->counters().buffers_shed < 19) std::this_thread::yield();
    EXPECT_EQ(Ask(small, "\n").substr(0, 6), "ECHO s");
    EXPECT_LE(server.server->counters().buffer_bytes,
              kBudget + threads * (size_t{64} << 10) + (size_t{256} << 10));
    EXPECT_LT(server.server->counters().buffers_shed, 30u);
    large.clear();
    while (server.server->counters().connections_open > 1) std::this_thread::yield();
    EXPECT_LE(server.server->counters().buffer_bytes, size_t{64} << 10);
  }
}

// Echoes its input, which takes memory elsewhere: the first session in `of_first`, the others in
// `of_others`. The memory may be released at any time.
class HoldingSession final : public Session {
 public:
  explicit HoldingSession(const std::atomic<size_t>& held) : held_(held) {}
  Progress OnBytes(std::span<const char> input, std::string& output, base::Instant) override {
    output.append(input.data(), input.size());
    return {.consumed = input.size()};
  }
  size_t BufferedBytes() const override { return held_; }

 private:
  const std::atomic<size_t>& held_;
};

struct HoldingProtocol {
  static inline std::atomic<size_t> of_first = 0;
  static inline std::atomic<size_t> of_others = 0;
  static SessionChoice Choose(std::span<const char> bytes, const Peer&, Room) {
    if (bytes.empty()) return {};
    return {.made = true,
            .session = std::make_unique<HoldingSession>(bytes[0] == '1' ? of_first : of_others)};
  }
};

TEST(ServerBounds, NobodyIsGivenUpForMemoryThatWasReleased) {
  ServerRig<HoldingProtocol> server({.threads = 1, .buffer_bytes_max = size_t{1} << 20});
  server.server->Start();
  HoldingProtocol::of_first = HoldingProtocol::of_others = 600'000;
  BlockingClient first = server.Connect();
  EXPECT_EQ(Ask(first, "1\n"), "1\n");
  while (server.server->counters().buffer_bytes < 600'000) std::this_thread::yield();
  HoldingProtocol::of_first = 0;
  BlockingClient second = server.Connect();
  EXPECT_EQ(Ask(second, "2\n"), "2\n");
  EXPECT_EQ(Ask(first, "1\n"), "1\n");
  EXPECT_EQ(Ask(second, "2\n"), "2\n");
  EXPECT_EQ(server.server->counters().buffers_shed, 0u);
  HoldingProtocol::of_first = 600'000;
  ASSERT_TRUE(first.Send("1\n").ok());
  while (server.server->counters().buffers_shed == 0) std::this_thread::yield();
}

TEST(ServerBounds, WhoeverIsGivenUpHearsWhy) {
  BoundedServer server({.buffer_bytes_max = size_t{1} << 20});
  server.server->Start();
  BlockingClient first = server.Connect();
  ASSERT_TRUE(first.Send("ECHO " + std::string(600'000, 'x')).ok());
  while (server.server->counters().buffer_bytes < 600'000) std::this_thread::yield();
  // If two connections have the same size, the slower one is closed.
  server.source.Advance(5s);
  BlockingClient second = server.Connect();
  ASSERT_TRUE(second.Send("ECHO " + std::string(600'000, 'y')).ok());
  EXPECT_EQ(*first.ReadToEnd(1000), "no buffers\n");
  EXPECT_THAT(Ask(second, "\n"), StartsWith("ECHO y"));
  EXPECT_EQ(server.server->counters().buffers_shed, 1u);
}

}  // namespace server_bounds_test
}  // namespace headgate::net
