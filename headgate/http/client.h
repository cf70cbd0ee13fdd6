// One HTTP request from a command line: sends it, and waits for the answer. Every wait and every
// answer is bounded.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "headgate/base/status.h"
#include "headgate/base/time.h"
#include "headgate/net/endpoint.h"

namespace headgate::http {

struct Reply {
  int status = 0;
  std::string body;
};

// Takes an answer's bytes in any pieces: with Content-Length, in chunks, or up to the end of the
// connection.
class ReplyParser {
 public:
  static constexpr size_t kHeadBytesMax = size_t{64} << 10;
  static constexpr size_t kBodyBytesMax = size_t{16} << 20;

  ReplyParser();
  ~ReplyParser();

  // DataLoss if the bytes are not HTTP/1, or exceed a bound. Bytes behind the end of the answer are
  // passed over.
  absl::Status Take(std::string_view bytes);
  // The connection has ended. DataLoss if the answer is not whole.
  absl::Status TakeEnd();
  bool done() const;
  // Once it is done. Call it once.
  Reply TakeReply();

 private:
  struct Beast;
  std::unique_ptr<Beast> beast_;
};

// Unavailable if the connection is refused, DeadlineExceeded if a step takes longer than `timeout`,
// DataLoss if the answer is not HTTP.
absl::StatusOr<Reply> GetFrom(const net::Endpoint& server, std::string_view path,
                              base::Duration timeout);
absl::StatusOr<Reply> PostJson(const net::Endpoint& server, std::string_view path,
                               std::string_view body, base::Duration timeout);

}  // namespace headgate::http
