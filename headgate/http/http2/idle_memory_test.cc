// The memory of an idle connection of a server. 10,000 of them should fit into 150 MiB with their
// sockets and the rest of the process.
#include <gtest/gtest.h>
#include <malloc.h>

#include <memory>
#include <string>
#include <vector>

#include "headgate/http/http2/test_raw_server.h"

namespace headgate::http::http2 {
namespace idle_memory_test {

constexpr size_t kSessions = 200;
constexpr size_t kBytesMax = 11 * 1024;

std::string BytesOf(int requests) {
  std::string bytes = std::string(kPreface) + Settings() + Settings("", kAck);
  for (int i = 0; i < requests; ++i)
    bytes += Headers(static_cast<uint32_t>(1 + 2 * i), With(Get(), {{"user-agent", "test"}}));
  return bytes;
}

TEST(IdleMemory, AnIdleConnectionCostsElevenKilobytes) {
  for (const int requests : {0, 1, 20}) {
    TestApplication application;
    application.on_end = [](TestRequest& request) {
      request.exchange->SendHead({.status = 204});
      request.exchange->SendEnd({});
    };
    Counters counters;
    const ServerOptions options;
    const std::string bytes = BytesOf(requests);
    std::string output;
    output.reserve(size_t{1} << 20);
    std::vector<std::unique_ptr<ServerSession>> sessions;
    sessions.reserve(kSessions);
    const size_t before = mallinfo2().uordblks;
    for (size_t i = 0; i < kSessions; ++i) {
      sessions.push_back(
          std::make_unique<ServerSession>(application, options, net::Peer{}, counters));
      output.clear();
      (void)sessions.back()->OnBytes(bytes, output, kNow);
      application.requests.clear();
    }
    // Sanitizers replace malloc; then it is 0.
    const size_t each = (mallinfo2().uordblks - before) / kSessions;
    EXPECT_LE(each, kBytesMax) << "after " << requests << " requests";
    EXPECT_EQ(counters.malformed_heads.value(), 0u);
  }
}

TEST(FrameBuffer, SessionsOfAThreadDoNotDisturbEachOther) {
  RawServer first;
  RawServer second;
  const std::string large(40'000, 'a');  // needs CONTINUATION, so a second buffer
  for (RawServer* server : {&first, &second}) {
    server->application.on_end = [&](TestRequest& request) {
      ResponseHead head{.status = 200, .body = {.kind = BodyLength::Kind::kSized, .bytes = 5}};
      head.fields.Add("x", request.head.target == "/large" ? large : "y");
      request.exchange->SendHead(head);
      request.exchange->SendData("hello");
      request.exchange->SendEnd({});
    };
  }
  for (uint32_t stream = 1; stream < 20; stream += 2) {
    const bool is_large = stream % 4 == 1;
    const std::string bytes = Headers(stream, Get(is_large ? "/large" : "/"));
    for (RawServer* server : {&first, &second}) {
      std::string output;
      (void)server->session.OnBytes(bytes, output, kNow);
      EXPECT_EQ(output.size() > large.size() / 2, is_large);
      server->session.OnUnsent(0, kNow);
      const std::vector<std::string> lines = server->log.Read(output);
      EXPECT_EQ(lines.back(), "DATA " + std::to_string(stream) + " 5 end");
      EXPECT_EQ(lines.size(), is_large ? 3u : 2u);
    }
  }
  EXPECT_EQ(first.log.data.size(), 50u);
}

}  // namespace idle_memory_test
}  // namespace headgate::http::http2
