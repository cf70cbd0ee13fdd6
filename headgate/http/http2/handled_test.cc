// A handler over HTTP/2: what a route can do, and the bounds of its streams.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "headgate/http/body.h"
#include "headgate/http/handler_application.h"
#include "headgate/http/http2/test_pair.h"
#include "headgate/http/routing/router.h"

namespace headgate::http::http2 {
namespace handled_test {

using namespace std::chrono_literals;
using ::testing::IsEmpty;

// Text that the test adds to; without an end.
class Events final : public BodySource {
 public:
  explicit Events(std::string& ready) : ready_(ready) {}
  Next Read(size_t /*bytes_max*/, std::string& out, base::Instant /*now*/) override {
    out += std::exchange(ready_, {});
    return Next::kLater;
  }
  bool endless() const override { return true; }

 private:
  std::string& ready_;
};

// A server of routes and its client, in memory.
struct Handled {
  Handled() {
    const auto add = [this](std::string method, std::string path,
                            std::function<void(const Request&, Response&)> handle) {
      router.Add({.methods = {std::move(method)},
                  .path = std::move(path),
                  .content_types = {},
                  .handle = [handle](const Request& request, Response& response, base::Instant) {
                    handle(request, response);
                  }});
    };
    add("POST", "/echo",
        [](const Request& request, Response& response) { response.body = request.body; });
    add("GET", "/later", [this](const Request& request, Response& response) {
      ++asked;
      response.later = !answer;
      wake = request.suspension->wake;
      response.body = answer ? "now" : "dropped";
    });
    add("GET", "/events", [this](const Request& request, Response& response) {
      response.AddField("Content-Type", "text/event-stream");
      wake = request.suspension->wake;
      response.stream = std::make_unique<Events>(events);
    });
    add("GET", "/page", [this](const Request&, Response& response) { response.body = events; });
    add("POST", "/fields", [](const Request& request, Response& response) {
      for (const auto& [name, value] : request.fields)
        response.body.append(name).append("=").append(value).append(";");
    });
    // A message of gRPC: a flag, the length in four bytes, and the message.
    add("POST", "/a.Service/Say", [](const Request& request, Response& response) {
      response.AddField("Content-Type", "application/grpc");
      response.body = std::string("\0\0\0\0\2", 5) + "ok";
      response.trailers.Add("grpc-status", request.body.size() < 5 ? "13" : "0");
    });
    server.SetWaker([this] { woken = true; });
  }
  ~Handled() { client.OnBroken("the test is over", now); }

  void Run() {
    do {
      woken = false;
      const std::string bytes = std::exchange(client.output(), {});
      std::string output;
      if (!progress.close) progress = server.OnBytes(bytes, output, now);
      client.OnUnsent(0, now);
      server.OnUnsent(0, now);
      if (!output.empty()) client.OnBytes(output, now);
    } while (woken || !client.output().empty());
  }
  TestResponse& Begin(RequestHead head, bool consumes = true) {
    head.authority = "localhost";
    responses.push_back(std::make_unique<TestResponse>());
    TestResponse& response = *responses.back();
    response.consumes = consumes;
    response.exchange = &client.Begin(head, response, now);
    Run();
    return response;
  }
  TestResponse& Post(std::string target, std::string_view body) {
    RequestHead head = MakePost(Sized(body.size()));
    head.target = std::move(target);
    TestResponse& response = Begin(std::move(head));
    if (response.ended) return response;  // the head was refused
    response.exchange->SendData(body);
    response.exchange->SendEnd({});
    Run();
    return response;
  }

