// A conversation with a Session for tests: the bytes sent, the requests that the handler got, and
// the output.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headgate/http/session.h"

namespace headgate::http {

// The example of RFC 9110: Sun, 06 Nov 1994 08:49:37 GMT.
inline constexpr base::Instant kNow = base::Instant::FromNanos(784'111'777'000'000'000);

// Records each request and, by default, sends its body back.
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
  int waits = 0;  // how many calls answer later
  std::string answer;
  std::vector<std::string> asked;
  std::vector<std::string> custom;
};

struct Dialogue {
  explicit Dialogue(Options o = {}) : options(std::move(o)) {}

  // Feeds bytes like the event loop: bytes that were not consumed are passed again.
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
