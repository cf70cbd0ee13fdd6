// A conversation with an Session for tests: what is said, what the handler is asked, what comes
// back.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headgate/http/session.h"

namespace headgate::http {

// Sun, 06 Nov 1994 08:49:37 GMT, RFC 9110's example.
inline constexpr base::Instant kNow = base::Instant::FromNanos(784'111'777'000'000'000);

// Answers with what it was asked, so that a test reads both.
class Echo final : public Handler {
 public:
  void Handle(const Request& request, Response& response, base::Instant now) override {
    EXPECT_EQ(now, kNow);
    asked.push_back(std::string(request.method) + " " + std::string(request.target) + " " +
                    std::string(request.body));
    if (waits > 0) {
      --waits;
      response.later = true;
      response.body = "dropped";
      return;
    }
    custom.push_back(std::string(request.Field("x-custom")));
    response.status = status;
    response.AddField("X-Answer", "yes");
    response.body = answer.empty() ? std::string(request.body) : answer;
  }
  int status = 200;
  int waits = 0;  // how often the answer comes later
  std::string answer;
  std::vector<std::string> asked;
  std::vector<std::string> custom;
};

struct Dialogue {
  explicit Dialogue(Options o = {}) : options(std::move(o)) {}

  // As the event loop does it: what is not consumed is shown again.
  std::string Say(std::string_view bytes) {
    rest.append(bytes);
    std::string output;
    do {
      progress = session.OnBytes(rest, output, kNow);
      rest.erase(0, progress.consumed);
    } while (progress.more);
    return output;
  }

  Options options;
  Echo handler;
  Session session{handler, options, net::Peer{}};
  Session::Progress progress;
  std::string rest;
};

inline constexpr std::string_view kGet = "GET /x?y=1 HTTP/1.1\r\nHost: localhost\r\n\r\n";
inline constexpr std::string_view kPost =
    "POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello";

inline std::string Get(const std::string& fields) { return "GET / HTTP/1.1\r\n" + fields + "\r\n"; }
inline std::string Post(const std::string& fields, const std::string& body = "") {
  return "POST / HTTP/1.1\r\nHost: localhost\r\n" + fields + "\r\n" + body;
}

}  // namespace headgate::http
