#include "headgate/app/http_client.h"

#include <fmt/format.h>

#include <charconv>

#include "headgate/net/blocking_client.h"

namespace headgate::app {
namespace {

constexpr size_t kReplyBytesMax = size_t{16} << 20;

// A program that takes the connection and then breaks it off, or answers without an end, does not speak HTTP.
absl::Status OfAnother(const absl::Status& status) {
  return status.ok() || absl::IsDeadlineExceeded(status) ? status : absl::DataLossError(status.message());
}

absl::StatusOr<HttpReply> Ask(const net::Endpoint& server, std::string_view request, base::Duration timeout) {
  HEADGATE_ASSIGN_OR_RETURN(net::BlockingClient client, net::BlockingClient::Connect(server, timeout));
  HEADGATE_RETURN_IF_ERROR(OfAnother(client.Send(request)));
  const absl::StatusOr<std::string> bytes = client.ReadToEnd(kReplyBytesMax);
  if (!bytes.ok()) return OfAnother(bytes.status());
  absl::StatusOr<HttpReply> reply = ParseHttpReply(*bytes);
  if (reply.ok()) return reply;
  return absl::DataLossError(fmt::format("{}: {}", server.ToString(), std::string(reply.status().message())));
}

}  // namespace

absl::StatusOr<HttpReply> ParseHttpReply(std::string_view bytes) {
  constexpr std::string_view kStart = "HTTP/1.";
  const size_t head_end = bytes.find("\r\n\r\n");
  const size_t status_at = kStart.size() + 2;  // past "1 "
  HttpReply reply;
  if (!bytes.starts_with(kStart) || head_end == std::string_view::npos || head_end < status_at + 3) {
    return absl::DataLossError("the answer is not HTTP");
  }
  const char* const digits = bytes.data() + status_at;
  const auto [end, error] = std::from_chars(digits, digits + 3, reply.status);
  if (error != std::errc() || end != digits + 3 || reply.status < 100)
    return absl::DataLossError("the answer is not HTTP");
  reply.body = bytes.substr(head_end + 4);
  return reply;
}

absl::StatusOr<HttpReply> GetFrom(const net::Endpoint& server, std::string_view path, base::Duration timeout) {
  return Ask(server, fmt::format("GET {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path), timeout);
}

absl::StatusOr<HttpReply> PostJson(const net::Endpoint& server, std::string_view path, std::string_view body,
                                   base::Duration timeout) {
  return Ask(server,
             fmt::format("POST {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                         "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
                         path, body.size(), body),
             timeout);
}

}  // namespace headgate::app
