// A client's and a server's session talk to each other: random exchanges arrive as they were sent,
// however the bytes are split and whoever is slow, and nobody buffers more than agreed. A failure
// prints its seed.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/random.h"
#include "headgate/http/http1/client_dialogue.h"
#include "headgate/http/http1/server_dialogue.h"

namespace headgate::http::http1 {
namespace round_trip_test {

using Kind = BodyLength::Kind;

constexpr size_t kReadBytesMax = 16 * 1024;

// One direction of an exchange.
struct Message {
  BodyLength length{};
  std::string body{};
  Fields trailers{};
  size_t sent = 0;
  bool head_sent = false;
  bool ended = false;
};

Message RandomMessage(base::Random& random) {
  Message message;
  message.length.kind = static_cast<Kind>(random.Below(3));
  if (message.length.kind == Kind::kNone) return message;
  const size_t size = random.Below(4) == 0 ? random.Below(4 * kWindowBytes) : random.Below(200);
  for (size_t i = 0; i < size; ++i)
    message.body += "abcdefghijklmnopqrstuvwxyz\r\n0"[random.Below(29)];
  if (message.length.kind == Kind::kSized) message.length.bytes = size;
  if (message.length.kind == Kind::kUnsized && random.Below(2) == 0)
    message.trailers.Add("X-Sum", std::to_string(size));
  return message;
}

// Sends the next piece of a message whose head was sent, unless the other end is slow.
template <typename Exchange>
void SendPiece(Message& message, Exchange& exchange, base::Random& random) {
  if (message.ended || exchange.unsent_bytes() >= kWindowBytes) return;
  const size_t left = message.body.size() - message.sent;
  if (left == 0) {
    message.ended = true;
    return exchange.SendEnd(message.trailers);
  }
  const size_t size = 1 + random.Below(std::min<size_t>(left, 10'000));
  message.sent += size;  // first: the exchange may be over afterwards
  exchange.SendData(std::string_view(message.body).substr(message.sent - size, size));
}

// Exchanges on one connection.
class Connection {
 public:
  explicit Connection(base::Random& random) : random_(random) {
    application_.consumes = false;
    application_.on_end = nullptr;
    server_.SetWaker([] {});
  }

  // Returns false if the connection cannot be used again.
  bool Exchange() {
    const size_t number = application_.requests.size();
    Message request = RandomMessage(random_);
    Message answer = RandomMessage(random_);
    RequestHead head = ClientDialogue::Get();
    head.method = request.length.kind == Kind::kNone ? "GET" : "POST";
    head.target = "/" + std::to_string(number);
    head.fields.Add("A", std::to_string(number));
    head.body = request.length;
    head.accepts_trailers = random_.Below(2) == 0;
    ResponseHead answer_head{.status = 200 + static_cast<int>(random_.Below(2)),
                             .body = answer.length};
    response_ = {};
    exchange_ = &client_.Begin(head, response_, kNow);
    request_ = &request;
    int informational = static_cast<int>(random_.Below(3));
    Received* received = nullptr;
    while (!(response_.ended && !received->alive) && !response_.failure) {
      if (application_.requests.size() > number) received = application_.requests.back().get();
      switch (random_.Below(6)) {
        case 0:
          if (!response_.ended) SendPiece(request, *exchange_, random_);
          break;
        case 1:
          if (received != nullptr && received->alive)
            Answer(*received, informational, answer_head, answer);
          break;
        case 2:
          if (received != nullptr && received->alive && received->unconsumed > 0)
            received->Consume(1 + random_.Below(received->unconsumed));
          break;
        case 3:
          if (!response_.ended && response_.unconsumed > 0) ConsumeResponse();
          break;
        case 4:
          Upwards();
          break;
        case 5:
          Downwards();
          break;
      }
    }
    Judge(head, request, answer_head, answer);
    return !client_.finished();
  }

 private:
  void Answer(Received& received, int& informational, const ResponseHead& head, Message& answer) {
    if (answer.head_sent) return SendPiece(answer, *received.exchange, random_);
    if (informational > 0) {
      --informational;
      return received.exchange->SendInformational({.status = 103});
    }
    // An early answer is rare.
    if (!received.ended && random_.Below(50) != 0) return;
    answer.head_sent = true;
    received.exchange->SendHead(head);
  }

  void ConsumeResponse() {
    const size_t bytes = 1 + random_.Below(response_.unconsumed);
    response_.unconsumed -= bytes;
    exchange_->Consumed(bytes);
  }

  // Some bytes reach the server.
  void Upwards() {
    upwards_.append(client_.output());
    client_.output().clear();
    const bool reads = !progress_.stop_reading;
    const size_t size = reads ? random_.Below(std::min(upwards_.size(), kReadBytesMax) + 1) : 0;
    rest_.append(upwards_, 0, size);
    upwards_.erase(0, size);
    client_.OnUnsent(upwards_.size(), kNow);
    if (progress_.close) return;
    EXPECT_LE(rest_.size(), kReadBytesMax + kResponseBounds.head_bytes_max);
    std::string output;
    progress_ = server_.OnBytes(rest_, output, kNow);
    EXPECT_FALSE(progress_.protocol_error);
    rest_.erase(0, progress_.consumed);
    downwards_.append(output);
    server_.OnUnsent(downwards_.size(), kNow);
    EXPECT_LE(downwards_.size(), kWindowBytes + 11'000);
  }

  // Some bytes reach the client.
  void Downwards() {
    if (!client_.wants_input()) return;
    const size_t size = random_.Below(std::min(downwards_.size(), kReadBytesMax) + 1);
    const std::string piece = downwards_.substr(0, size);
    downwards_.erase(0, size);
    server_.OnUnsent(downwards_.size(), kNow);
    client_.OnBytes(piece, kNow);
    EXPECT_LE(response_.unconsumed, kWindowBytes + kReadBytesMax);
    if (downwards_.empty() && progress_.close && !response_.ended) client_.OnInputEnd(kNow);
  }

  void Judge(const RequestHead& head, const Message& request, const ResponseHead& answer_head,
             const Message& answer) {
    ASSERT_FALSE(response_.failure) << response_.detail;
    const Received& received = *application_.requests.back();
    EXPECT_EQ(received.head.target, head.target);
    EXPECT_EQ(received.head.fields, head.fields);
    EXPECT_EQ(received.head.body, head.body);
    if (!received.ended) {  // an early answer
      EXPECT_TRUE(received.aborted);
      EXPECT_TRUE(request.body.starts_with(received.body));
      EXPECT_TRUE(client_.finished());
    } else {
      EXPECT_EQ(received.body, request.body);
      EXPECT_EQ(received.trailers, request.trailers);
    }
    EXPECT_EQ(response_.head->status, answer_head.status);
    const BodyLength none{.kind = Kind::kSized};
    EXPECT_EQ(response_.head->body, answer.length.kind == Kind::kNone ? none : answer.length);
    EXPECT_EQ(response_.body, answer.body);
    EXPECT_EQ(response_.trailers, head.accepts_trailers ? answer.trailers : Fields());
  }

  base::Random& random_;
  const ServerOptions options_;
  TestApplication application_;
  ServerSession server_{application_, options_, net::Peer{}};
  ClientSession client_;
  net::Session::Progress progress_;
  std::string rest_;     // of the server's input
  std::string upwards_;  // on the way
  std::string downwards_;
  TestResponse response_;
  ClientExchange* exchange_ = nullptr;
  Message* request_ = nullptr;
};

TEST(Http1RoundTrip, EverythingArrivesAsItWasSent) {
  size_t exchanges = 0;
  size_t reused = 0;
  for (uint64_t seed = 1; seed <= 15; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    base::Random random(seed);
    Connection connection(random);
    for (int i = 0; i < 6; ++i) {
      ++exchanges;
      if (!connection.Exchange() || HasFailure()) break;
      ++reused;
    }
    ASSERT_FALSE(HasFailure());
  }
  // Most connections are used again, and some are not.
  EXPECT_GT(reused, exchanges / 2);
  EXPECT_LT(reused, exchanges);
}

// ---- Pipelines

// Appends a request with this number and returns its body.
std::string AppendRequest(size_t number, base::Random& random, std::string& pipeline) {
  RequestHead head = ClientDialogue::Get();
  head.target = "/" + std::to_string(number);
  const Message message = RandomMessage(random);
  head.body = message.length;
  BodyWriter writer;
  WriteRequestHead(head, writer, pipeline);
  writer.Write(message.body, pipeline);
  EXPECT_TRUE(writer.End(&message.trailers, pipeline));
  return message.body;
}

TEST(Http1Pipeline, IsAnsweredInOrderHoweverItIsSplit) {
  for (uint64_t seed = 1; seed <= 15; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    base::Random random(seed);
    ServerDialogue d;
    d.application.consumes = false;
    d.application.on_end = nullptr;
    constexpr size_t kRequests = 8;
    std::string pipeline;
    std::vector<std::string> bodies;
    for (size_t i = 0; i < kRequests; ++i) bodies.push_back(AppendRequest(i, random, pipeline));

    std::string output;
    std::string expected;
    for (int steps = 0; d.answered < kRequests; ++steps) {
      ASSERT_LT(steps, 100'000);
      Received* const received =
          d.application.requests.empty() ? nullptr : d.application.requests.back().get();
      if (random.Below(2) == 0 && !d.progress.stop_reading) {
        const size_t size = random.Below(std::min(pipeline.size(), kReadBytesMax) + 1);
        output += d.Say(pipeline.substr(0, size));
        pipeline.erase(0, size);
      } else if (received != nullptr && received->alive && received->unconsumed > 0) {
        received->Consume(1 + random.Below(received->unconsumed));
        output += d.Run();
      } else if (received != nullptr && received->alive && received->ended) {
        const std::string number = std::to_string(d.application.requests.size() - 1);
        received->Answer(number);
        output += d.Run();
        expected += "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n" + number;
      }
    }
    EXPECT_EQ(output, expected);
    ASSERT_EQ(d.application.requests.size(), kRequests);
    for (size_t i = 0; i < kRequests; ++i) {
      EXPECT_EQ(d.application.requests[i]->head.target, "/" + std::to_string(i));
      EXPECT_EQ(d.application.requests[i]->body, bodies[i]);
    }
  }
}

}  // namespace round_trip_test
}  // namespace headgate::http::http1
