// Clients that close while their command waits for the shared store, over real sockets: the permit
// of HG.ACQUIRE goes back, and other commands are answered.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <thread>

#include "headgate/access/access_rig.h"
#include "headgate/front/resp/session.h"
#include "headgate/limiter/shared/shared_decider.h"
#include "headgate/net/server_rig.h"
#include "headgate/rule/read/load.h"
#include "headgate/store/memory.h"
#include "headgate/testing/manual_shared_store.h"

namespace headgate::front::resp {
namespace permit_connection_test {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::string_view kAcquire = "HG.ACQUIRE d ENTRIES 1 job ann\r\n";
constexpr std::string_view kCheck = "HG.CHECK d ENTRIES 1 user ann\r\n";
constexpr std::string_view kPermits = "hg:{p|d|job=ann}";

// Everything belongs to the server's only loop.
struct Front {
  Front() {
    const rule::read::RuleFile file{
        .name = "f.yaml",
        .text =
            "domain: d\n"
            "descriptors:\n"
            "- key: user\n"
            "  rate_limit: {period: 10s, requests_per_unit: 9}\n"
            "- key: job\n"
            "  rate_limit: {algorithm: concurrency, requests: 9, ttl: 24h}\n"};
    EXPECT_TRUE(limiter.OnRules(rule::read::LoadRules({&file, 1}).rules, now).ok());
  }

  net::SessionChoice Choose(std::span<const char> /*bytes*/, const net::Peer& peer,
                            net::Room /*room*/) {
    return {.made = true, .session = std::make_unique<RespSession>(context, peer)};
  }

  base::Instant now = base::Instant::FromNanos(1'790'000'000'000'000'000);
  store::MemoryStore store{store::MemoryOptions{.max_buckets = 4096}};
  testing::ManualSharedStore shared{store, now};
  access::Access access{access::AccessOptions{}};
  limiter::shared::SharedDecider decider{shared, store, {}};
  limiter::Limiter limiter{store, nullptr};
  limiter::Checker checker{limiter, 0, decider, {}};
  Context context{{.checker = checker, .access = access, .version = "1"}};
};

// How a client ends.
enum class End : uint8_t { kCloses, kFinishesSending, kResets };

struct PermitConnection : ::testing::TestWithParam<End> {
  void SetUp() override { rig.server->Start(); }

  // Sends the commands and ends the connection once the store has been asked for `asked` decisions.
  void SendAndEnd(std::string_view commands, size_t asked) {
    client = rig.Connect();
    ASSERT_TRUE(client->Send(commands).ok());
    ASSERT_TRUE(Until([&] { return rig.shared.waiting() == asked; }));
    if (GetParam() == End::kFinishesSending) return client->FinishSending();
    if (GetParam() == End::kResets) {
      const linger at_once{.l_onoff = 1, .l_linger = 0};
      ::setsockopt(client->fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    }
    client.reset();
  }
  // Waits until the server's loop has seen what was sent before.
  void Settle() {
    net::BlockingClient other = rig.Connect();
    ASSERT_TRUE(other.Send("PING\r\n").ok());
    EXPECT_EQ(net::ReadBytes(other, 7), "+PONG\r\n");
  }
  // `done` runs on the loop's thread.
  bool Until(const std::function<bool()>& done) {
    const base::SystemClock clock;
    const base::BootTime begin = clock.BootNow();
    bool yes = false;
    while (!yes && clock.BootNow() < begin + net::ServerRig<Front>::kPatience) {
      rig.OnLoop([&] { yes = done(); });
      if (!yes) std::this_thread::yield();
    }
    return yes;
  }
  bool IsClosed() {
    return Until([&] { return rig.server->counters().connections_open == 0; });
  }
  void AnswerAll() {
    rig.OnLoop([&] { rig.shared.AnswerAll(); });
  }
  uint32_t held() {
    uint32_t count = 0;
    rig.OnLoop([&] { count = rig.shared.PermitsIn(std::string(kPermits)); });
    return count;
  }

  net::ServerRig<Front> rig{net::ServerOptions{.threads = 1}};
  std::optional<net::BlockingClient> client;
};

TEST_P(PermitConnection, TheEndClosesTheConnectionAndThePermitGoesBack) {
  SendAndEnd(kAcquire, 1);
  EXPECT_TRUE(IsClosed()) << "although the store has not answered";
  AnswerAll();
  AnswerAll();  // the release
  EXPECT_EQ(held(), 0u);
}

TEST_P(PermitConnection, ThePermitsOfAPipelineGoBack) {
  SendAndEnd(std::string(kAcquire) + std::string(kAcquire) + std::string(kCheck), 2);
  EXPECT_TRUE(IsClosed());
  AnswerAll();
  AnswerAll();
  EXPECT_EQ(held(), 0u);
}

TEST_P(PermitConnection, ACommandBeforeItIsAnsweredAndItsOwnPermitGoesBack) {
  SendAndEnd(std::string(kCheck) + std::string(kAcquire), 1);
  Settle();
  AnswerAll();
  if (GetParam() == End::kFinishesSending) {
    EXPECT_THAT(net::ReadBytes(*client, size_t{64} << 10), StartsWith("*4\r\n$7\r\nallowed\r\n:1"));
  }
  EXPECT_TRUE(IsClosed());
  AnswerAll();
  AnswerAll();
  EXPECT_EQ(held(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Ends, PermitConnection,
                         ::testing::Values(End::kCloses, End::kFinishesSending, End::kResets));

// A client such as `printf … | nc -N` still reads.
using HalfClosed = PermitConnection;

TEST_P(HalfClosed, OtherCommandsAreAnswered) {
  SendAndEnd(std::string(kCheck) + "PING\r\n", 1);
  Settle();
  AnswerAll();
  EXPECT_THAT(net::ReadBytes(*client, size_t{64} << 10), EndsWith("+PONG\r\n"));
  EXPECT_TRUE(IsClosed());
}

TEST_P(HalfClosed, APermitWhoseAnswerWasWrittenStays) {
  client = rig.Connect();
  ASSERT_TRUE(client->Send(kAcquire).ok());
  ASSERT_TRUE(Until([&] { return rig.shared.waiting() == 1; }));
  AnswerAll();
  EXPECT_THAT(net::ReadBytes(*client, 10), StartsWith("*12\r\n"));
  ASSERT_TRUE(client->Send(kCheck).ok());
  ASSERT_TRUE(Until([&] { return rig.shared.waiting() == 1; }));
  client->FinishSending();
  Settle();
  AnswerAll();
  EXPECT_THAT(net::ReadBytes(*client, size_t{64} << 10), HasSubstr("*4\r\n$7\r\nallowed\r\n:1"));
  EXPECT_TRUE(IsClosed());
  EXPECT_EQ(held(), 1u);
}

INSTANTIATE_TEST_SUITE_P(Ends, HalfClosed, ::testing::Values(End::kFinishesSending));

}  // namespace permit_connection_test
}  // namespace headgate::front::resp
