#include "headgate/http/http1/client_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "headgate/http/http1/client_dialogue.h"

namespace headgate::http::http1 {
namespace client_session_test {

using ::testing::EndsWith;
using ::testing::StartsWith;
using Kind = BodyLength::Kind;

constexpr BodyLength kUnsized{.kind = Kind::kUnsized};
constexpr BodyLength Sized(uint64_t bytes) { return {.kind = Kind::kSized, .bytes = bytes}; }

constexpr std::string_view kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

RequestHead Post(const BodyLength& body) {
  RequestHead head = ClientDialogue::Get();
  head.method = "POST";
  head.body = body;
  return head;
}

RequestHead WebSocket() {
  RequestHead head = ClientDialogue::Get();
  head.protocol = "websocket";
  return head;
}

// ---- Requests

TEST(Http1Client, WritesARequest) {
  ClientDialogue d;
  RequestHead head = ClientDialogue::Get();
  head.fields.Add("A", "b");
  EXPECT_EQ(d.AskAndEnd(head), "GET /x HTTP/1.1\r\nHost: a.example\r\nA: b\r\n\r\n");
  EXPECT_EQ(d.session.open_exchanges(), 1u);
  EXPECT_EQ(d.session.free_places(), 0u);
  d.Say(kOk);
  EXPECT_EQ(d.response.Summary(), "200 ok.");
  EXPECT_EQ(d.response.head->body, Sized(2));
  EXPECT_TRUE(d.response.head->fields.empty());
  EXPECT_EQ(d.session.open_exchanges(), 0u);
  EXPECT_EQ(d.session.free_places(), 1u);
  EXPECT_FALSE(d.session.finished());
}

TEST(Http1Client, FramesTheRequest) {
  const auto framed = [](const RequestHead& head, std::string_view body = "") {
    ClientDialogue d;
    std::string output = d.Ask(head);
    d.exchange->SendData("");
    d.exchange->SendData(body);
    Fields trailers;
    trailers.Add("X-Sum", "1");
    d.exchange->SendEnd(trailers);
    EXPECT_FALSE(d.session.output_ended());
    return (output + d.Taken()).substr(output.find("a.example\r\n") + 11);
  };
  EXPECT_EQ(framed(Post({})), "Content-Length: 0\r\n\r\n");
  EXPECT_EQ(framed(Post(Sized(0))), "Content-Length: 0\r\n\r\n");
  EXPECT_EQ(framed(Post(Sized(5)), "hello"), "Content-Length: 5\r\n\r\nhello");
  EXPECT_EQ(framed(Post(kUnsized), "a long body with 26 letters"),
            "Transfer-Encoding: chunked\r\n\r\n"
            "1b\r\na long body with 26 letters\r\n0\r\nX-Sum: 1\r\n\r\n");
  RequestHead expecting = Post(Sized(1));
  expecting.expects_continue = true;
  EXPECT_EQ(framed(expecting, "x"), "Content-Length: 1\r\nExpect: 100-continue\r\n\r\nx");
  RequestHead accepting = ClientDialogue::Get();
  accepting.accepts_trailers = true;
  EXPECT_EQ(framed(accepting), "Connection: TE\r\nTE: trailers\r\n\r\n");
  RequestHead upgrade = WebSocket();
  EXPECT_EQ(framed(upgrade), "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
  upgrade.accepts_trailers = true;
  EXPECT_EQ(framed(upgrade),
            "Connection: Upgrade, TE\r\nUpgrade: websocket\r\nTE: trailers\r\n\r\n");
}

TEST(Http1Client, IsUsedForOneRequestAfterTheOther) {
  ClientDialogue d;
  for (int i = 0; i < 3; ++i) {
    d.response = {};
    EXPECT_THAT(d.AskAndEnd(), StartsWith("GET "));
    d.Say(kOk);
    EXPECT_EQ(d.response.Summary(), "200 ok.");
  }
}

TEST(Http1Client, TakesTheNextRequestWithinTheEnd) {
  ClientDialogue d;
  TestResponse second;
  d.response.on_end = [&] { d.session.Begin(ClientDialogue::Get(), second, d.kThen).SendEnd({}); };
  d.AskAndEnd();
  d.Say(kOk);
  EXPECT_THAT(d.Taken(), StartsWith("GET "));
  d.Say(kOk);
  EXPECT_EQ(second.Summary(), "200 ok.");
}

TEST(Http1Client, StopsTheSenderWhileTheServerDoesNotRead) {
  ClientDialogue d;
  d.Ask(Post(kUnsized));
  d.exchange->SendData(std::string(kWindowBytes, 'x'));
  EXPECT_EQ(d.woken, 2) << "for the head and for the data";
  EXPECT_GE(d.exchange->unsent_bytes(), kWindowBytes);
  const size_t size = d.session.output().size();
  d.session.output().clear();
  d.session.OnUnsent(size, d.kThen);
  EXPECT_EQ(d.exchange->unsent_bytes(), size);
  d.session.OnUnsent(kWindowBytes, d.kThen);
  EXPECT_EQ(d.response.writable, 0);
  d.session.OnUnsent(kWindowBytes - 1, d.kThen);
  EXPECT_EQ(d.response.writable, 1);
  d.session.OnUnsent(0, d.kThen);
  EXPECT_EQ(d.response.writable, 1);
}

TEST(Http1Client, ABodyThatIsShorterThanItsLengthEndsTheConnection) {
  ClientDialogue d;
  d.Ask(Post(Sized(3)));
  d.exchange->SendData("ab");
  d.exchange->SendEnd({});
  EXPECT_TRUE(d.session.output_ended());
  EXPECT_TRUE(d.session.finished());
  d.Taken();
  d.End();
  EXPECT_EQ(d.response.Summary(), " no answer");
}

// ---- Responses

TEST(Http1Client, ReadsTheBodyInParts) {
  ClientDialogue d;
  d.AskAndEnd();
  d.Say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nA: b\r\n\r\n3\r\nab");
  EXPECT_EQ(d.response.head->body, kUnsized);
  EXPECT_EQ(d.response.head->fields.Find("A"), "b");
  EXPECT_EQ(d.response.Summary(), "200 ab");
  d.Say("c\r\n0\r\nX-Sum: 9\r\n");
  EXPECT_EQ(d.response.Summary(), "200 abc");
  d.Say("\r\n");
  EXPECT_EQ(d.response.Summary(), "200 abc +1.");
  EXPECT_EQ(d.response.trailers.Find("X-Sum"), "9");
  EXPECT_FALSE(d.session.finished());
}

TEST(Http1Client, WantsNoInputWhileTheReceiverBuffersMuch) {
  ClientDialogue d;
  d.AskAndEnd();
  d.Say("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
  d.woken = 0;
  d.Say(std::string(kWindowBytes - 1, 'x'));
  EXPECT_TRUE(d.session.wants_input());
  d.Say("x");
  EXPECT_FALSE(d.session.wants_input());
  EXPECT_EQ(d.woken, 1);
  d.exchange->Consumed(kWindowBytes / 2 - 1);
  EXPECT_FALSE(d.session.wants_input()) << "it reads on in large steps";
  d.exchange->Consumed(1);
  EXPECT_TRUE(d.session.wants_input());
  EXPECT_EQ(d.woken, 2);
}

TEST(Http1Client, PassesInformationalResponsesOn) {
  ClientDialogue d;
  RequestHead head = Post(Sized(1));
  head.expects_continue = true;
  d.Ask(head);
  d.Say("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
  ASSERT_EQ(d.response.informational.size(), 2u);
  EXPECT_EQ(d.response.informational[0].status, 100);
  EXPECT_EQ(d.response.informational[1].fields.Find("link"), "</a>");
  d.exchange->SendData("x");
  d.exchange->SendEnd({});
  d.Taken();
  d.Say(kOk);
  EXPECT_EQ(d.response.Summary(), "100 103 200 ok.");
  EXPECT_FALSE(d.session.finished());
}

TEST(Http1Client, BoundsInformationalResponses) {
  ClientDialogue d;
  d.AskAndEnd();
  for (uint32_t i = 0; i < ClientSession::kInformationalMax; ++i)
    d.Say("HTTP/1.1 102 Processing\r\n\r\n");
  EXPECT_FALSE(d.response.failure);
  d.Say("HTTP/1.1 102 Processing\r\n\r\n");
  EXPECT_EQ(d.response.failure, Failure::kInvalid);
  EXPECT_TRUE(d.session.finished());
}

TEST(Http1Client, ABodyMayEndWithTheConnection) {
  ClientDialogue d;
  d.AskAndEnd();
  d.Say("HTTP/1.1 200 OK\r\n\r\nabc");
  EXPECT_EQ(d.response.head->body, kUnsized);
  EXPECT_EQ(d.response.Summary(), "200 abc");
  d.End();
  EXPECT_EQ(d.response.Summary(), "200 abc.");
  EXPECT_TRUE(d.session.finished());
}

TEST(Http1Client, AnswersToHeadHaveNoContent) {
  for (const std::string_view length :
       {"", "Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n"}) {
    ClientDialogue d;
    RequestHead head = ClientDialogue::Get();
    head.method = "HEAD";
    d.AskAndEnd(head);
    d.Say("HTTP/1.1 200 OK\r\n" + std::string(length) + "\r\n");
    EXPECT_EQ(d.response.Summary(), "200 .");
    EXPECT_FALSE(d.session.finished());
  }
}

// ---- Ends before the end

TEST(Http1Client, SaysWhyThereIsNoResponse) {
  const auto failure = [](std::string_view bytes) {
    ClientDialogue d;
    d.AskAndEnd();
    d.Say(bytes);
    d.End();
    EXPECT_TRUE(d.session.finished());
    EXPECT_EQ(d.session.open_exchanges(), 0u);
    return d.response.Summary();
  };
  EXPECT_EQ(failure(""), " no answer");
  EXPECT_EQ(failure("H"), " truncated");
  EXPECT_EQ(failure("HTTP/1.1 103 Early Hints\r\n\r\n"), "103  truncated");
  EXPECT_EQ(failure("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab"), "200 ab truncated");
  EXPECT_EQ(failure("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n"),
            "200 ab truncated");
  EXPECT_EQ(failure("X"), " truncated");
  EXPECT_EQ(failure("X\r\n\r\n"), " invalid");
}

TEST(Http1Client, ABrokenConnectionIsNoEnd) {
  ClientDialogue d;
  d.AskAndEnd();
  d.Say("HTTP/1.1 200 OK\r\n\r\nabc");
  d.session.OnBroken("reset", d.kThen);
  EXPECT_EQ(d.response.Summary(), "200 abc truncated");
  EXPECT_EQ(d.response.detail, "reset");
}

TEST(Http1Client, NothingWasSentWhileTheOwnerHasTheOutput) {
  for (const bool answers : {true, false}) {
    ClientDialogue d;
    d.session.Begin(ClientDialogue::Get(), d.response, d.kThen).SendEnd({});
    answers ? d.Say("HTTP/1.1 408 Request Timeout\r\n\r\n") : d.End();
    EXPECT_EQ(d.response.Summary(), " not sent");
    EXPECT_TRUE(d.session.finished());
  }
}

TEST(Http1Client, IsNotUsedAgainAfterBytesThatNobodyAskedFor) {
  ClientDialogue idle;
  idle.Say("HTTP/1.1 408 Request Timeout\r\n\r\n");
  EXPECT_TRUE(idle.session.finished());
  EXPECT_EQ(idle.session.free_places(), 0u);
  ClientDialogue beyond;
  beyond.AskAndEnd();
  beyond.Say(std::string(kOk) + "H");
  EXPECT_EQ(beyond.response.Summary(), "200 ok.");
  EXPECT_TRUE(beyond.session.finished());
  ClientDialogue ended;
  ended.End();
  EXPECT_TRUE(ended.session.finished());
}

TEST(Http1Client, IsNotUsedAgainIfOneSideClosesIt) {
  const auto finished = [](std::string_view line) {
    ClientDialogue d;
    d.AskAndEnd();
    d.Say(std::string(line) + "Content-Length: 2\r\n\r\nok");
    EXPECT_EQ(d.response.Summary(), "200 ok.");
    return d.session.finished();
  };
  EXPECT_FALSE(finished("HTTP/1.1 200 OK\r\n"));
  EXPECT_FALSE(finished("HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n"));
  EXPECT_TRUE(finished("HTTP/1.1 200 OK\r\nConnection: X, close\r\n"));
  EXPECT_TRUE(finished("HTTP/1.0 200 OK\r\n"));
  EXPECT_FALSE(finished("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n"));
}

TEST(Http1Client, AnEarlyAnswerEndsTheConnection) {
  ClientDialogue d;
  d.Ask(Post(Sized(5)));
  d.exchange->SendData("he");
  d.Taken();
  d.Say("HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(d.response.Summary(), "413 .");
  EXPECT_TRUE(d.session.finished());
}

TEST(Http1Client, AnAnswerToARequestThatIsNotSentYetEndsTheConnection) {
  ClientDialogue d;
  d.Ask(Post(Sized(5)));
  d.exchange->SendData("hello");
  d.exchange->SendEnd({});
  d.Say(kOk);
  EXPECT_EQ(d.response.Summary(), "200 ok.");
  EXPECT_TRUE(d.session.finished());
}

TEST(Http1Client, ACanceledExchangeEndsTheConnection) {
  ClientDialogue d;
  d.Ask(Post(Sized(5)));
  d.exchange->SendData("he");
  d.exchange->Cancel();
  EXPECT_TRUE(d.session.finished());
  EXPECT_EQ(d.session.open_exchanges(), 0u);
  EXPECT_EQ(d.Taken(), "");
  d.Say(kOk);
  d.End();
  EXPECT_EQ(d.response.Summary(), "");
}

TEST(Http1Client, MayBeCanceledWithinEveryCall) {
  for (int when = 0; when < 2; ++when) {
    ClientDialogue d;
    d.response.on_head = [&] {
      if (when == 0) d.exchange->Cancel();
    };
    d.response.on_data = [&](size_t) { d.exchange->Cancel(); };
    d.AskAndEnd();
    d.Say(std::string(kOk) + std::string(kOk));
    EXPECT_EQ(d.response.Summary(), when == 0 ? "200 " : "200 ok");
    EXPECT_EQ(d.session.open_exchanges(), 0u);
  }
}

// ---- Tunnels

TEST(Http1Client, TunnelsAfter101) {
  ClientDialogue d;
  d.Ask(WebSocket());
  d.Say(
      "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: WebSocket\r\n"
      "Sec-WebSocket-Accept: x\r\n\r\nhi");
  EXPECT_EQ(d.response.Summary(), "101 hi");
  EXPECT_EQ(d.response.head->body.kind, Kind::kTunnel);
  EXPECT_EQ(d.response.head->fields.size(), 1u);
  EXPECT_TRUE(d.session.finished());
  EXPECT_EQ(d.session.open_exchanges(), 1u);
  d.exchange->SendData("raw");
  EXPECT_EQ(d.Taken(), "raw");
  d.Say("HTTP/1.1 200 OK\r\n\r\n");
  EXPECT_THAT(d.response.body, EndsWith("hiHTTP/1.1 200 OK\r\n\r\n"));

  d.End();
  EXPECT_TRUE(d.response.ended);
  EXPECT_EQ(d.session.open_exchanges(), 1u);
  d.exchange->SendData("more");
  EXPECT_EQ(d.Taken(), "more");
  EXPECT_FALSE(d.session.output_ended());
  d.exchange->SendEnd({});
  EXPECT_TRUE(d.session.output_ended());
  EXPECT_EQ(d.session.open_exchanges(), 0u);
}

TEST(Http1Client, ATunnelsDirectionsEndApart) {
  ClientDialogue d;
  d.Ask(WebSocket());
  d.Say("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n");
  d.exchange->SendEnd({});
  EXPECT_TRUE(d.session.output_ended());
  EXPECT_EQ(d.session.open_exchanges(), 1u);
  d.Say("down");
  d.End();
  EXPECT_EQ(d.response.Summary(), "101 down.");
  EXPECT_EQ(d.session.open_exchanges(), 0u);
}

TEST(Http1Client, ARefusedUpgradeLeavesTheConnectionAsItWas) {
  ClientDialogue d;
  d.Ask(WebSocket());
  d.Say("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
  EXPECT_EQ(d.response.Summary(), "403 no.");
  EXPECT_FALSE(d.session.finished());
}

}  // namespace client_session_test
}  // namespace headgate::http::http1
