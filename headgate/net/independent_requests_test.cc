// Independent requests over real sockets: the connection continues reading while some requests
// wait, writes each answer as soon as it is ready, and keeps every bound. Uses the protocol of
// framed_session.h.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "headgate/net/framed_session.h"
#include "headgate/net/server_rig.h"
#include "headgate/net/stream.h"
#include "headgate/net/test_certificate.h"

namespace headgate::net {
namespace independent_requests_test {

using namespace std::chrono_literals;

class CountingMeter final : public RequestMeter {
 public:
  void OnBatch(uint64_t requests, base::Duration elapsed) override {
    batches.emplace_back(requests, elapsed);
  }
  void OnWait(base::Duration elapsed) override { waits.push_back(elapsed); }
  void OnProtocolError() override {}
  std::vector<std::pair<uint64_t, base::Duration>> batches;
  std::vector<base::Duration> waits;
};

enum class Order : uint8_t { kOrdered, kIndependent };

struct FramedProtocol {
  SessionChoice Choose(std::span<const char>, const Peer&, Room) {
    SessionChoice choice{.made = true, .meter = &meter};
    if (order == Order::kOrdered) {
      choice.session = std::make_unique<OrderedFramedSession>(completions);
    } else {
      choice.session = std::make_unique<IndependentFramedSession>(completions);
    }
    return choice;
  }

