#include "headgate/front/admin/rule_routes.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "headgate/base/percent.h"
#include "headgate/base/utf8.h"
#include "headgate/front/admin/edit_answers.h"
#include "headgate/front/admin/later_answer.h"
#include "headgate/http/problem.h"
#include "headgate/rule/descriptor.h"
#include "headgate/rule/rule_path.h"

namespace headgate::front::admin {
namespace {

using http::Request;
using http::Response;

constexpr std::string_view kRules = "/v1/rules/";
constexpr std::string_view kRollouts = "/v1/rollouts/";
constexpr std::string_view kPromote = "/v1/promote/";

std::string_view TakeSegment(std::string_view& path) {
  const std::string_view segment = path.substr(0, path.find('/'));
  path.remove_prefix(std::min(segment.size() + 1, path.size()));
  return segment;
}

// Whether it was encoded correctly and can stand in a rule file.
bool IsText(const std::optional<std::string>& decoded) {
  return decoded && decoded->size() <= rule::kTextBytesMax && base::IsUtf8(*decoded);
}

class RuleHandlers {
 public:
  RuleHandlers(rule::Editor& editor, std::string_view prefix) : editor_(editor), prefix_(prefix) {}

  void Read(const Request& request, Response& response) const {
    const auto rule = RuleOf(request, response);
    if (!rule) return;
    auto document = AskOnce<absl::StatusOr<rule::SourceDocument>>(
        request, response, [&](auto done) { editor_.ReadRule(*rule, std::move(done)); });
    if (!document) return;
    if (!document->ok()) return AnswerFailure(document->status(), response);
    AddETag((*document)->version, response);
    response.AddField("Content-Type", "application/yaml");
    response.body = std::move((*document)->text);
  }

  void Change(rule::RuleAction action, const Request& request, Response& response) const {
    const auto rule = RuleOf(request, response);
    if (!rule) return;
    const auto query = ReadQuery(request.target, {"dry_run"});
    if (!query) return AnswerBadQuery(kDryRunQuery, response);
    const auto version = ExpectedVersion(request, response);
    if (!version) return;
    const auto dry_run = query->dry_run ? rule::DryRun::kYes : rule::DryRun::kNo;
    auto result = AskOnce<rule::EditResult>(request, response, [&](auto done) {
      editor_.ChangeRule({.rule = *rule,
                          .action = action,
                          .text = std::string(request.body),
                          .expected_version = *version,
                          .author = AuthorOf(request),
                          .dry_run = dry_run},
                         std::move(done));
    });
    if (!result) return;
    if (result->status.ok() && version->empty() && !query->dry_run) response.status = 201;
    AnswerEdit(*result, dry_run, response);
  }

 private:
  // The rule that the path names. Returns nothing if the request was refused in `response`.
  std::optional<rule::RulePath> RuleOf(const Request& request, Response& response) const {
    auto rule = RulePathIn(request.path().substr(prefix_.size()));
    if (!rule) {
      http::AnswerProblem(400, "the path names no rule",
                          "DOMAIN/KEY=VALUE/KEY, each part percent-encoded", response);
    }
    return rule;
  }

  rule::Editor& editor_;
  const std::string_view prefix_;
};

}  // namespace

std::optional<rule::RulePath> RulePathIn(std::string_view path) {
  const auto domain = base::PercentDecoded(TakeSegment(path));
  if (!IsText(domain) || domain->empty() || path.empty()) return std::nullopt;
  rule::RulePath rule{.domain = *domain, .entries = {}};
  while (!path.empty()) {
    const std::string_view segment = TakeSegment(path);
    const size_t equals = std::min(segment.find('='), segment.size());
    const auto key = base::PercentDecoded(segment.substr(0, equals));
    const auto value = base::PercentDecoded(segment.substr(std::min(equals + 1, segment.size())));
    if (!IsText(key) || key->empty() || !IsText(value) || rule.entries.size() == rule::kEntriesMax)
      return std::nullopt;
    rule.entries.push_back({.key = *key});
    if (!value->empty()) rule.entries.back().value = *value;
  }
  return rule;
}

void AddRuleRoutes(rule::Editor& editor, http::routing::Router& router) {
  using rule::RuleAction;
  const auto add = [&](std::string_view prefix, std::string method, std::string what,
                       RuleAction action) {
    router.Add(
        {.methods = {std::move(method)},
         .path = std::string(prefix),
         .match = http::routing::Route::Match::kPrefix,
         .what = std::move(what),
         .needs = access::Right::kAdmin,
         .content_types = {"application/yaml", "application/json", "text/yaml", "text/plain"},
         .handle = [handlers = RuleHandlers(editor, prefix), action](
                       const Request& request, Response& response, base::Instant) {
           handlers.Change(action, request, response);
         }});
  };
  router.Add({.methods = {"GET"},
              .path = std::string(kRules),
              .match = http::routing::Route::Match::kPrefix,
              .what = "one rule as it is written",
              .needs = access::Right::kRead,
              .handle = [handlers = RuleHandlers(editor, kRules)](
                            const Request& request, Response& response, base::Instant) {
                handlers.Read(request, response);
              }});
  add(kRules, "PUT", "changes or adds one rule", RuleAction::kPut);
  add(kRules, "DELETE", "removes one rule", RuleAction::kRemove);
  add(kRollouts, "PUT", "begins or changes the roll-out of a rule", RuleAction::kPutRollout);
  add(kRollouts, "DELETE", "ends it without an effect", RuleAction::kEndRollout);
  add(kPromote, "POST", "its limits become those of the rule", RuleAction::kPromoteRollout);
}

}  // namespace headgate::front::admin
