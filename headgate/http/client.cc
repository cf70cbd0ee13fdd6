#include "headgate/http/client.h"

#include <fmt/format.h>

#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <utility>

#include "headgate/base/clock.h"
#include "headgate/net/blocking_client.h"
#include "headgate/net/stream.h"

namespace headgate::http {
namespace {

namespace beast_http = boost::beast::http;

absl::Status NotHttp() { return absl::DataLossError("the answer is not HTTP"); }

// A server that accepts the connection and then breaks it does not speak HTTP.
absl::Status OfAnother(const absl::Status& status) {
  return status.ok() || absl::IsDeadlineExceeded(status) ? status
                                                         : absl::DataLossError(status.message());
}

// The error of a parser, with the server that sent this.
absl::Status Named(const ServerAccess& server, const absl::Status& status) {
  if (!absl::IsDataLoss(status)) return status;
  return absl::DataLossError(
      fmt::format("{}: {}", server.endpoint.ToString(), std::string(status.message())));
}

absl::Status Receive(net::BlockingClient& client, ReplyParser& parser) {
  while (!parser.done()) {
    const absl::StatusOr<std::string> bytes = client.ReadSome();
    if (!bytes.ok()) return bytes.status();
    HEADGATE_RETURN_IF_ERROR(bytes->empty() ? parser.TakeEnd() : parser.Take(*bytes));
  }
  return absl::OkStatus();
}

// A request and its response over TLS.
class TlsExchange final : private net::Stream::Owner {
 public:
  TlsExchange(const ServerAccess& server, std::string_view request, base::Duration timeout)
      : request_(request),
        name_(server.endpoint.ToString()),
        timeout_(timeout),
        stream_(loop_, *this,
                {.tls = server.tls, .server_name = server.tls_name, .connect_timeout = timeout}) {
    stream_.Connect(net::TargetOf(server.endpoint));
  }

  absl::Status Run(ReplyParser& parser) {
    parser_ = &parser;
    if (loop_.RunUntil([this] { return done_; }, timeout_)) return status_;
    return absl::DeadlineExceededError(
        fmt::format("{}: no answer within {} ms", name_,
                    std::chrono::ceil<std::chrono::milliseconds>(timeout_).count()));
  }

 private:
  void OnConnected() override {
    connected_ = true;
    stream_.output() = request_;
    stream_.Flush();
  }
  void OnBytes(std::string_view bytes) override {
    status_ = parser_->Take(bytes);
    done_ = !status_.ok() || parser_->done();
  }
  void OnClosed(const absl::Status& why) override {
    status_ = connected_                   ? parser_->TakeEnd()
              : stream_.distrusts_server() ? absl::UnauthenticatedError(why.message())
                                           : why;
    done_ = true;
  }

  const std::string request_;
  const std::string name_;
  const base::Duration timeout_;
  const base::SystemClock clock_;
  net::EventLoop loop_{clock_};
  net::Stream stream_;
  ReplyParser* parser_ = nullptr;
  absl::Status status_;
  bool connected_ = false;
  bool done_ = false;
};

absl::Status Exchange(const ServerAccess& server, std::string_view request, base::Duration timeout,
                      ReplyParser& parser) {
  if (server.tls != nullptr)
    return Named(server, TlsExchange(server, request, timeout).Run(parser));
  HEADGATE_ASSIGN_OR_RETURN(net::BlockingClient client,
                            net::BlockingClient::ConnectForOneExchange(server.endpoint, timeout));
  HEADGATE_RETURN_IF_ERROR(OfAnother(client.Send(request)));
  const absl::Status received = Receive(client, parser);
  return absl::IsDataLoss(received) ? Named(server, received) : OfAnother(received);
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
  const std::string_view etag(message[beast_http::field::etag].data(),
                              message[beast_http::field::etag].size());
  return {.status = static_cast<int>(message.result_int()),
          .body = std::move(message.body()),
          .etag = std::string(etag)};
}

absl::StatusOr<Reply> Ask(const ServerAccess& server, const Question& question,
                          base::Duration timeout) {
  std::string request = fmt::format("{} {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n",
                                    question.method, question.path);
  if (!server.credential.empty())
    request += fmt::format("Authorization: Bearer {}\r\n", server.credential);
  request += question.fields;
  if (question.body) {
    request += fmt::format("Content-Length: {}\r\n\r\n{}", question.body->size(), *question.body);
  } else {
    request += "\r\n";
  }
  ReplyParser parser;
  HEADGATE_RETURN_IF_ERROR(Exchange(server, request, timeout, parser));
  return parser.TakeReply();
}

absl::StatusOr<Reply> GetFrom(const ServerAccess& server, std::string_view path,
                              base::Duration timeout) {
  return Ask(server, {.path = std::string(path)}, timeout);
}

absl::StatusOr<Reply> PostJson(const ServerAccess& server, std::string_view path,
                               std::string_view body, base::Duration timeout) {
  return Ask(server,
             {.method = "POST",
              .path = std::string(path),
              .fields = "Content-Type: application/json\r\n",
              .body = std::string(body)},
             timeout);
}

}  // namespace headgate::http