  Order order;
  Completions completions{};
  CountingMeter meter{};
};

// A server with one loop and, in these tests, one connection.
struct FramedServer : ServerRig<FramedProtocol> {
  explicit FramedServer(Order session_order, const ServerOptions& options = {},
                        const ListenOptions& listen_options = {})
      : ServerRig(options, listen_options, "127.0.0.1:0", session_order) {
    server->Start();
  }
  void Complete(uint64_t request) {
    OnLoop([&] { completions.Complete(request); });
  }
};

const Frame kLater{.id = 1, .kind = 'l', .payload = "later"};
const Frame kNow{.id = 2, .kind = 'n', .payload = "now"};

TEST(IndependentRequests, TheConnectionReadsOnWhileOneWaits) {
  FramedServer server(Order::kIndependent);
  BlockingClient client = server.Connect();
  ASSERT_TRUE(client.Send(kLater.Bytes()).ok());
  ASSERT_TRUE(client.Send(kNow.Bytes()).ok());
  EXPECT_EQ(ReadBytes(client, kNow.Answer().size()), kNow.Answer());
  server.Complete(0);
  EXPECT_EQ(ReadBytes(client, kLater.Answer().size()), kLater.Answer());
  ASSERT_TRUE(client.Send(kNow.Bytes()).ok());
  EXPECT_EQ(ReadBytes(client, kNow.Answer().size()), kNow.Answer());
}

TEST(IndependentRequests, AnOrderedSessionAnswersInOrder) {
  FramedServer server(Order::kOrdered);
  BlockingClient client = server.Connect();
  ASSERT_TRUE(client.Send(kLater.Bytes() + kNow.Bytes()).ok());
  server.Complete(0);
  EXPECT_EQ(ReadBytes(client, kLater.Answer().size() + kNow.Answer().size()),
            kLater.Answer() + kNow.Answer());
}

TEST(IndependentRequests, GiveTheSameAnswersAsOrderedOnesWhateverThePiecesAndTheOrderOfCompletion) {
  const auto seed = ::testing::UnitTest::GetInstance()->random_seed();
  std::mt19937_64 random(static_cast<uint64_t>(seed) + 17);
  for (int round = 0; round < 30; ++round) {
    std::string bytes;
    std::string in_order;
    std::vector<uint64_t> later;
    const uint64_t count = 1 + random() % 40;
    for (uint64_t i = 0; i < count; ++i) {
      const Frame frame{.id = static_cast<uint8_t>(i),
                        .kind = random() % 2 == 0 ? 'l' : 'n',
                        .payload = std::string(random() % 100, static_cast<char>('a' + i % 26))};
      if (frame.kind == 'l') later.push_back(i);
      bytes += frame.Bytes();
      in_order += frame.Answer();
    }
    std::shuffle(later.begin(), later.end(), random);
    for (const Order order : {Order::kOrdered, Order::kIndependent}) {
      FramedServer server(order);
      BlockingClient client = server.Connect();
      size_t completed = 0;
      for (size_t at = 0; at < bytes.size();) {
        const size_t piece = 1 + random() % 60;
        ASSERT_TRUE(client.Send(std::string_view(bytes).substr(at, piece)).ok());
        at += piece;
        if (completed < later.size() && random() % 2 == 0) server.Complete(later[completed++]);
      }
      while (completed < later.size()) server.Complete(later[completed++]);
      const std::string answers = ReadBytes(client, in_order.size());
      if (order == Order::kOrdered) {
        EXPECT_EQ(answers, in_order);
      } else {
        EXPECT_EQ(ParseFramedAnswers(answers), ParseFramedAnswers(in_order))
            << "seed " << seed << ", round " << round;
      }
    }
  }
}

TEST(IndependentRequests, ASessionThatStopsReadingHoldsTheClientBack) {
  FramedServer server(Order::kIndependent);
  BlockingClient client = server.Connect();
  std::string bytes;
  for (size_t i = 0; i < IndependentFramedSession::kWaitingMax; ++i) bytes += kLater.Bytes();
  ASSERT_TRUE(client.Send(bytes + kNow.Bytes()).ok());
  server.Complete(5);
  EXPECT_EQ(ReadBytes(client, kLater.Answer().size() + kNow.Answer().size()),
            kLater.Answer() + kNow.Answer());
}

TEST(IndependentRequests, ARequestThatIsNeverAnsweredEndsTheConnectionHoweverManyOthersAre) {
  FramedServer server(Order::kIndependent, {.request_timeout = 10s});
  BlockingClient client = server.Connect();
  ASSERT_TRUE(client.Send(kLater.Bytes()).ok());
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(client.Send(kNow.Bytes()).ok());
    EXPECT_EQ(ReadBytes(client, kNow.Answer().size()), kNow.Answer());
    server.source.Advance(2s);
  }
  server.source.Advance(2s);
  EXPECT_EQ(ReadBytes(client, 1), "");
  EXPECT_EQ(server.server->counters().request_timeouts, 1u);
}

TEST(IndependentRequests, HalfARequestIsTimedWhileOthersAreAnswered) {
  FramedServer server(Order::kIndependent, {.request_timeout = 10s});
  BlockingClient client = server.Connect();
  ASSERT_TRUE(client.Send(kNow.Bytes() + "\x03").ok());
  EXPECT_EQ(ReadBytes(client, kNow.Answer().size()), kNow.Answer());
  server.source.Advance(11s);
  EXPECT_EQ(ReadBytes(client, 1), "");
  EXPECT_EQ(server.server->counters().request_timeouts, 1u);
}

TEST(IndependentRequests, AClientThatHasFinishedSendingGetsWhatItWaitsFor) {
  FramedServer server(Order::kIndependent);
  BlockingClient client = server.Connect();
  ASSERT_TRUE(client.Send(kLater.Bytes() + kNow.Bytes()).ok());
  EXPECT_EQ(ReadBytes(client, kNow.Answer().size()), kNow.Answer());
  client.FinishSending();
  server.OnLoop([] {});
  server.Complete(0);
  EXPECT_EQ(*client.ReadToEnd(1000), kLater.Answer());
}

TEST(IndependentRequests, WaitingRequestsAreAnsweredBeforeTheServerStops) {
  FramedServer server(Order::kIndependent);
  BlockingClient client = server.Connect();
  ASSERT_TRUE(client.Send(kLater.Bytes() + kNow.Bytes()).ok());
  EXPECT_EQ(ReadBytes(client, kNow.Answer().size()), kNow.Answer());
  std::thread drain([&] { EXPECT_TRUE(server.server->Drain(10s)); });
  server.Complete(0);
  EXPECT_EQ(*client.ReadToEnd(1000), kLater.Answer());
  drain.join();
}

TEST(IndependentRequests, AreMeasuredByBatchAndByWait) {
  FramedServer server(Order::kIndependent);
  BlockingClient client = server.Connect();
  ASSERT_TRUE(client.Send(kLater.Bytes() + kNow.Bytes()).ok());
  EXPECT_EQ(ReadBytes(client, kNow.Answer().size()), kNow.Answer());
  server.source.Advance(5ms);
  server.Complete(0);
  EXPECT_EQ(ReadBytes(client, kLater.Answer().size()), kLater.Answer());
  server.OnLoop([&] {
    ASSERT_EQ(server.meter.batches.size(), 2u);
    EXPECT_EQ(server.meter.batches[0].first, 1u);
    EXPECT_EQ(server.meter.waits, std::vector<base::Duration>{5ms});
  });
}

// A stream that requests one answer.
struct Asker final : Stream::Owner {
  void OnConnected() override {
    stream->output() = kLater.Bytes() + kNow.Bytes();
    stream->Flush();
  }
  void OnBytes(std::string_view bytes) override { received += bytes; }
  void OnClosed(const absl::Status& why) override { closed = std::string(why.message()); }
  Stream* stream = nullptr;
  std::string received;
  std::string closed;
};

TEST(IndependentRequests, AreServedOverTlsToo) {
  const TestCertificate certificate;
  FramedServer server(Order::kIndependent, {},
                      {.tls = *TlsServer::Load(
                           {.certificates = {{.certificate_file = certificate.certificate_file(),
                                              .key_file = certificate.key_file()}}})});
  base::SystemClock clock;
  EventLoop loop(clock);
  Asker asker;
  Stream stream(loop, asker,
                {.tls = *TlsContext::Load({.ca_file = certificate.certificate_file()}),
                 .connect_timeout = 10s});
  asker.stream = &stream;
  stream.Connect({.host = "localhost", .port = server.endpoint.port});
  EXPECT_TRUE(loop.RunUntil([&] { return asker.received == kNow.Answer(); }, 10s)) << asker.closed;
  server.Complete(0);
  EXPECT_TRUE(loop.RunUntil([&] { return asker.received == kNow.Answer() + kLater.Answer(); }, 10s))
      << asker.closed;
}

}  // namespace independent_requests_test
}  // namespace headgate::net
