#include "headgate/http/client.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace headgate::http {
namespace client_test {

// Parses a response that arrives in pieces of at most `piece_bytes`, followed by the end of the
// connection.
absl::StatusOr<Reply> Parse(std::string_view bytes, size_t piece_bytes = 1 << 20) {
  ReplyParser parser;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece_bytes, bytes.size()))) {
    HEADGATE_RETURN_IF_ERROR(parser.Take(bytes.substr(0, piece_bytes)));
  }
  HEADGATE_RETURN_IF_ERROR(parser.TakeEnd());
  return parser.TakeReply();
}

TEST(HttpReply, IsStatusAndBodyHoweverItsLengthIsStated) {
  for (const char* bytes : {"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 5\r\n\r\nhello",
                            "HTTP/1.1 429 Too Many Requests\r\nTransfer-Encoding: "
                            "chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n",
                            "HTTP/1.0 429 Too Many Requests\r\n\r\nhello"}) {
    for (const size_t piece_bytes : {1u, 7u, 1000u}) {
      const auto reply = Parse(bytes, piece_bytes);
      ASSERT_TRUE(reply.ok()) << bytes << reply.status();
      EXPECT_EQ(reply->status, 429);
      EXPECT_EQ(reply->body, "hello");
    }
  }
}

TEST(HttpReply, IsDoneWithoutTheEndOfTheConnection) {
  ReplyParser parser;
  ASSERT_TRUE(parser.Take("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{").ok());
  EXPECT_FALSE(parser.done());
  ASSERT_TRUE(parser.Take("}HTTP/1.1 500 Next\r\n").ok());
  EXPECT_TRUE(parser.done());
  EXPECT_EQ(parser.TakeReply().body, "{}");
}

TEST(HttpReply, IsNothingElse) {
  for (const char* bytes : {"", "HTTP/1.1 200 OK\r\n", "-ERR no\r\n\r\n", "HTTP/1.1 2x0 OK\r\n\r\n",
                            "HTTP/1.1 20\r\n\r\n", "HTTP/1.\r\n\r\n", "HTTP/2 200\r\n\r\n",
                            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}",
                            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n"}) {
    for (const size_t piece_bytes : {1u, 1000u}) {
      EXPECT_EQ(Parse(bytes, piece_bytes).status().code(), absl::StatusCode::kDataLoss) << bytes;
    }
  }
}

TEST(HttpReply, IsBounded) {
  const std::string head = "HTTP/1.1 200 OK\r\n";
  EXPECT_FALSE(Parse(head + "X: " + std::string(ReplyParser::kHeadBytesMax, 'x')).ok());
  const std::string body(ReplyParser::kBodyBytesMax, 'x');
  EXPECT_TRUE(Parse(head + "\r\n" + body).ok());
  EXPECT_EQ(Parse(head + "\r\n" + body + "x").status().message(),
            "the answer is longer than 16777216 bytes");
}

}  // namespace client_test
}  // namespace headgate::http
