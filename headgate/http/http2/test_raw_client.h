// A client that tests answer in frames of their own.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headgate/http/http2/client_session.h"
#include "headgate/http/http2/test_exchanges.h"
#include "headgate/http/http2/test_frames.h"

namespace headgate::http::http2 {

class RawClient {
 public:
  // By default, the server has sent these settings.
  explicit RawClient(std::string_view settings = Settings(Setting(8, 1)),
                     ClientOptions of_client = {})
      : options(of_client) {
    session.SetWaker([this] { woken = true; });
    std::string& output = session.output();
    EXPECT_EQ(output.substr(0, kPreface.size()), kPreface);
    output.erase(0, kPreface.size());
    if (!settings.empty()) (void)Say(std::string(settings) + Settings("", kAck));
  }
  ~RawClient() { session.OnBroken("the test is over", kNow); }

  TestResponse& Begin(const RequestHead& head) {
    responses.push_back(std::make_unique<TestResponse>());
    TestResponse& response = *responses.back();
    response.exchange = &session.Begin(head, response, kNow);
    return response;
  }
  TestResponse& Begin(std::string_view method = "GET", BodyLength body = {}) {
    RequestHead head{.version = Version::kHttp2};
    head.method = method;
    head.scheme = "http";
    head.authority = "a.example";
    head.target = "/";
    head.body = body;
    return Begin(head);
  }

  // Feeds bytes. Returns the frames of the output, all of which the system sends at once.
  std::vector<std::string> Say(std::string_view bytes) {
    if (!bytes.empty()) session.OnBytes(bytes, kNow);
    std::vector<std::string> lines;
    do {
      woken = false;
      for (std::string& line : log.Read(std::exchange(session.output(), {})))
        lines.push_back(std::move(line));
      session.OnUnsent(0, kNow);
    } while (woken);
    return lines;
  }

  const ClientOptions options;
  Counters counters;
  std::vector<std::unique_ptr<TestResponse>> responses;
  ClientSession session{options, counters};
  FrameLog log;
  bool woken = false;
};

}  // namespace headgate::http::http2
