// The contract of exchange.h, between the server and the client of this folder.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "headgate/http/http2/test_pair.h"

namespace headgate::http::http2 {
namespace exchange_test {

TEST(Exchange, ARequestWithoutABodyIsAnswered) {
  TestPair pair;
  RequestHead head = MakeGet("/x?y=1");
  head.fields.Add("X-Custom", "a");
  head.accepts_trailers = true;
  TestResponse& response = pair.Ask(head);
  ASSERT_EQ(pair.application.requests.size(), 1u);
  TestRequest& request = pair.application.last();
  EXPECT_EQ(request.head.version, Version::kHttp2);
  EXPECT_EQ(request.head.method, "GET");
  EXPECT_EQ(request.head.target, "/x?y=1");
  EXPECT_EQ(request.head.scheme, "http");
  EXPECT_EQ(request.head.authority, "a.example");
  EXPECT_EQ(request.head.fields.size(), 1u);
  EXPECT_EQ(request.head.fields.Find("x-custom"), "a");
  EXPECT_EQ(request.head.body, BodyLength{});
  EXPECT_TRUE(request.head.accepts_trailers);
  EXPECT_TRUE(request.ended);
  EXPECT_TRUE(pair.progress.streaming);

  ResponseHead answer = MakeResponse(200, Sized(5));
  answer.fields.Add("Server", "b");
  request.exchange->SendHead(answer);
  EXPECT_TRUE(pair.server_woken);
  request.exchange->SendData("hello");
  request.exchange->SendEnd({});
  pair.Run();
  EXPECT_EQ(Summary(*response.head), "200 sized 5 server=b");
  EXPECT_EQ(response.body, "hello");
  EXPECT_TRUE(response.ended);
  EXPECT_EQ(request.exchange, nullptr) << "both directions have ended";
  EXPECT_FALSE(request.aborted);
  EXPECT_FALSE(pair.progress.streaming);
  EXPECT_EQ(pair.answered, 1u);
  EXPECT_EQ(pair.client.open_exchanges(), 0u);
  EXPECT_EQ(pair.client.free_places(), 100u);
}

TEST(Exchange, TheApplicationMayAnswerWithinOnRequest) {
  TestPair pair;
  pair.application.on_request = [](TestRequest& request) {
    request.exchange->SendHead(MakeResponse(404));
    request.exchange->SendEnd({});
  };
  TestResponse& response = pair.Ask(MakeGet());
  EXPECT_EQ(Summary(*response.head), "404");
  EXPECT_TRUE(response.ended);
  EXPECT_TRUE(pair.application.last().ended);
  EXPECT_FALSE(pair.application.last().aborted);
}

TEST(Exchange, BodiesAndTrailersPassInBothDirections) {
  TestPair pair;
  TestResponse& response = pair.Ask(MakePost(kUnsized));
  TestRequest& request = pair.application.last();
  EXPECT_EQ(request.head.body, kUnsized);
  EXPECT_FALSE(request.ended);
  response.exchange->SendData("one");
  pair.Run();
  EXPECT_EQ(request.body, "one");
  request.exchange->SendHead(MakeResponse(200, kUnsized));
  request.exchange->SendData("1");
  pair.Run();
  EXPECT_EQ(response.body, "1") << "the response begins before the request ends";
  Fields trailers;
  trailers.Add("X-Sum", "3");
  response.exchange->SendData("two");
  response.exchange->SendEnd(trailers);
  pair.Run();
  EXPECT_EQ(request.body, "onetwo");
  EXPECT_TRUE(request.ended);
  EXPECT_EQ(request.trailers.Find("x-sum"), "3");
  trailers.Clear();
  trailers.Add("Grpc-Status", "0");
  request.exchange->SendEnd(trailers);
  pair.Run();
  EXPECT_TRUE(response.ended);
  EXPECT_EQ(response.trailers.Find("grpc-status"), "0");
  EXPECT_EQ(request.exchange, nullptr);
  EXPECT_FALSE(request.aborted);
}

TEST(Exchange, AHeadWithoutABodyEndsTheResponse) {
  TestPair pair;
  TestResponse& response = pair.Ask(MakeGet());
  ResponseHead head = MakeResponse(200);
  head.fields.Add("grpc-status", "7");
  pair.application.last().exchange->SendHead(head);
  pair.Run();
  EXPECT_EQ(Summary(*response.head), "200 grpc-status=7") << "trailers-only stays what it is";
  EXPECT_TRUE(response.ended);
}

TEST(Exchange, InformationalHeadsPrecedeTheFinalOne) {
  TestPair pair;
  RequestHead head = MakePost(Sized(2));
  head.expects_continue = true;
  TestResponse& response = pair.Ask(head);
  TestRequest& request = pair.application.last();
  EXPECT_TRUE(request.head.expects_continue);
  EXPECT_TRUE(request.head.fields.empty());
  request.exchange->SendInformational(MakeResponse(100));
  ResponseHead hints = MakeResponse(103);
  hints.fields.Add("link", "</a>");
  request.exchange->SendInformational(hints);
  pair.Run();
  ASSERT_EQ(response.informationals.size(), 2u);
  EXPECT_EQ(Summary(response.informationals[0]), "100");
  EXPECT_EQ(Summary(response.informationals[1]), "103 link=</a>");
  response.exchange->SendData("ab");
  response.exchange->SendEnd({});
  request.exchange->SendHead(MakeResponse(204));
  request.exchange->SendEnd({});
  pair.Run();
  EXPECT_EQ(Summary(*response.head), "204");
  EXPECT_TRUE(response.ended);
  EXPECT_TRUE(request.ended);
}

struct BodilessCase {
  std::string method;
  ResponseHead head;
  std::string seen;
};

TEST(Exchange, HeadAnd204And304HaveNoBody) {
  const std::vector<BodilessCase> cases = {
      {"HEAD", MakeResponse(200, Sized(10)), "200 sized 10"},
      {"HEAD", MakeResponse(200, kUnsized), "200"},
      {"HEAD", MakeResponse(404), "404"},
      {"GET", MakeResponse(304, Sized(10)), "304 sized 10"},
      {"GET", MakeResponse(304), "304"},
      {"GET", MakeResponse(204), "204"},
      {"GET", MakeResponse(200, Sized(0)), "200 sized 0"},
  };
  for (const BodilessCase& test : cases) {
    SCOPED_TRACE(test.method + " " + Summary(test.head));
    TestPair pair;
    RequestHead head = MakeGet();
    head.method = test.method;
    TestResponse& response = pair.Ask(head);
    pair.application.last().exchange->SendHead(test.head);
    pair.application.last().exchange->SendEnd({});
    pair.Run();
    ASSERT_TRUE(response.head);
    EXPECT_EQ(Summary(*response.head), test.seen);
    EXPECT_TRUE(response.ended);
    EXPECT_EQ(response.body, "");
  }
}

TEST(Exchange, ManyExchangesShareAConnection) {
  TestPair pair;
  for (size_t i = 0; i < 100; ++i) pair.Begin(MakeGet("/" + std::to_string(i)));
  EXPECT_EQ(pair.client.free_places(), 0u);
  EXPECT_FALSE(pair.client.finished());
  pair.Run();
  ASSERT_EQ(pair.application.open(), 100u);
  // In the opposite order.
  for (size_t i = 100; i-- > 0;) {
    TestRequest& request = *pair.application.requests[i];
    request.exchange->SendHead(MakeResponse(200, kUnsized));
    request.exchange->SendData(request.head.target);
    request.exchange->SendEnd({});
    pair.Run();
    EXPECT_EQ(pair.responses[i]->body, "/" + std::to_string(i));
  }
  EXPECT_EQ(pair.client.free_places(), 100u);
  EXPECT_EQ(pair.answered, 100u);
}

// ---- Backpressure

TEST(Exchange, TheServerReadsNoMoreThanItsReceiverConsumes) {
  TestPair pair;
  pair.application.consumes = false;
  TestResponse& response = pair.Ask(MakePost(Sized(300'000)));
  TestRequest& request = pair.application.last();
  response.exchange->SendData(std::string(300'000, 'a'));
  response.exchange->SendEnd({});
  pair.Run();
  EXPECT_EQ(request.unconsumed, kWindowBytes);
  EXPECT_EQ(response.exchange->unsent_bytes(), 300'000 - kWindowBytes);
  EXPECT_EQ(pair.server.BufferedBytes(), kWindowBytes);
  while (request.unconsumed > 0) {
    request.exchange->Consumed(std::exchange(request.unconsumed, 0));
    pair.Run();
  }
  EXPECT_EQ(request.body.size(), 300'000u);
  EXPECT_TRUE(request.ended);
  EXPECT_EQ(pair.server.BufferedBytes(), 0u);
}

TEST(Exchange, TheClientReadsNoMoreThanItsReceiverConsumes) {
  TestPair pair;
  TestResponse& response = pair.Ask(MakeGet());
  response.consumes = false;
  TestRequest& request = pair.application.last();
  request.exchange->SendHead(MakeResponse(200, kUnsized));
  request.exchange->SendData(std::string(300'000, 'a'));
  request.exchange->SendEnd({});
  pair.Run();
  EXPECT_EQ(response.unconsumed, kWindowBytes);
  EXPECT_EQ(request.exchange->unsent_bytes(), 300'000 - kWindowBytes);
  while (!response.ended) {
    response.exchange->Consumed(std::exchange(response.unconsumed, 0));
    pair.Run();
  }
  EXPECT_EQ(response.body.size(), 300'000u);
  EXPECT_TRUE(response.ended);
}

TEST(Exchange, ASenderIsToldOnceThereIsRoom) {
  TestPair pair;
  pair.application.consumes = false;
  TestResponse& response = pair.Ask(MakePost(kUnsized));
  TestRequest& request = pair.application.last();
  response.exchange->SendData(std::string(kWindowBytes, 'a'));
  EXPECT_EQ(response.exchange->unsent_bytes(), kWindowBytes);
  pair.Run();
  EXPECT_EQ(response.exchange->unsent_bytes(), 0u);
  EXPECT_EQ(response.writable, 1);
  response.exchange->SendData(std::string(2 * kWindowBytes, 'b'));
  pair.Run();
  EXPECT_EQ(response.exchange->unsent_bytes(), 2 * kWindowBytes) << "the window is closed";
  EXPECT_EQ(response.writable, 1);
  request.exchange->Consumed(std::exchange(request.unconsumed, 0));
  pair.Run();
  EXPECT_EQ(response.exchange->unsent_bytes(), kWindowBytes);
  EXPECT_EQ(response.writable, 1) << "kWindowBytes is not below kWindowBytes";
  request.exchange->Consumed(std::exchange(request.unconsumed, 0));
  pair.Run();
  EXPECT_EQ(response.exchange->unsent_bytes(), 0u);
  EXPECT_EQ(response.writable, 2);
}

TEST(Exchange, AStalledStreamHoldsUpNoOther) {
  TestPair pair;
  pair.application.consumes = false;
  for (int i = 0; i < 50; ++i)
    pair.Begin(MakePost(kUnsized)).exchange->SendData(std::string(2 * kWindowBytes, 'a'));
  pair.Run();
  for (const auto& request : pair.application.requests)
    EXPECT_EQ(request->unconsumed, kWindowBytes);
  pair.application.consumes = true;
  TestResponse& response = pair.Begin(MakePost(Sized(1'000'000)));
  response.exchange->SendData(std::string(1'000'000, 'b'));
  response.exchange->SendEnd({});
  pair.Run();
  EXPECT_EQ(pair.application.last().body.size(), 1'000'000u);
}

TEST(Exchange, ALongBodyNeedsNoMoreThanTheWindows) {
  constexpr uint64_t kBytes = uint64_t{64} << 20;
  constexpr size_t kPart = 60'000;
  uint64_t left = kBytes;
  size_t unsent_max = 0;
  TestPair pair;
  pair.application.on_data = [](TestRequest& request) { request.body.clear(); };
  TestResponse& response = pair.Ask(MakePost(Sized(kBytes)));
  const std::string part(kPart, 'a');
  const auto send = [&] {
    while (left > 0 && response.exchange->unsent_bytes() < kWindowBytes) {
      const size_t bytes = static_cast<size_t>(std::min<uint64_t>(left, kPart));
      response.exchange->SendData(std::string_view(part).substr(0, bytes));
      left -= bytes;
      unsent_max = std::max(unsent_max, response.exchange->unsent_bytes());
    }
  };
  response.on_writable = send;
  send();
  pair.Run();
  EXPECT_EQ(left, 0u);
  response.exchange->SendEnd({});
  pair.Run();
  EXPECT_TRUE(pair.application.last().ended);
  EXPECT_LT(unsent_max, kWindowBytes + kPart);
}

// ---- Ends

TEST(Exchange, AResponseThatEndsFirstEndsTheRequest) {
  TestPair pair;
  TestResponse& response = pair.Ask(MakePost(kUnsized));
  response.exchange->SendData("some");
  pair.Run();
  TestRequest& request = pair.application.last();
  request.exchange->SendHead(MakeResponse(413, Sized(2)));
  request.exchange->SendData("no");
  request.exchange->SendEnd({});
  pair.Run();
  EXPECT_EQ(Summary(*response.head), "413 sized 2");
  EXPECT_EQ(response.body, "no");
  EXPECT_TRUE(response.ended) << "the reset with NO_ERROR does not spoil it";
  EXPECT_FALSE(response.failure);
  EXPECT_EQ(request.exchange, nullptr);
  EXPECT_TRUE(request.aborted);
  EXPECT_EQ(pair.client.free_places(), 100u);
}

TEST(Exchange, CancelAbortsTheRequest) {
  TestPair pair;
  TestResponse& response = pair.Ask(MakePost(kUnsized));
  response.exchange->Cancel();
  EXPECT_EQ(pair.client.open_exchanges(), 0u);
  pair.Run();
  EXPECT_TRUE(pair.application.last().aborted);
  EXPECT_EQ(pair.application.last().exchange, nullptr) << "the receiver is gone at once";
  EXPECT_FALSE(response.failure || response.ended);
  EXPECT_EQ(pair.client.free_places(), 100u);
}

TEST(Exchange, CancelBeforeAnythingIsSentSendsNothing) {
  TestPair pair;
  TestResponse& response = pair.Begin(MakeGet());
  response.exchange->Cancel();
  pair.Run();
  EXPECT_EQ(pair.application.requests.size(), 0u);
  EXPECT_EQ(pair.client.free_places(), 100u);
}

TEST(Exchange, AbortBeforeTheHeadIsNoAnswer) {
  TestPair pair;
  TestResponse& response = pair.Ask(MakeGet());
  pair.application.last().exchange->Abort();
  pair.Run();
  EXPECT_EQ(response.failure, Failure::kNoAnswer);
  EXPECT_EQ(pair.application.last().exchange, nullptr);
  EXPECT_FALSE(pair.application.last().aborted) << "the application knows";
}

TEST(Exchange, AbortAfterTheHeadIsTruncated) {
  TestPair pair;
  TestResponse& response = pair.Ask(MakeGet());
  TestRequest& request = pair.application.last();
  request.exchange->SendHead(MakeResponse(200, kUnsized));
  request.exchange->SendData("ab");
  pair.Run();
  EXPECT_EQ(response.body, "ab");
  request.exchange->Abort();
  pair.Run();
  EXPECT_EQ(response.failure, Failure::kTruncated);
  EXPECT_FALSE(response.ended);
}

TEST(Exchange, ASizedBodyThatEndsEarlyIsAborted) {
  TestPair pair;
  TestResponse& response = pair.Ask(MakeGet());
  TestRequest& request = pair.application.last();
  request.exchange->SendHead(MakeResponse(200, Sized(3)));
  request.exchange->SendData("ab");
  pair.Run();
  request.exchange->SendEnd({});
  pair.Run();
  EXPECT_EQ(response.failure, Failure::kTruncated);
  EXPECT_FALSE(response.ended);

  TestResponse& second = pair.Ask(MakePost(Sized(3)));
  second.exchange->SendData("ab");
  second.exchange->SendEnd({});
  pair.Run();
  EXPECT_EQ(second.failure, Failure::kInvalid);
  EXPECT_TRUE(pair.application.last().aborted);
}

TEST(Exchange, ABrokenConnectionFailsEveryExchange) {
  TestPair pair;
  TestResponse& answered = pair.Ask(MakeGet());
  pair.application.last().exchange->SendHead(MakeResponse(200, kUnsized));
  TestResponse& sent = pair.Ask(MakeGet());
  TestResponse& unsent = pair.Begin(MakeGet());
  pair.client.OnBroken("connection reset", kNow);
  EXPECT_EQ(answered.failure, Failure::kTruncated);
  EXPECT_EQ(sent.failure, Failure::kNoAnswer);
  EXPECT_EQ(sent.detail, "connection reset");
  EXPECT_EQ(unsent.failure, Failure::kNotSent);
  EXPECT_TRUE(pair.client.finished());
  EXPECT_EQ(pair.client.free_places(), 0u);
  EXPECT_EQ(pair.client.open_exchanges(), 0u);
}

TEST(Exchange, AClientThatClosesItsDirectionAbortsEveryRequest) {
  TestPair pair;
  pair.Begin(MakeGet());
  pair.Begin(MakePost(kUnsized));
  pair.Run();
  EXPECT_FALSE(pair.server.OnInputEnd(kNow));
  for (const auto& request : pair.application.requests) {
    EXPECT_TRUE(request->aborted);
    EXPECT_EQ(request->exchange, nullptr);
  }
}

// ---- Tunnels

TEST(Tunnel, CarriesBytesAndEndsEachDirectionAlone) {
  TestPair pair;
  TestResponse& response = pair.Ask(MakeTunnel());
  ASSERT_EQ(pair.application.requests.size(), 1u);
  TestRequest& request = pair.application.last();
  EXPECT_EQ(request.head.protocol, "websocket");
  EXPECT_EQ(request.head.method, "GET");
  EXPECT_EQ(request.head.body, BodyLength{});
  EXPECT_FALSE(request.ended);
  request.exchange->SendHead(MakeResponse(101, kTunnel));
  request.exchange->SendData("hello");
  pair.Run();
  EXPECT_EQ(Summary(*response.head), "101 tunnel");
  EXPECT_EQ(response.body, "hello");
  response.exchange->SendData("ping");
  request.exchange->SendEnd({});
  pair.Run();
  EXPECT_EQ(request.body, "ping");
  EXPECT_TRUE(response.ended);
  EXPECT_NE(request.exchange, nullptr) << "the other direction is open";
  EXPECT_EQ(pair.client.open_exchanges(), 1u);
  response.exchange->SendData("more");
  response.exchange->SendEnd({});
  pair.Run();
  EXPECT_EQ(request.body, "pingmore");
  EXPECT_TRUE(request.ended);
  EXPECT_FALSE(request.aborted);
  EXPECT_EQ(request.exchange, nullptr);
  EXPECT_EQ(pair.client.open_exchanges(), 0u);
  EXPECT_FALSE(response.failure);
}

TEST(Tunnel, MayBeRefused) {
  TestPair pair;
  TestResponse& response = pair.Ask(MakeTunnel());
  TestRequest& request = pair.application.last();
  request.exchange->SendHead(MakeResponse(403, Sized(2)));
  pair.Run();
  EXPECT_TRUE(request.ended) << "the request had no body";
  request.exchange->SendData("no");
  request.exchange->SendEnd({});
  pair.Run();
  EXPECT_EQ(Summary(*response.head), "403 sized 2");
  EXPECT_TRUE(response.ended);
  EXPECT_EQ(request.exchange, nullptr);
  EXPECT_EQ(pair.client.open_exchanges(), 0u);
}

TEST(Tunnel, ABreakAfterTheServersEndIsAFailure) {
  TestPair pair;
  TestResponse& response = pair.Ask(MakeTunnel());
  TestRequest& request = pair.application.last();
  request.exchange->SendHead(MakeResponse(101, kTunnel));
  request.exchange->SendEnd({});
  pair.Run();
  EXPECT_TRUE(response.ended);
  pair.client.OnBroken("reset", kNow);
  EXPECT_EQ(response.failure, Failure::kTruncated);
}

// ---- Shutdown

TEST(Drain, StreamsEndAndNewOnesGoElsewhere) {
  TestPair pair;
  TestResponse& response = pair.Ask(MakeGet());
  pair.server.OnDrain();
  EXPECT_TRUE(pair.server_woken);
  pair.Run();
  EXPECT_TRUE(pair.client.finished());
  EXPECT_EQ(pair.client.free_places(), 0u);
  EXPECT_EQ(pair.client.open_exchanges(), 1u);
  EXPECT_FALSE(pair.closed);
  pair.application.last().exchange->SendHead(MakeResponse(200));
  pair.Run();
  EXPECT_TRUE(response.ended);
  EXPECT_TRUE(pair.closed);
  EXPECT_FALSE(pair.progress.protocol_error);
}

TEST(Drain, AnIdleClientIsFinishedByTheNotice) {
  TestPair pair;
  pair.Run();
  EXPECT_FALSE(pair.client.finished());
  pair.server.OnDrain();
  pair.Run();
  EXPECT_TRUE(pair.client.finished());
  EXPECT_EQ(pair.client.open_exchanges(), 0u) << "so its owner closes the connection";
}

}  // namespace exchange_test
}  // namespace headgate::http::http2
