#include "headgate/front/admin/edit_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "headgate/base/percent.h"
#include "headgate/base/status_hint.h"
#include "headgate/front/admin/rules_json.h"
#include "headgate/http/problem.h"
#include "headgate/wire/json.h"

namespace headgate::front::admin {

using http::Request;
using http::Response;
using wire::Json;

namespace {

void AnswerJson(const Json& json, Response& response) {
  response.AddField("Content-Type", "application/json");
  response.body = json.Text() + "\n";
}

Json JsonOf(const rule::Problem& problem) {
  Json json = Json::Object({{"place", problem.file}, {"message", problem.message}});
  if (problem.line > 0) {
    json["line"] = problem.line;
    json["column"] = problem.column;
  }
  if (!problem.hint.empty()) json["hint"] = problem.hint;
  return json;
}

Json JsonOf(const std::vector<rule::Problem>& problems) {
  Json json = Json::Array();
  for (const rule::Problem& problem : problems) json.Append(JsonOf(problem));
  return json;
}

Json JsonOf(const rule::PastChange& change) {
  Json json;
  json["id"] = change.id;
  json["time"] = change.time;
  json["user"] = change.user;
  json["address"] = change.address;
  json["action"] = change.action;
  json["document"] = change.document;
  json["outcome"] = change.outcome;
  json["old_version"] = change.old_version;
  json["new_version"] = change.new_version;
  if (change.old_text) json["old_text"] = *change.old_text;
  if (change.new_text) json["new_text"] = *change.new_text;
  if (change.texts_left_out) json["texts_left_out"] = true;
  return json;
}

Json JsonOf(const rule::DocumentState& document) {
  Json json = Json::Object({{"name", document.name},
                            {"version", document.version},
                            {"bytes", document.bytes},
                            {"in_force", document.in_force},
                            {"problems", JsonOf(document.problems)}});
  if (document.limit_of) json["limit_of"] = *document.limit_of;
  return json;
}

Json JsonOf(const std::optional<rule::Rule>& rule) {
  if (!rule) return nullptr;
  std::string text;
  AppendRule(*rule, text);
  return Json::Parse(text).value_or(nullptr);
}

Json JsonOf(const rule::RuleDifference& difference) {
  const rule::Rule& rule = difference.after ? *difference.after : *difference.before;
  const std::string_view what = !difference.before  ? "added"
                                : !difference.after ? "removed"
                                                    : "changed";
  Json json = Json::Object({{"change", what},
                            {"domain", rule.domain},
                            {"rule", rule.label()},
                            {"before", JsonOf(difference.before)},
                            {"after", JsonOf(difference.after)},
                            {"live_keys", nullptr}});
  if (difference.live_buckets) json["live_keys"] = *difference.live_buckets;
  return json;
}

struct Refusal {
  int status;
  std::string_view hint;
};

Refusal RefusalOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
      return {422, "each of `problems` says what is wrong, and where"};
    case absl::StatusCode::kAborted:
      return {412, "read it again, and change what it is now"};
    case absl::StatusCode::kNotFound:
      return {404, "GET /v1/documents lists the names"};
    case absl::StatusCode::kPermissionDenied:
      return {403, "GET /v1/documents lists the names; rule files end with .yaml"};
    case absl::StatusCode::kFailedPrecondition:
      return {409, ""};
    case absl::StatusCode::kUnknown:
      return {504, "read it to see what it is now"};
    default:
      return {503, ""};
  }
}

}  // namespace

// ---- The request

std::optional<Query> ReadQuery(std::string_view target, Parameters takes, size_t count) {
  Query query{.count = count};
  std::vector<std::string_view> seen;
  const size_t question = target.find('?');
  if (question == std::string_view::npos) return query;
  std::string_view rest = target.substr(question + 1);
  while (!rest.empty()) {
    const std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(pair.size() + 1, rest.size()));
    const size_t equals = std::min(pair.find('='), pair.size());
    const std::string_view name = pair.substr(0, equals);
    const auto value = base::PercentDecoded(pair.substr(std::min(equals + 1, pair.size())));
    const auto is_name = [name](std::string_view one) { return one == name; };
    if (!value || !std::any_of(takes.begin(), takes.end(), is_name) ||
        std::any_of(seen.begin(), seen.end(), is_name))
      return std::nullopt;
    seen.push_back(name);
    if (name == "dry_run" && (*value == "true" || *value == "false")) {
      query.dry_run = *value == "true";
    } else if (name == "document") {
      query.document = *value;
    } else if (name == "key") {
      query.key = *value;
    } else if (name == "domain") {
      query.domain = *value;
    } else if (name == "rule") {
      query.rule = *value;
    } else if (name == "by") {
      query.by = *value;
    } else if (name == "count") {
      const char* const end = value->data() + value->size();
      const auto [last, error] = std::from_chars(value->data(), end, query.count);
      if (error != std::errc() || last != end) return std::nullopt;
      query.count = std::min(query.count, kHistoryMax);
    } else {
      return std::nullopt;
    }
  }
  return query;
}

