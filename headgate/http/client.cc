#include "headgate/http/client.h"

#include <fmt/format.h>

#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <utility>

#include "headgate/net/blocking_client.h"

namespace headgate::http {
namespace {

namespace beast_http = boost::beast::http;

absl::Status NotHttp() { return absl::DataLossError("the answer is not HTTP"); }

// A server that accepts the connection and then breaks it does not speak HTTP.
absl::Status OfAnother(const absl::Status& status) {
  return status.ok() || absl::IsDeadlineExceeded(status) ? status
                                                         : absl::DataLossError(status.message());
}

absl::Status Receive(net::BlockingClient& client, ReplyParser& parser) {
  while (!parser.done()) {
    const absl::StatusOr<std::string> bytes = client.ReadSome();
    if (!bytes.ok()) return bytes.status();
    HEADGATE_RETURN_IF_ERROR(bytes->empty() ? parser.TakeEnd() : parser.Take(*bytes));
  }
  return absl::OkStatus();
}

absl::StatusOr<Reply> Ask(const net::Endpoint& server, std::string_view request,
                          base::Duration timeout) {
  HEADGATE_ASSIGN_OR_RETURN(net::BlockingClient client,
                            net::BlockingClient::Connect(server, timeout));
  HEADGATE_RETURN_IF_ERROR(OfAnother(client.Send(request)));
  ReplyParser parser;
  const absl::Status received = Receive(client, parser);
  if (received.ok()) return parser.TakeReply();
  if (!absl::IsDataLoss(received)) return OfAnother(received);
  return absl::DataLossError(
      fmt::format("{}: {}", server.ToString(), std::string(received.message())));
}

}  // namespace

struct ReplyParser::Beast {
  beast_http::response_parser<beast_http::string_body> parser;
  std::string rest;  // not consumed by the parser yet
};

ReplyParser::ReplyParser() : beast_(std::make_unique<Beast>()) {
  beast_->parser.header_limit(kHeadBytesMax);
  beast_->parser.body_limit(kBodyBytesMax);
  beast_->parser.eager(true);
}

ReplyParser::~ReplyParser() = default;

bool ReplyParser::done() const { return beast_->parser.is_done(); }

absl::Status ReplyParser::Take(std::string_view bytes) {
  std::string& rest = beast_->rest;
  rest.append(bytes);
  while (!rest.empty() && !done()) {
    boost::beast::error_code error;
    const size_t taken =
        beast_->parser.put(boost::beast::net::const_buffer(rest.data(), rest.size()), error);
    rest.erase(0, taken);
    if (error == beast_http::error::need_more) return absl::OkStatus();
    if (error == beast_http::error::body_limit) {
      return absl::DataLossError(fmt::format("the answer is longer than {} bytes", kBodyBytesMax));
    }
    if (error) return NotHttp();
  }
  return absl::OkStatus();
}

absl::Status ReplyParser::TakeEnd() {
  if (done()) return absl::OkStatus();
  if (!beast_->parser.is_header_done()) return NotHttp();
  boost::beast::error_code error;
  beast_->parser.put_eof(error);
  if (error || !done()) return absl::DataLossError("the answer ends in the middle");
  return absl::OkStatus();
}

Reply ReplyParser::TakeReply() {
  auto& message = beast_->parser.get();
  return {.status = static_cast<int>(message.result_int()), .body = std::move(message.body())};
}

absl::StatusOr<Reply> GetFrom(const net::Endpoint& server, std::string_view path,
                              base::Duration timeout) {
  return Ask(server,
             fmt::format("GET {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path),
             timeout);
}

absl::StatusOr<Reply> PostJson(const net::Endpoint& server, std::string_view path,
                               std::string_view body, base::Duration timeout) {
  return Ask(server,
             fmt::format("POST {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                         "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
                         path, body.size(), body),
             timeout);
}

}  // namespace headgate::http
