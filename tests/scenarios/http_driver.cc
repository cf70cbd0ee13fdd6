#include "tests/scenarios/http_driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "headgate/testing/scenario_rules.h"

namespace headgate::testing {
namespace {

using Json = nlohmann::json;

struct Reply {
  int status = 0;
  std::optional<uint64_t> retry_after_s;
  Json body;
};

// Parses a reply as this front writes it: field names in their documented case, the body last.
absl::StatusOr<Reply> Parse(const std::string& bytes) {
  const size_t head_end = bytes.find("\r\n\r\n");
  if (!bytes.starts_with("HTTP/1.1 ") || head_end == std::string::npos) {
    return absl::InternalError(fmt::format("expected an HTTP response, got \"{}\"", bytes));
  }
  Reply reply{.status = std::stoi(bytes.substr(9, 3)), .retry_after_s = {}, .body = {}};
  constexpr std::string_view kRetryAfter = "\r\nRetry-After: ";
  if (const size_t at = bytes.find(kRetryAfter); at < head_end) {
    reply.retry_after_s = std::stoull(bytes.substr(at + kRetryAfter.size()));
  }
  reply.body = Json::parse(bytes.substr(head_end + 4), nullptr, /*allow_exceptions=*/false);
  if (!reply.body.is_object())
    return absl::InternalError(fmt::format("expected a JSON object, got \"{}\"", bytes));
  return reply;
}

std::string_view PathOf(Ask::Operation operation) {
  switch (operation) {
    case Ask::Operation::kRequest:
      return "/v1/check";
    case Ask::Operation::kRefund:
      return "/v1/refund";
    case Ask::Operation::kReset:
      return "/v1/reset";
  }
  __builtin_unreachable();
}

base::Duration Milliseconds(const Json& value) {
  return std::chrono::milliseconds(value.get<int64_t>());
}

// Checks that the status and Retry-After of a denial agree with its body.
absl::Status CheckHead(const Reply& reply, const algorithm::Decision& decision) {
  if (reply.status != (decision.allowed ? 200 : 429)) {
    return absl::InternalError(
        fmt::format("status {} with the body {}", reply.status, reply.body.dump()));
  }
  const bool later = !decision.allowed && !decision.never_fits();
  if (reply.retry_after_s.has_value() != later) {
    return absl::InternalError(later ? "a denial without Retry-After"
                                     : "Retry-After where there is none to wait for");
  }
  if (later && std::chrono::seconds(*reply.retry_after_s) !=
                   std::chrono::ceil<std::chrono::seconds>(decision.retry_after)) {
    return absl::InternalError(
        fmt::format("Retry-After: {} with the body {}", *reply.retry_after_s, reply.body.dump()));
  }
  return absl::OkStatus();
}

}  // namespace

HttpDriver::HttpDriver(const MakeSharedStore& make)
    : FrontDriver(make), handler_(checker(), {}), router_("scenario", access()) {
  handler_.AddRoutes(router_);
}

absl::StatusOr<algorithm::Decision> HttpDriver::Answer(const Ask& ask, base::Instant now) {
  const Json body{{"domain", ask.rule},
                  {"descriptors",
                   {{{"entries", {{{"key", std::string(kScenarioKey)}, {"value", ask.key}}}},
                     {"cost", ask.cost}}}}};
  const std::string content = body.dump();
  const std::string bytes =
      Send(session_,
           fmt::format("POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                       "Content-Length: {}\r\n\r\n{}",
                       PathOf(ask.operation), content.size(), content),
           now);
  HEADGATE_ASSIGN_OR_RETURN(const Reply reply, Parse(bytes));
  if (!reply.body.contains("decisions")) {
    return absl::FailedPreconditionError(
        fmt::format("{} {}", reply.status, reply.body.value("detail", "")));
  }
  const Json& first = reply.body["decisions"].at(0);
  const Json& retry = first.at("retry_after_ms");
  const algorithm::Decision decision{
      .allowed = reply.body.at("allowed").get<bool>(),
      .limit = first.at("limit").get<uint64_t>(),
      .remaining = first.at("remaining").get<uint64_t>(),
      .retry_after = retry.is_null() ? algorithm::kNever : base::Duration(Milliseconds(retry)),
      .reset_after = Milliseconds(first.at("reset_after_ms")),
      .wait = Milliseconds(first.at("wait_ms")),
  };
  if (ask.operation == Ask::Operation::kRequest)
    HEADGATE_RETURN_IF_ERROR(CheckHead(reply, decision));
  return decision;
}

}  // namespace headgate::testing
