#include "headgate/front/admin/routes.h"

#include <charconv>
#include <optional>
#include <utility>

#include "headgate/front/admin/openapi.h"
#include "headgate/front/admin/rules_json.h"
#include "headgate/http/problem.h"

namespace headgate::front::admin {
namespace {

using http::Request;
using http::Response;

// The number of the first rule on the page; empty if the query is invalid.
std::optional<size_t> From(std::string_view target) {
  const size_t question = target.find('?');
  if (question == std::string_view::npos) return 0;
  std::string_view query = target.substr(question + 1);
  constexpr std::string_view kFrom = "from=";
  if (!query.starts_with(kFrom)) return std::nullopt;
  query.remove_prefix(kFrom.size());
  size_t from = 0;
  const auto [end, error] = std::from_chars(query.data(), query.data() + query.size(), from);
  if (error != std::errc() || end != query.data() + query.size()) return std::nullopt;
  return from;
}

void AnswerNoRules(http::Response& response) {
  http::AnswerProblem(503, "no rules are loaded yet",
                      "the source of the rules holds none yet, or only some with problems; the "
                      "log names them",
                      response);
}

void AddRulesRoute(const AdminSources& sources, http::routing::Router& router) {
  router.Add({.methods = {"GET"},
              .path = "/v1/rules",
              .what = "the rules and their limits",
              .needs = access::Right::kRead,
              .handle = [rules = sources.rules](const Request& request, Response& response,
                                                base::Instant) {
                const std::optional<size_t> from = From(request.target);
                if (!from) {
                  return http::AnswerProblem(400, "this path takes only the query from=NUMBER",
                                             "take NUMBER from \"next\" of the previous page",
                                             response);
                }
                const std::shared_ptr<const rule::RuleSet> set = rules();
                if (set == nullptr) return AnswerNoRules(response);
                response.AddField("Content-Type", "application/json");
                AppendRules(*set, *from, response.body);
              }});
}

// The document is made for the first request, when all routes of the address are there.
void AddDescription(http::routing::Router& router) {
  router.Add({.methods = {"GET"},
              .path = "/openapi.json",
              .what = "the description of this address (OpenAPI 3.1)",
              .handle = [&router, document = std::make_shared<std::string>()](
                            const Request&, Response& response, base::Instant) {
                if (document->empty()) *document = DescribeRoutes(router.routes());
                response.AddField("Content-Type", "application/json");
                response.stream = std::make_unique<http::FixedBody>(*document);
              }});
}

}  // namespace

void AddRoutes(AdminSources sources, http::routing::Router& router) {
  if (sources.rules) AddRulesRoute(sources, router);
  AddDescription(router);
  router.Add({.methods = {"GET"},
              .path = "/metrics",
              .what = "metrics, as Prometheus reads them",
              .needs = access::Right::kRead,
              .handle = [metrics = std::move(sources.metrics)](const Request&, Response& response,
                                                               base::Instant) {
                response.AddField("Content-Type", "text/plain; version=0.0.4; charset=utf-8");
                response.body = metrics();
              }});
  router.Add({.methods = {"GET"},
              .path = "/healthz",
              .what = "200 while the process lives",
              .handle = [](const Request&, Response& response, base::Instant) {
                response.AddField("Content-Type", "text/plain; charset=utf-8");
                response.body = "ok\n";
              }});
  router.Add({.methods = {"GET"},
              .path = "/readyz",
              .what = "200 while it takes requests",
              .handle = [readiness = std::move(sources.readiness), rules = std::move(sources.rules),
                         passthrough = std::move(sources.passthrough)](
                            const Request&, Response& response, base::Instant) {
                if (const absl::Status status = readiness(); !status.ok()) {
                  return http::AnswerProblem(503, std::string(status.message()), "", response);
                }
                const bool passes = passthrough && passthrough();
                if (!passes && rules && rules() == nullptr) return AnswerNoRules(response);
                response.AddField("Content-Type", "text/plain; charset=utf-8");
                response.body = "ready\n";
                if (passes)
                  response.body += "passthrough: requests are counted, and none is refused\n";
              }});
}

}  // namespace headgate::front::admin
