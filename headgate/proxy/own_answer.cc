#include "headgate/proxy/own_answer.h"

#include "headgate/http/date.h"
#include "headgate/http/problem.h"
#include "headgate/proxy/grpc.h"
#include "headgate/wire/origin.h"

namespace headgate::proxy {
namespace {

void AddGrpcFields(const OwnAnswer& answer, http::Fields& fields) {
  fields.Add("content-type", "application/grpc");
  fields.Add("grpc-status", std::to_string(static_cast<unsigned>(GrpcStatusOf(answer.status))));
  std::string message;
  AppendGrpcMessage(answer.detail, message);
  fields.Add("grpc-message", message);
  // gRPC's form of Retry-After (grpc-retry-pushback-ms), for the retry policy of clients.
  const auto retry_after =
      answer.fields == nullptr ? std::nullopt : answer.fields->Find("Retry-After");
  if (retry_after) fields.Add("grpc-retry-pushback-ms", std::string(*retry_after) + "000");
}

void AddCorsFields(const http::RequestHead& request, const CorsOptions& options,
                   wire::RateLimitDialect dialect, http::Fields& fields) {
  if (options.origins.empty()) return;
  std::optional<std::string_view> sent;
  if (request.fields.CountOf("Origin") == 1) sent = request.fields.Find("Origin");
  std::string scratch;
  wire::EmitCorsFields(
      wire::FindAllowedOrigin(options.origins, sent), dialect, scratch,
      [&](std::string_view name, std::string_view value) { fields.Add(name, value); });
}

class Dropped final : public http::RequestReceiver {
 public:
  explicit Dropped(http::ServerExchange& exchange) : exchange_(exchange) {}
  void OnData(std::string_view bytes, base::Instant /*now*/) override {
    exchange_.Consumed(bytes.size());
  }
  void OnEnd(const http::Fields& /*trailers*/, base::Instant /*now*/) override {}
  void OnAbort(base::Instant /*now*/) override {}
  void OnWritable(base::Instant /*now*/) override {}

 private:
  http::ServerExchange& exchange_;
};

}  // namespace

void SendOwnAnswer(const http::RequestHead& request, const OwnAnswer& answer,
                   http::ServerExchange& exchange, base::WallTime time_of_day) {
  http::ResponseHead head{.status = answer.status};
  const auto date = http::Date(time_of_day);
  head.fields.Add("Date", {date.data(), date.size()});
  if (answer.fields != nullptr) {
    for (const auto [name, value] : *answer.fields) head.fields.Add(name, value);
  }
  if (answer.cors != nullptr) {
    AddCorsFields(request, *answer.cors, answer.dialect.value_or(answer.cors->dialect),
                  head.fields);
  }
  if (!answer.error.empty()) {
    head.fields.Add("Proxy-Status",
                    std::string(answer.proxy).append("; error=").append(answer.error));
  }
  if (IsGrpc(request)) {
    AddGrpcFields(answer, head.fields);
    head.status = 200;
    exchange.SendHead(head);
    return exchange.SendEnd({});
  }
  http::Response problem;
  std::string_view body = answer.body;
  if (answer.content_type.empty()) {
    http::AnswerProblem(answer.status, answer.detail, answer.hint, problem);
    head.fields.Add("Content-Type", "application/problem+json");
    body = problem.body;
  } else {
    head.fields.Add("Content-Type", answer.content_type);
  }
  head.body = {.kind = http::BodyLength::Kind::kSized, .bytes = body.size()};
  exchange.SendHead(head);
  if (request.method != "HEAD" && !body.empty()) exchange.SendData(body);
  exchange.SendEnd({});
}

std::unique_ptr<http::RequestReceiver> DropRest(http::ServerExchange& exchange) {
  return std::make_unique<Dropped>(exchange);
}

}  // namespace headgate::proxy
