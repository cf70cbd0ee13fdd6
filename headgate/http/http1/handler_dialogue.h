// A conversation with a handler over HTTP/1 for tests: the bytes sent, the requests that the
// handler got, and the output.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headgate/http/handler_application.h"
#include "headgate/http/http1/server_dialogue.h"
#include "headgate/http/http1/server_session.h"

namespace headgate::http::http1 {

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
      wake = [suspension = request.suspension] { suspension->wake(); };
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
  std::function<void()> wake;  // of a request that waits
};

// The session of a handler, with the bounds that both know.
struct HandlerSession {
  HandlerSession(Handler& handler, HandlerOptions handler_options, Bounds bounds)
      : options(std::move(handler_options)),
        server_options{.bounds = bounds, .cancels_abandoned = false, .clock = options.clock},
        application(handler, options) {
    options.body_bytes_max = bounds.body_bytes_max;
  }
  HandlerOptions options;
  const ServerOptions server_options;
  HandlerApplication application;
  ServerSession session{application, server_options, net::Peer{}};
};

struct Dialogue {
  explicit Dialogue(HandlerOptions options = {}, Bounds bounds = {})
      : parts(handler, std::move(options), bounds) {
    session.SetWaker([this] { ++woken; });
  }

  // Feeds bytes like the event loop: bytes that were not consumed are passed again. Wakes a request
  // that waits since an earlier call.
  std::string Say(std::string_view bytes) {
    if (handler.wake) std::exchange(handler.wake, {})();
    rest.append(bytes);
    std::string output;
    do {
      woken = 0;
      progress = session.OnBytes(rest, output, kNow);
      rest.erase(0, progress.consumed);
    } while (!progress.close && (progress.more || woken > 0));
    return output;
  }

  Echo handler;
  HandlerSession parts;
  ServerSession& session = parts.session;
  net::Session::Progress progress;
  std::string rest;
  int woken = 0;
};

inline constexpr std::string_view kLocalGet = "GET /x?y=1 HTTP/1.1\r\nHost: localhost\r\n\r\n";
inline constexpr std::string_view kLocalPost =
    "POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello";

inline std::string LocalGet(const std::string& fields) {
  return "GET / HTTP/1.1\r\n" + fields + "\r\n";
}
inline std::string LocalPost(const std::string& fields, const std::string& body = "") {
  return "POST / HTTP/1.1\r\nHost: localhost\r\n" + fields + "\r\n" + body;
}

}  // namespace headgate::http::http1
