#include "headgate/http/http1/server_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "headgate/http/http1/server_dialogue.h"

namespace headgate::http::http1 {
namespace server_session_test {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Kind = BodyLength::Kind;

std::string Text(const Fields& fields) {
  std::string text;
  for (const auto [name, value] : fields) text.append(name).append("=").append(value).append(" ");
  return text;
}

constexpr BodyLength kUnsized{.kind = Kind::kUnsized};
constexpr BodyLength Sized(uint64_t bytes) { return {.kind = Kind::kSized, .bytes = bytes}; }
// The application acts on its own.
void Silent(Received& /*received*/) {}

// ---- Heads

TEST(Http1Server, PassesARequestOnAndAnswersIt) {
  ServerDialogue d;
  EXPECT_EQ(d.Say(kGet), kOk);
  const Received& received = d.application.last();
  EXPECT_EQ(received.head.method, "GET");
  EXPECT_EQ(received.head.target, "/x?y=1");
  EXPECT_EQ(received.head.authority, "a.example");
  EXPECT_EQ(received.head.scheme, "http");
  EXPECT_EQ(received.head.version, Version::kHttp11);
  EXPECT_EQ(received.head.body, BodyLength{});
  EXPECT_TRUE(received.head.fields.empty());
  EXPECT_TRUE(received.ended);
  EXPECT_FALSE(received.aborted);
  EXPECT_FALSE(received.alive);
  EXPECT_FALSE(d.progress.close);
  EXPECT_FALSE(d.progress.streaming);
  EXPECT_FALSE(d.progress.mid_request);
  EXPECT_EQ(d.answered, 1u);
}

TEST(Http1Server, RemovesTheFieldsOfTheConnection) {
  ServerDialogue d;
  d.Say(
      "POST /p HTTP/1.1\r\n"
      "A: 1\r\n"
      "host: b.example:8080\r\n"
      "Connection: keep-alive, X-Gone, , TE\r\n"
      "x-gone: 2\r\n"
      "Keep-Alive: timeout=5\r\n"
      "Proxy-Connection: keep-alive\r\n"
      "TE: deflate, trailers\r\n"
      "Expect: 100-continue\r\n"
      "Upgrade: h2c\r\n"
      "HTTP2-Settings: AAMAAABk\r\n"
      "Content-Length: 3\r\n"
      "B:\t 3 4 \t\r\n"
      "\r\n");
  const RequestHead& head = d.application.last().head;
  EXPECT_EQ(Text(head.fields), "A=1 B=3 4 ");
  EXPECT_EQ(head.authority, "b.example:8080");
  EXPECT_TRUE(head.accepts_trailers);
  EXPECT_TRUE(head.expects_continue);
  EXPECT_EQ(head.protocol, "");
  EXPECT_EQ(head.body, Sized(3));
}

TEST(Http1Server, TakesTheFormsOfTargets) {
  const auto target = [](std::string_view line) {
    ServerDialogue d;
    d.Say(std::string(line) + " HTTP/1.1\r\nHost: a.example\r\n\r\n");
    if (d.application.requests.empty()) return std::string("refused");
    return d.application.last().head.authority + " " + d.application.last().head.target;
  };
  EXPECT_EQ(target("GET /"), "a.example /");
  EXPECT_EQ(target("GET //x"), "a.example //x");
  EXPECT_EQ(target("GET http://a.example/b?c"), "a.example /b?c");
  EXPECT_EQ(target("GET HTTP://A.Example"), "A.Example /");
  EXPECT_EQ(target("GET http://a.example?c"), "a.example /?c");
  EXPECT_EQ(target("OPTIONS *"), "a.example *");
  EXPECT_EQ(target("OPTIONS http://a.example"), "a.example *");
  EXPECT_EQ(target("OPTIONS http://a.example/"), "a.example /");
  EXPECT_EQ(target("GET *"), "refused");
  EXPECT_EQ(target("GET https://a.example/"), "refused");
  EXPECT_EQ(target("GET http://b.example/"), "refused");
}

TEST(Http1Server, TakesGetWithContent) {
  ServerDialogue d;
  EXPECT_EQ(d.Say(Get("Content-Length: 5\r\n") + "hello"), kOk);
  EXPECT_EQ(d.application.last().body, "hello");
}

// ---- Requests in parts

TEST(Http1Server, StreamsASizedBody) {
  ServerDialogue d;
  EXPECT_EQ(d.Say(Post("Content-Length: 5\r\n", "he")), "");
  EXPECT_EQ(d.application.last().head.body, Sized(5));
  EXPECT_EQ(d.application.last().body, "he");
  EXPECT_FALSE(d.application.last().ended);
  EXPECT_TRUE(d.progress.streaming);
  EXPECT_FALSE(d.progress.stop_reading);
  EXPECT_EQ(d.Say("llo"), kOk);
  EXPECT_EQ(d.application.last().body, "hello");
  EXPECT_FALSE(d.progress.close);
}

TEST(Http1Server, CountsTheDataThatIsNotConsumedAndThatTheReceiverHolds) {
  ServerDialogue d;
  d.application.consumes = false;
  d.Say(Post("Content-Length: 50000\r\n"));
  const size_t before = d.session->BufferedBytes();
  d.Say(std::string(40'000, 'a'));
  EXPECT_EQ(d.session->BufferedBytes(), before + 40'000);
  d.application.last().Consume(30'000);
  d.application.last().held = 20'000;
  EXPECT_EQ(d.session->BufferedBytes(), before + 10'000 + 20'000);
  d.application.last().Consume(10'000);
  d.application.last().held = 0;
  EXPECT_EQ(d.session->BufferedBytes(), before);
}

TEST(Http1Server, StreamsChunksAndTheirTrailers) {
  ServerDialogue d;
  EXPECT_EQ(d.Say(Post("Transfer-Encoding: Chunked\r\n",
                       "3;name=\"a;b\"\r\nabc\r\n0002\r\nde\r\n0\r\nX-Sum: 9 \r\nY:\r\n\r\n")),
            kOk);
  const Received& received = d.application.last();
  EXPECT_EQ(received.head.body, kUnsized);
  EXPECT_EQ(received.body, "abcde");
  EXPECT_EQ(Text(received.trailers), "X-Sum=9 Y= ");
}

TEST(Http1Server, ReadsNoMoreThanTheReceiverMayBuffer) {
  ServerDialogue d;
  d.application.consumes = false;
  const std::string body(3 * kWindowBytes, 'x');
  d.Say(Post("Content-Length: " + std::to_string(body.size()) + "\r\n"));
  d.Say(body.substr(0, kWindowBytes - 1));
  EXPECT_FALSE(d.progress.stop_reading);
  d.Say(body.substr(kWindowBytes - 1));
  Received& received = d.application.last();
  EXPECT_EQ(received.body.size(), kWindowBytes);
  EXPECT_TRUE(d.progress.stop_reading);
  EXPECT_EQ(d.rest.size(), 2 * kWindowBytes);

  received.Consume(100);
  EXPECT_EQ(d.woken, 0) << "it wakes in large steps";
  received.Consume(kWindowBytes / 2);
  EXPECT_EQ(d.woken, 1);
  d.Run();
  EXPECT_EQ(received.body.size(), kWindowBytes + 100 + kWindowBytes / 2);
  while (!received.ended) {
    ASSERT_GT(received.unconsumed, 0u);
    received.Consume(received.unconsumed);
    d.Run();
  }
  EXPECT_EQ(received.body, body);
  EXPECT_FALSE(d.progress.stop_reading);
}

TEST(Http1Server, AnswersPipelinedRequestsOneAfterTheOther) {
  ServerDialogue d;
  d.application.on_end = Silent;
  EXPECT_EQ(d.Say(Post("Content-Length: 1\r\n", "a") + std::string(kGet) + "GET /3 "), "");
  ASSERT_EQ(d.application.requests.size(), 1u);
  EXPECT_TRUE(d.progress.stop_reading);
  d.application.last().Answer("1");
  EXPECT_GT(d.woken, 0);
  EXPECT_THAT(d.Run(), EndsWith("\r\n\r\n1"));
  ASSERT_EQ(d.application.requests.size(), 2u);
  EXPECT_FALSE(d.application.requests[0]->alive);
  d.application.last().Answer("2");
  EXPECT_THAT(d.Run(), EndsWith("\r\n\r\n2"));
  EXPECT_EQ(d.rest, "GET /3 ");
  EXPECT_TRUE(d.progress.mid_request);
}

TEST(Http1Server, NoticesThatTheClientLeft) {
  ServerDialogue d;
  d.application.on_end = Silent;
  d.Say(kGet);
  d.session.reset();
  EXPECT_TRUE(d.application.last().aborted);
  EXPECT_FALSE(d.application.last().alive);
}

TEST(Http1Server, ABodyThatIsCutOffIsAborted) {
  for (const std::string_view head : {"Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n"}) {
    ServerDialogue d;
    d.Say(Post(std::string(head), "3\r\n"));
    EXPECT_EQ(d.End(), "");
    EXPECT_TRUE(d.progress.close);
    EXPECT_TRUE(d.application.last().aborted);
    EXPECT_FALSE(d.application.last().malformed);
    EXPECT_FALSE(d.application.last().ended);
  }
}

TEST(Http1Server, TellsAMalformedBodyFromAClientThatLeft) {
  for (const std::string_view body : {"g\r\n", "1\r\nab\r\n", "0\r\nContent-Length: 0\r\n\r\n"}) {
    ServerDialogue d;
    EXPECT_THAT(d.Say(Post("Transfer-Encoding: chunked\r\n", std::string(body))),
                StartsWith("HTTP/1.1 400 "))
        << body;
    EXPECT_TRUE(d.application.last().aborted);
    EXPECT_TRUE(d.application.last().malformed);
  }
}

// ---- Responses

TEST(Http1Server, FramesTheResponse) {
  struct Case {
    std::string_view request;
    int status;
    BodyLength length;
    std::string_view expected;
  };
  const Case cases[] = {
      {"GET / HTTP/1.1", 200, Sized(3), "HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 3\r\n\r\nabc"},
      {"GET / HTTP/1.1", 200, kUnsized,
       "HTTP/1.1 200 OK\r\nA: b\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"},
      {"GET / HTTP/1.1", 200, {}, "HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 0\r\n\r\n"},
      {"GET / HTTP/1.1", 204, {}, "HTTP/1.1 204 No Content\r\nA: b\r\n\r\n"},
      {"GET / HTTP/1.1", 304, {}, "HTTP/1.1 304 Not Modified\r\nA: b\r\n\r\n"},
      {"GET / HTTP/1.1", 304, Sized(3),
       "HTTP/1.1 304 Not Modified\r\nA: b\r\nContent-Length: 3\r\n\r\n"},
      {"HEAD / HTTP/1.1", 200, Sized(3), "HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 3\r\n\r\n"},
      {"HEAD / HTTP/1.1", 200, kUnsized, "HTTP/1.1 200 OK\r\nA: b\r\n\r\n"},
      {"HEAD / HTTP/1.1", 200, {}, "HTTP/1.1 200 OK\r\nA: b\r\n\r\n"},
      {"GET / HTTP/1.0", 200, Sized(3),
       "HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc"},
      {"GET / HTTP/1.0", 200, kUnsized, "HTTP/1.1 200 OK\r\nA: b\r\nConnection: close\r\n\r\nabc"},
      {"HEAD / HTTP/1.0", 200, kUnsized, "HTTP/1.1 200 OK\r\nA: b\r\nConnection: close\r\n\r\n"},
  };
  for (const Case& c : cases) {
    ServerDialogue d;
    d.application.on_end = [&](Received& received) {
      ResponseHead head{.status = c.status, .fields = {}, .body = c.length};
      head.fields.Add("A", "b");
      received.exchange->SendHead(head);
      if (c.length.kind != Kind::kNone) {
        received.exchange->SendData("");
        received.exchange->SendData("abc");
      }
      received.exchange->SendEnd({});
    };
    EXPECT_EQ(d.Say(std::string(c.request) + "\r\nHost: a.example\r\n\r\n"), c.expected);
    EXPECT_EQ(d.progress.close, c.request.ends_with("1.0")) << c.request;
  }
}

TEST(Http1Server, SendsTrailersToAClientThatAcceptsThem) {
  for (const bool accepts : {true, false}) {
    ServerDialogue d;
    d.application.on_end = [](Received& received) {
      received.exchange->SendHead({.status = 200, .fields = {}, .body = kUnsized});
      Fields trailers;
      trailers.Add("grpc-status", "0");
      trailers.Add("Content-Length", "3");
      received.exchange->SendEnd(trailers);
    };
    EXPECT_THAT(d.Say(Get(accepts ? "TE: trailers\r\n" : "")),
                EndsWith(accepts ? "\r\n\r\n0\r\ngrpc-status: 0\r\n\r\n" : "\r\n\r\n0\r\n\r\n"));
  }
}

TEST(Http1Server, SendsInformationalResponsesFirst) {
  ServerDialogue d;
  d.Say(Post("Content-Length: 2\r\nExpect: 100-continue\r\n"));
  d.application.last().exchange->SendInformational({.status = 100, .fields = {}, .body = {}});
  EXPECT_EQ(d.Run(), "HTTP/1.1 100 Continue\r\n\r\n");
  ResponseHead hints{.status = 103, .fields = {}, .body = {}};
  hints.fields.Add("Link", "</a>");
  d.application.last().exchange->SendInformational(hints);
  EXPECT_EQ(d.Say("hi"), "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + std::string(kOk));
  EXPECT_FALSE(d.progress.close);
}

TEST(Http1Server, SendsNoInformationalResponseToHttp10) {
  ServerDialogue d;
  d.application.on_end = Silent;
  d.Say("GET / HTTP/1.0\r\n\r\n");
  d.application.last().exchange->SendInformational({.status = 103, .fields = {}, .body = {}});
  EXPECT_EQ(d.Run(), "");
}

TEST(Http1Server, DropsHintsForAClientThatDoesNotRead) {
  ServerDialogue d;
  d.client_reads = false;
  d.Say(Post("Content-Length: 2\r\n"));
  ServerExchange& exchange = *d.application.last().exchange;
  ResponseHead hints{.status = 103, .fields = {}, .body = {}};
  hints.fields.Add("Link", std::string(1000, 'x'));
  for (int i = 0; i < 1000; ++i) exchange.SendInformational(hints);
  EXPECT_LT(exchange.unsent_bytes(), kWindowBytes + 2000);
  exchange.SendInformational({.status = 100, .fields = {}, .body = {}});
  EXPECT_THAT(d.Run(), EndsWith("HTTP/1.1 100 Continue\r\n\r\n")) << "it may wait for this one";
}

TEST(Http1Server, KeepsTheConnectionAsTheClientWants) {
  const auto answer = [](std::string_view head) {
    ServerDialogue d;
    const std::string output = d.Say(head);
    return std::pair(output.find("Connection: close") != output.npos        ? "close"
                     : output.find("Connection: keep-alive") != output.npos ? "keep-alive"
                                                                            : "",
                     d.progress.close);
  };
  EXPECT_EQ(answer(kGet), std::pair("", false));
  EXPECT_EQ(answer(Get("Connection: close\r\n")), std::pair("close", true));
  EXPECT_EQ(answer(Get("Connection: Keep-Alive, Close\r\n")), std::pair("close", true));
  EXPECT_EQ(answer("GET / HTTP/1.0\r\n\r\n"), std::pair("close", true));
  EXPECT_EQ(answer("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"),
            std::pair("keep-alive", false));
}

TEST(Http1Server, SaysThatItDrains) {
  ServerDialogue d;
  d.application.on_end = Silent;
  d.Say(kGet);
  d.session->OnDrain();
  d.application.last().Answer("ok");
  EXPECT_THAT(d.Run(), HasSubstr("Connection: close\r\n"));
  EXPECT_TRUE(d.progress.close);
}

TEST(Http1Server, StopsTheSenderWhileTheClientDoesNotRead) {
  ServerDialogue d;
  d.application.on_end = Silent;
  d.client_reads = false;
  d.Say(kGet);
  ServerExchange& exchange = *d.application.last().exchange;
  exchange.SendHead({.status = 200, .fields = {}, .body = kUnsized});
  exchange.SendData(std::string(kWindowBytes, 'x'));
  EXPECT_GE(exchange.unsent_bytes(), kWindowBytes);
  d.Run();
  EXPECT_GE(exchange.unsent_bytes(), kWindowBytes);
  EXPECT_EQ(d.application.last().writable, 0);
  d.ReadAllBut(kWindowBytes);
  d.Run();
  EXPECT_EQ(d.application.last().writable, 0);
  d.ReadAllBut(kWindowBytes - 1);
  EXPECT_EQ(exchange.unsent_bytes(), kWindowBytes - 1);
  d.Run();
  EXPECT_EQ(d.application.last().writable, 1);
  exchange.SendData("y");
  exchange.SendEnd({});
  d.ReadAllBut(0);
  d.Run();
  EXPECT_EQ(d.application.last().writable, 1) << "nobody writes any more";
}

TEST(Http1Server, TakesNoFurtherRequestWhileTheClientDoesNotRead) {
  ServerDialogue d;
  d.client_reads = false;
  d.application.answer = std::string(kWindowBytes, 'x');
  d.Say(std::string(kGet) + std::string(kGet) + std::string(kGet));
  EXPECT_EQ(d.application.requests.size(), 1u);
  EXPECT_TRUE(d.progress.stop_reading);
  d.ReadAllBut(10);
  EXPECT_EQ(d.woken, 1);
  d.Run();
  EXPECT_EQ(d.application.requests.size(), 2u);
  d.client_reads = true;
  d.ReadAllBut(0);
  d.Run();
  EXPECT_EQ(d.application.requests.size(), 3u);
  EXPECT_FALSE(d.progress.streaming);
}

TEST(Http1Server, WritesOnWhenEverythingWasSentAtOnce) {
  ServerDialogue d;
  int rounds = 0;
  d.application.on_end = [](Received& received) {
    received.exchange->SendHead({.status = 200, .fields = {}, .body = kUnsized});
    received.exchange->SendData(std::string(kWindowBytes, 'x'));
  };
  d.application.on_writable = [&](Received& received) {
    if (++rounds < 10) return received.exchange->SendData(std::string(kWindowBytes, 'x'));
    received.exchange->SendEnd({});
  };
  EXPECT_THAT(d.Say(kGet), EndsWith("\r\n0\r\n\r\n"));
  EXPECT_EQ(rounds, 10);
}

// ---- Ends before the end

TEST(Http1Server, AnEarlyAnswerClosesTheConnection) {
  ServerDialogue d;
  d.application.on_request = [](Received& received) { received.Answer("no", 413); };
  EXPECT_EQ(d.Say(Post("Content-Length: 5\r\n", "he")),
            "HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno");
  EXPECT_TRUE(d.progress.close);
  EXPECT_FALSE(d.progress.protocol_error);
  EXPECT_TRUE(d.application.last().aborted);
  EXPECT_FALSE(d.application.last().alive);
}

TEST(Http1Server, AnAnswerToABodyThatHasArrivedKeepsTheConnection) {
  ServerDialogue d;
  d.application.on_request = [](Received& received) { received.Answer("no", 429); };
  d.application.on_end = Silent;
  const std::string body(2 * kWindowBytes, 'x');
  const std::string output = d.Say(
      Post("Content-Length: " + std::to_string(body.size()) + "\r\n", body) + std::string(kGet));
  EXPECT_THAT(output, Not(HasSubstr("close")));
  ASSERT_EQ(d.application.requests.size(), 2u);
  EXPECT_TRUE(d.application.requests[0]->aborted) << "nobody wants the body";
  EXPECT_EQ(d.application.requests[0]->body, "");
  EXPECT_FALSE(d.application.requests[0]->alive);
  EXPECT_FALSE(d.progress.close);
}

TEST(Http1Server, AnAnswerToABodyThatWaitsForItsReceiverKeepsTheConnection) {
  ServerDialogue d;
  d.application.consumes = false;
  const std::string body(kWindowBytes + 10, 'x');
  d.Say(Post("Content-Length: " + std::to_string(body.size()) + "\r\n", body));
  EXPECT_EQ(d.rest.size(), 10u);
  d.application.last().Answer("no", 503);
  EXPECT_THAT(d.Run(), Not(HasSubstr("close")));
  EXPECT_EQ(d.rest, "");
  EXPECT_EQ(d.Say(kGet), kOk);
}

TEST(Http1Server, AResponseMayBeginBeforeTheRequestEnds) {
  ServerDialogue d;
  d.application.on_end = [](Received& received) { received.exchange->SendEnd({}); };
  d.Say(Post("Transfer-Encoding: chunked\r\n", "1\r\na\r\n"));
  d.application.last().exchange->SendHead({.status = 200, .fields = {}, .body = kUnsized});
  EXPECT_EQ(d.Run(), "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n");
  EXPECT_FALSE(d.progress.close);
  d.application.last().exchange->SendData("b");
  EXPECT_EQ(d.Say("1\r\nc\r\n0\r\n\r\n"), "1\r\nb\r\n0\r\n\r\n");
  EXPECT_EQ(d.application.last().body, "ac");
  EXPECT_TRUE(d.progress.close);
  EXPECT_FALSE(d.application.last().aborted);
}

TEST(Http1Server, AnAbortedResponseHasNoEnd) {
  ServerDialogue d;
  d.application.on_end = [](Received& received) {
    received.exchange->SendHead({.status = 200, .fields = {}, .body = kUnsized});
    received.exchange->SendData("a");
    received.exchange->Abort();
    received.exchange->SendData("b");
    received.exchange->SendEnd({});
  };
  EXPECT_THAT(d.Say(kGet), EndsWith("\r\n\r\n1\r\na\r\n"));
  EXPECT_TRUE(d.progress.close);
  EXPECT_FALSE(d.application.last().aborted) << "it knows";
  EXPECT_FALSE(d.application.last().alive);
}

// Its regular end would be that of the connection.
TEST(Http1Server, AnAbortedResponseWithoutFramingResetsTheConnection) {
  ServerDialogue d;
  bool aborts = true;
  d.application.on_end = [&](Received& received) {
    received.exchange->SendHead({.status = 200, .fields = {}, .body = kUnsized});
    received.exchange->SendData("a");
    if (aborts) return received.exchange->Abort();
    received.exchange->SendEnd({});
  };
  EXPECT_THAT(d.Say("GET / HTTP/1.0\r\n\r\n"), EndsWith("\r\n\r\na"));
  EXPECT_TRUE(d.progress.close);
  EXPECT_TRUE(d.progress.reset);

  ServerDialogue chunked;
  chunked.application.on_end = d.application.on_end;
  chunked.Say(kGet);
  EXPECT_TRUE(chunked.progress.close);
  EXPECT_FALSE(chunked.progress.reset) << "the last chunk is missing";

  aborts = false;
  ServerDialogue whole;
  whole.application.on_end = d.application.on_end;
  whole.Say("GET / HTTP/1.0\r\n\r\n");
  EXPECT_TRUE(whole.progress.close);
  EXPECT_FALSE(whole.progress.reset);
}

TEST(Http1Server, AResponseThatIsShorterThanItsLengthIsAborted) {
  ServerDialogue d;
  d.application.on_end = [](Received& received) {
    received.exchange->SendHead({.status = 200, .fields = {}, .body = Sized(3)});
    received.exchange->SendData("ab");
    received.exchange->SendEnd({});
  };
  EXPECT_THAT(d.Say(std::string(kGet) + std::string(kGet)), EndsWith("\r\n\r\nab"));
  EXPECT_TRUE(d.progress.close);
  EXPECT_EQ(d.application.requests.size(), 1u);
}

TEST(Http1Server, RefusesABadBodyWhileThereIsNoAnswer) {
  ServerDialogue d;
  d.Say(Post("Transfer-Encoding: chunked\r\n", "1\r\na\r\n"));
  const std::string output = d.Say("x\r\n");
  EXPECT_THAT(output, StartsWith("HTTP/1.1 400 Bad Request\r\n"));
  EXPECT_THAT(output, HasSubstr("Connection: close\r\n"));
  EXPECT_TRUE(d.progress.close);
  EXPECT_TRUE(d.progress.protocol_error);
  EXPECT_TRUE(d.application.last().aborted);
}

TEST(Http1Server, CutsTheAnswerToABadBodyOff) {
  ServerDialogue d;
  d.Say(Post("Transfer-Encoding: chunked\r\n", "1\r\na\r\n"));
  d.application.last().exchange->SendHead({.status = 200, .fields = {}, .body = kUnsized});
  EXPECT_THAT(d.Run(), StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_EQ(d.Say("x\r\n"), "");
  EXPECT_TRUE(d.progress.close);
  EXPECT_TRUE(d.application.last().aborted);
}

TEST(Http1Server, SaysNothingOnAnIdleConnectionThatIsClosed) {
  ServerDialogue d;
  std::string output;
  d.session->OnGivenUp(net::Session::GivenUp::kIdle, output, kNow);
  EXPECT_EQ(output, "")
      << "a client that sends its next request now must not take it for an answer";
}

TEST(Http1Server, TellsASlowClientThatItWasTooSlow) {
  ServerDialogue d;
  d.Say("GET / HT");
  EXPECT_TRUE(d.progress.mid_request);
  std::string output;
  d.session->OnGivenUp(net::Session::GivenUp::kTooSlow, output, kNow);
  EXPECT_THAT(output, Not(HasSubstr("request_timeout"))) << "no setting of the sidecar";
  EXPECT_THAT(output, StartsWith("HTTP/1.1 408 Request Timeout\r\n"
                                 "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"));
  output.clear();
  base::ManualClock clock{base::WallTime::FromNanos(kNow.ns)};
  clock.StepWall(std::chrono::hours(2));
  ServerDialogue set({.clock = &clock});
  EXPECT_THAT(set.Say("nonsense\r\n\r\n"), StartsWith("HTTP/1.1 400 Bad Request\r\n"
                                                      "Date: Sun, 06 Nov 1994 10:49:37 GMT\r\n"))
      << "the time of day, which has been set; decisions do not follow at once";
  output.clear();
  ServerDialogue open;
  open.application.on_end = Silent;
  open.Say(kGet);
  open.session->OnGivenUp(net::Session::GivenUp::kNoBuffers, output, kNow);
  EXPECT_THAT(output, StartsWith("HTTP/1.1 503 "));
  EXPECT_TRUE(open.application.last().aborted);
}

}  // namespace server_session_test
}  // namespace headgate::http::http1
