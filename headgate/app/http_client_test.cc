#include "headgate/app/http_client.h"

#include <gtest/gtest.h>

namespace headgate::app {
namespace {

TEST(HttpReply, IsStatusAndBody) {
  const auto reply = ParseHttpReply("HTTP/1.1 429 Too Many Requests\r\nContent-Length: 2\r\n\r\n{}");
  ASSERT_TRUE(reply.ok());
  EXPECT_EQ(reply->status, 429);
  EXPECT_EQ(reply->body, "{}");
}

TEST(HttpReply, IsNothingElse) {
  for (const char* bytes : {"", "HTTP/1.1 200 OK\r\n", "-ERR no\r\n\r\n", "HTTP/1.1 2x0 OK\r\n\r\n",
                            "HTTP/1.1 20\r\n\r\n", "HTTP/1.\r\n\r\n", "HTTP/2 200\r\n\r\n"}) {
    EXPECT_EQ(ParseHttpReply(bytes).status().code(), absl::StatusCode::kDataLoss) << bytes;
  }
}

}  // namespace
}  // namespace headgate::app
