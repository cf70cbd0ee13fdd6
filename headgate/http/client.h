// Sends one HTTP request for a command-line tool and waits for the response. All waits and sizes
// are bounded.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "headgate/base/status.h"
#include "headgate/base/time.h"
#include "headgate/net/endpoint.h"
#include "headgate/net/tls_context.h"

namespace headgate::http {

struct Reply {
  int status = 0;
  std::string body{};
  std::string etag{};  // the ETag field, with its quotes; empty if there is none
};

// Parses a response that arrives in any pieces: with Content-Length, chunked, or up to the end of
// the connection.
class ReplyParser {
 public:
  static constexpr size_t kHeadBytesMax = size_t{64} << 10;
  static constexpr size_t kBodyBytesMax = size_t{16} << 20;

  ReplyParser();
  ~ReplyParser();

  // DataLoss if the bytes are not HTTP/1 or exceed a bound. Bytes after the end of the response are
  // ignored.
  absl::Status Take(std::string_view bytes);
  // Call it when the connection ends. DataLoss if the response is incomplete.
  absl::Status TakeEnd();
  bool done() const;
  // Returns the response. Call it once, when done() is true.
  Reply TakeReply();

 private:
  struct Beast;
  std::unique_ptr<Beast> beast_;
};

// A server, and how to reach it.
struct ServerAccess {
  net::Endpoint endpoint{};
  std::shared_ptr<net::TlsContext> tls{};  // null: plain
  std::string tls_name{};    // the name required in the certificate; empty: the endpoint's address
  std::string credential{};  // sent as bearer token: a credential, or USER:PASSWORD; empty: none
};

// Unavailable if the connection is refused, Unauthenticated if the server's certificate is not
// trusted or has another name, DeadlineExceeded if the exchange takes longer than `timeout`,
// DataLoss if the response is not HTTP.
struct Question {
  std::string method = "GET";
  std::string path = "/";
  // Further lines of the head, each with its CRLF.
  std::string fields{};
  std::optional<std::string> body{};
};
absl::StatusOr<Reply> Ask(const ServerAccess& server, const Question& question,
                          base::Duration timeout);

absl::StatusOr<Reply> GetFrom(const ServerAccess& server, std::string_view path,
                              base::Duration timeout);
absl::StatusOr<Reply> PostJson(const ServerAccess& server, std::string_view path,
                               std::string_view body, base::Duration timeout);

}  // namespace headgate::http