  base::Instant now = kNow;
  access::Access access;
  routing::Router router{"test", access};
  bool answer = false;
  int asked = 0;
  std::string events;
  std::function<void()> wake;
  const HandlerOptions options{.body_bytes_max = 100};
  HandlerApplication application{router, options};
  const ServerOptions server_options{.request_timeout = 10s, .for_handlers = true};
  const ClientOptions client_options;
  Counters server_counters;
  Counters client_counters;
  std::vector<std::unique_ptr<TestResponse>> responses;
  ServerSession server{application, server_options, net::Peer{}, server_counters};
  ClientSession client{client_options, client_counters};
  net::Session::Progress progress;
  bool woken = false;
};

TEST(HandledHttp2, ARequestHasItsBodyAndItsAnswer) {
  Handled pair;
  const TestResponse& response = pair.Post("/echo", "hello");
  EXPECT_EQ(response.head->status, 200);
  EXPECT_EQ(response.body, "hello");
  EXPECT_TRUE(response.ended);
  EXPECT_EQ(response.head->fields.Find("Date"), "Thu, 01 Jan 1970 00:16:40 GMT");
}

TEST(HandledHttp2, AForeignHostAndALongBodyAreRefused) {
  Handled pair;
  EXPECT_EQ(pair.Post("/echo", std::string(101, 'x')).head->status, 413);
  RequestHead unsized = MakePost(kUnsized);
  unsized.target = "/echo";
  TestResponse& response = pair.Begin(std::move(unsized));
  response.exchange->SendData(std::string(101, 'x'));
  pair.Run();
  EXPECT_EQ(response.head->status, 413);
  RequestHead foreign = MakeGet("/later");
  pair.responses.push_back(std::make_unique<TestResponse>());
  TestResponse& refused = *pair.responses.back();
  refused.exchange = &pair.client.Begin(foreign, refused, pair.now);
  pair.Run();
  EXPECT_EQ(refused.head->status, 421);
  EXPECT_EQ(pair.asked, 0);
}

TEST(HandledHttp2, AnAnswerThatComesLaterIsAskedForAfterItsWake) {
  Handled pair;
  const TestResponse& response = pair.Begin(MakeGet("/later"));
  EXPECT_FALSE(response.head);
  pair.Run();
  EXPECT_EQ(pair.asked, 1) << "nobody has woken it";
  pair.answer = true;
  pair.wake();
  pair.Run();
  EXPECT_EQ(pair.asked, 2);
  EXPECT_EQ(response.body, "now");
}

TEST(HandledHttp2, OneStreamWaitsAndOthersAreAnswered) {
  Handled pair;
  const TestResponse& waits = pair.Begin(MakeGet("/later"));
  EXPECT_EQ(pair.Post("/echo", "b").body, "b");
  EXPECT_FALSE(waits.head);
}

TEST(HandledHttp2, AStreamThatIsTooSlowIsReset) {
  Handled pair;
  RequestHead head = MakePost(Sized(5));
  head.target = "/echo";
  const TestResponse& slow = pair.Begin(std::move(head));
  const TestResponse& unanswered = pair.Begin(MakeGet("/later"));
  ASSERT_TRUE(pair.progress.call_at);
  pair.now += 9s;
  pair.Run();
  EXPECT_FALSE(slow.failure);
  const TestResponse& quiet = pair.Begin(MakeGet("/events"));
  pair.now += 1s;
  EXPECT_LE(*pair.progress.call_at, pair.now);
  pair.Run();
  EXPECT_TRUE(slow.failure);
  EXPECT_TRUE(unanswered.failure);
  EXPECT_FALSE(quiet.failure);
  EXPECT_FALSE(pair.progress.close) << "the other streams stay";
  EXPECT_EQ(pair.server_counters.timeouts.value(), 2u);
  pair.now += 1h;
  pair.Run();
  EXPECT_FALSE(quiet.failure) << "events may take forever";
}

TEST(HandledHttp2, AClientThatOpensNoWindowIsGivenUp) {
  Handled pair;
  pair.events = std::string(300'000, 'x');
  const TestResponse& response = pair.Begin(MakeGet("/page"), false);
  EXPECT_FALSE(response.ended);
  pair.now += 10s;
  pair.Run();
  EXPECT_FALSE(response.failure) << "it may have taken something since";
  pair.now += 10s;
  pair.Run();
  EXPECT_TRUE(response.failure);
}

TEST(HandledHttp2, AStreamCountsTheMemoryOfItsHead) {
  Handled pair;
  RequestHead head = MakePost(Sized(5));
  head.target = "/echo";
  head.fields.Add("x-large", std::string(30'000, 'x'));
  (void)pair.Begin(std::move(head));
  EXPECT_GE(pair.server.BufferedBytes(), 30'000u);
}

TEST(HandledHttp2, HeadsThatAreRefusedAreAnsweredAndNoFlood) {
  Handled pair;
  for (int i = 0; i < 1000; ++i) {
    RequestHead head = MakeGet("/later");
    for (int field = 0; field < 101; ++field) head.fields.Add("x-" + std::to_string(field), "1");
    const TestResponse& response = pair.Begin(std::move(head));
    ASSERT_EQ(response.head->status, 431);
    ASSERT_EQ(response.head->fields.Find("Content-Type"), "application/problem+json");
  }
  EXPECT_FALSE(pair.progress.close);
  EXPECT_EQ(pair.server_counters.refused_heads.value(), 1000u);
}

TEST(HandledHttp2, AHandlerSeesTheFieldsThatHttp1Has) {
  Handled pair;
  EXPECT_THAT(pair.Post("/fields", "hello").body,
              ::testing::AllOf(::testing::HasSubstr("Host=localhost;"),
                               ::testing::HasSubstr("Content-Length=5;")));
}

TEST(HandledHttp2, NobodyOpensATunnel) {
  Handled pair;
  EXPECT_EQ(pair.Begin(MakeTunnel()).head->status, 501);
}

TEST(HandledHttp2, AnEventStreamLastsUntilTheServerGoesDown) {
  Handled pair;
  pair.events = "data: 1\n\n";
  const TestResponse& response = pair.Begin(MakeGet("/events"));
  EXPECT_EQ(response.head->fields.Find("Content-Type"), "text/event-stream");
  EXPECT_EQ(response.body, "data: 1\n\n");
  EXPECT_FALSE(response.ended);
  pair.events = "data: 2\n\n";
  pair.wake();
  pair.Run();
  EXPECT_EQ(response.body, "data: 1\n\ndata: 2\n\n");
  pair.server.OnDrain();
  pair.Run();
  EXPECT_TRUE(response.ended);
}

TEST(HandledHttp2, ARouteAnswersUnaryGrpcWithTrailers) {
  Handled pair;
  const TestResponse& response = pair.Post("/a.Service/Say", std::string("\0\0\0\0\1x", 6));
  EXPECT_EQ(response.head->status, 200);
  EXPECT_EQ(response.body, std::string("\0\0\0\0\2ok", 7));
  EXPECT_EQ(response.trailers.Find("grpc-status"), "0");
  EXPECT_TRUE(response.ended);
}

}  // namespace handled_test
}  // namespace headgate::http::http2
