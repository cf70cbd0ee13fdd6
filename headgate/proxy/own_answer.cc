#include "headgate/proxy/own_answer.h"

#include "headgate/http/date.h"
#include "headgate/http/problem.h"
#include "headgate/proxy/grpc.h"

namespace headgate::proxy {
namespace {

void AddGrpcFields(const OwnAnswer& answer, http::Fields& fields) {
  fields.Add("content-type", "application/grpc");
  fields.Add("grpc-status", std::to_string(static_cast<unsigned>(GrpcStatusOf(answer.status))));
  std::string message;
  AppendGrpcMessage(answer.detail, message);
  fields.Add("grpc-message", message);
  // The seconds of Retry-After, for the retry policy of clients.
  const auto retry_after =
      answer.fields == nullptr ? std::nullopt : answer.fields->Find("Retry-After");
  if (retry_after) fields.Add("grpc-retry-pushback-ms", std::string(*retry_after) + "000");
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
  http::AnswerProblem(answer.status, answer.detail, answer.hint, problem);
  head.fields.Add("Content-Type", "application/problem+json");
  head.body = {.kind = http::BodyLength::Kind::kSized, .bytes = problem.body.size()};
  exchange.SendHead(head);
  if (request.method != "HEAD") exchange.SendData(problem.body);
  exchange.SendEnd({});
}

std::unique_ptr<http::RequestReceiver> DropRest(http::ServerExchange& exchange) {
  return std::make_unique<Dropped>(exchange);
}

}  // namespace headgate::proxy
