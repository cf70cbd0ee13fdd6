// A server that tests talk to in frames of their own.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "headgate/http/http2/server_session.h"
#include "headgate/http/http2/test_exchanges.h"
#include "headgate/http/http2/test_frames.h"

namespace headgate::http::http2 {

class RawServer {
 public:
  // By default, the connection has begun: preface and SETTINGS were exchanged.
  enum class Start { kReady, kNothing };

  explicit RawServer(Start start = Start::kReady, ServerOptions of_server = {})
      : options(of_server) {
    session.SetWaker([this] { woken = true; });
    if (start == Start::kReady) (void)Say(std::string(kPreface) + Settings() + Settings("", kAck));
  }

  // Answers every request with 200 as soon as it is complete.
  void AnswerAll() {
    application.on_end = [](TestRequest& request) {
      request.exchange->SendHead({.status = 200});
      request.exchange->SendEnd({});
    };
  }

  // Feeds bytes, all of which the system sends at once. Returns the frames of the output.
  std::vector<std::string> Say(std::string_view bytes, base::Instant now = kNow) {
    std::vector<std::string> lines;
    do {
      woken = false;
      std::string output;
      if (closed) break;
      progress = session.OnBytes(bytes, output, now);
      EXPECT_EQ(progress.consumed, bytes.size());
      bytes = {};
      closed = progress.close;
      for (std::string& line : log.Read(output)) lines.push_back(std::move(line));
      if (!output.empty()) session.OnUnsent(0, now);
    } while (woken);
    return lines;
  }

  const ServerOptions options;
  Counters counters;
  TestApplication application;
  ServerSession session{application, options, net::Peer{}, counters};
  net::Session::Progress progress;
  FrameLog log;
  bool woken = false;
  bool closed = false;
};

}  // namespace headgate::http::http2