void AnswerBadQuery(std::string_view takes, Response& response) {
  http::AnswerProblem(400,
                      takes.empty()
                          ? "this path takes no query"
                          : fmt::format("this path takes only the query {}, each name once", takes),
                      "", response);
}

std::optional<std::string> ExpectedVersion(const Request& request, Response& response) {
  for (const std::string_view name : {"If-Match", "If-None-Match"}) {
    if (std::count_if(request.fields.begin(), request.fields.end(), [&](const auto& field) {
          return http::EqualsIgnoreCase(field.first, name);
        }) < 2)
      continue;
    http::AnswerProblem(400, fmt::format("{} comes twice", name), "send it once", response);
    return std::nullopt;
  }
  const std::string_view match = request.Field("If-Match");
  const std::string_view none_match = request.Field("If-None-Match");
  if (match.empty() && none_match == "*") return "";
  if (none_match.empty() && match == "*") return std::string(rule::kAnyVersion);
  const bool quoted = match.size() > 2 && match.front() == '"' && match.back() == '"';
  if (none_match.empty() && quoted) {
    const std::string_view version = match.substr(1, match.size() - 2);
    if (version.find('"') == std::string_view::npos && version != rule::kAnyVersion)
      return std::string(version);
  }
  if (match.empty() && none_match.empty()) {
    http::AnswerProblem(428, "the request does not say which version of the document it changes",
                        "send If-Match with the ETag of GET, or If-None-Match: * for a new one",
                        response);
  } else {
    http::AnswerProblem(400, "this is not one version that a document can have",
                        R"(send If-Match: "VERSION", If-Match: * or If-None-Match: *)", response);
  }
  return std::nullopt;
}

rule::Author AuthorOf(const Request& request) {
  rule::Author author{.user = {}, .address = request.peer.address};
  if (const http::routing::ConnectionLogin* const login = http::routing::LoginOf(request))
    author.user = login->identity.user;
  return author;
}

// ---- Answers

void AnswerStates(const rule::DocumentStates& states, Response& response) {
  Json documents = Json::Array();
  for (const rule::DocumentState& document : states.documents) documents.Append(JsonOf(document));
  Json json;
  json.Add("documents", std::move(documents));
  json.Add("problems", JsonOf(states.problems));
  AnswerJson(json, response);
}

void AnswerHistory(const std::vector<rule::PastChange>& changes, Response& response) {
  Json list = Json::Array();
  for (const rule::PastChange& change : changes) list.Append(JsonOf(change));
  Json json;
  json.Add("changes", std::move(list));
  AnswerJson(json, response);
}

void AddETag(std::string_view version, Response& response) {
  response.AddField("ETag", fmt::format("\"{}\"", version));
}

void AnswerFailure(const absl::Status& status, Response& response) {
  const Refusal refusal = RefusalOf(status);
  const std::string own_hint = base::HintOf(status);
  http::AnswerProblem(refusal.status, std::string(status.message()),
                      own_hint.empty() ? refusal.hint : own_hint, response);
}

namespace {

void AnswerRefusal(const rule::EditResult& result, Response& response) {
  AnswerFailure(result.status, response);
  if (result.problems.empty()) return;
  // An extension member of the problem document (RFC 9457, section 3.2).
  Json problem = Json::Parse(response.body).value_or(nullptr);
  problem["problems"] = JsonOf(result.problems);
  response.body = problem.Text() + "\n";
}

}  // namespace

void AnswerEdit(const rule::EditResult& result, rule::DryRun dry_run, Response& response) {
  if (!result.status.ok()) return AnswerRefusal(result, response);
  Json json =
      Json::Object({{"document", result.document}, {"dry_run", dry_run == rule::DryRun::kYes}});
  if (!result.version.empty()) {
    AddETag(result.version, response);
    json["version"] = result.version;
  }
  Json changes = Json::Array();
  for (const rule::RuleDifference& difference : result.differences) {
    if (changes.items().size() == kDifferencesMax) break;
    changes.Append(JsonOf(difference));
  }
  json["diff"] = result.diff;
  json["changes_left_out"] = result.differences.size() - changes.items().size();
  json["changes"] = std::move(changes);
  // Documents whose problems keep the source's changes from coming into force.
  json["waits_for"] = JsonOf(result.others);
  AnswerJson(json, response);
}

}  // namespace headgate::front::admin
