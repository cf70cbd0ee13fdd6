#include "headgate/front/admin/figure_routes.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "headgate/front/admin/edit_answers.h"
#include "headgate/http/problem.h"
#include "headgate/wire/json.h"

namespace headgate::front::admin {
namespace {

using http::Request;
using http::Response;
using observe::TopKeys;
using wire::Json;

constexpr std::array<std::pair<std::string_view, TopKeys::By>, 3> kOrders = {
    {{"requests", TopKeys::By::kRequests},
     {"denials", TopKeys::By::kDenials},
     {"cost", TopKeys::By::kCost}}};

// Nothing if the query is not one of this path.
std::optional<TopKeys::Question> ReadQuestion(const Query& query) {
  TopKeys::Question question{.count = query.count};
  if (!query.by.empty()) {
    const auto order = std::find_if(kOrders.begin(), kOrders.end(),
                                    [&](const auto& one) { return one.first == query.by; });
    if (order == kOrders.end()) return std::nullopt;
    question.by = order->second;
  }
  // The name of a rule is one within its domain. That of limits of requests has an empty one.
  if (query.rule.empty() && !query.domain.empty()) return std::nullopt;
  if (!query.rule.empty()) question.rule = {.domain = query.domain, .rule = query.rule};
  return question;
}

double SecondsOf(base::Duration duration) {
  return static_cast<double>(duration / std::chrono::milliseconds(1)) / 1000;
}

void AddRule(const std::optional<observe::RuleNames::Name>& rule, Json& object) {
  object.Add("domain", rule ? Json(rule->domain) : Json());
  object.Add("rule", rule ? Json(rule->rule) : Json());
}

void AnswerTop(const TopKeys::Question& question, const TopKeys::Answer& answer,
               Response& response) {
  Json keys = Json::Array();
  for (const TopKeys::Key& one : answer.keys) {
    Json key = Json::Object();
    key.Add("key", Json(one.counts.key));
    AddRule(one.rule, key);
    key.Add("count", Json(one.counts.count));
    key.Add("error", Json(one.counts.error));
    key.Add("allowed", Json(one.counts.allowed));
    key.Add("denied", Json(one.counts.denied));
    key.Add("cost", Json(one.counts.cost));
    keys.Append(std::move(key));
  }
  Json top = Json::Object();
  top.Add("by", Json(kOrders[static_cast<size_t>(question.by)].first));
  AddRule(question.rule, top);
  top.Add("seconds", Json(SecondsOf(answer.counted_for)));
  top.Add("total", Json(answer.total));
  top.Add("error_max", Json(answer.error_most));
  top.Add("keys", std::move(keys));
  response.AddField("Content-Type", "application/json");
  response.body = top.Text() + "\n";
}

void ShowTop(TopKeys& top, const Request& request, Response& response, base::Instant now) {
  auto query = ReadQuery(request.target, {"by", "domain", "rule", "count"}, kTopDefault);
  const auto question = query ? ReadQuestion(*query) : std::nullopt;
  if (!question) {
    return AnswerBadQuery("by=requests|denials|cost&domain=DOMAIN&rule=RULE&count=NUMBER",
                          response);
  }
  const auto answer = top.Ask(*question, now);
  if (answer.ok()) return AnswerTop(*question, *answer, response);
  if (absl::IsNotFound(answer.status())) {
    return http::AnswerProblem(404, "this domain has no such rule",
                               "GET /v1/rules lists \"domain\" and \"rule\" of all rules",
                               response);
  }
  http::AnswerProblem(503, std::string(answer.status().message()),
                      "ask again a minute after others have asked, or ask without a rule",
                      response);
}

}  // namespace

void AddFigureRoutes(observe::Metrics& metrics, TopKeys* top, http::routing::Router& router) {
  router.Add({.methods = {"GET"},
              .path = "/v1/metrics",
              .what = "the metrics as JSON",
              .needs = access::Right::kRead,
              .handle = [&metrics](const Request&, Response& response, base::Instant) {
                response.AddField("Content-Type", "application/json");
                response.body = metrics.RenderJson();
              }});
  if (top == nullptr) return;
  router.Add({.methods = {"GET"},
              .path = "/v1/top",
              .what = "the keys with the most requests, denials or cost",
              .needs = access::Right::kRead,
              .handle = [top](const Request& request, Response& response, base::Instant now) {
                ShowTop(*top, request, response, now);
              }});
}

}  // namespace headgate::front::admin
