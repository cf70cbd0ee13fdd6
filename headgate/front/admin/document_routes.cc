#include "headgate/front/admin/document_routes.h"

#include <fmt/format.h>

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headgate/base/percent.h"
#include "headgate/front/admin/edit_answers.h"
#include "headgate/front/admin/later_answer.h"
#include "headgate/http/problem.h"
#include "headgate/wire/json.h"

namespace headgate::front::admin {
namespace {

using http::Request;
using http::Response;
using wire::Json;

constexpr std::string_view kDocuments = "/v1/documents/";
constexpr std::string_view kLimits = "/v1/limits/";

// The part of the path behind `prefix`, decoded. Nothing, after a refusal, if it is empty or not
// encoded correctly.
std::optional<std::string> NameIn(const Request& request, std::string_view prefix,
                                  Response& response) {
  auto name = base::PercentDecoded(request.path().substr(prefix.size()));
  if (name && !name->empty() && name->find('\0') == std::string::npos) return name;
  http::AnswerProblem(400, "the path does not end with a percent-encoded name",
                      "GET /v1/documents lists the names", response);
  return std::nullopt;
}

// The texts of older changes are left out of an answer, beyond this many bytes.
constexpr size_t kHistoryTextBytesMax = size_t{8} << 20;

void LeaveOutTexts(std::vector<rule::PastChange>& changes) {
  size_t bytes = 0;
  for (rule::PastChange& change : changes) {
    const size_t own = change.old_text.value_or("").size() + change.new_text.value_or("").size();
    bytes += own;
    if (own == 0 || bytes <= kHistoryTextBytesMax) continue;
    change.old_text.reset();
    change.new_text.reset();
    change.texts_left_out = true;
  }
}

std::string TextOf(std::string_view text) { return std::string(text); }

// ---- Handlers

class DocumentHandlers {
 public:
  explicit DocumentHandlers(rule::Editor& editor) : editor_(editor) {}

  void List(const Request& request, Response& response) const {
    auto states = AskOnce<absl::StatusOr<rule::DocumentStates>>(
        request, response, [&](auto done) { editor_.List(std::move(done)); });
    if (!states) return;
    if (!states->ok()) return AnswerFailure(states->status(), response);
    AnswerStates(**states, response);
  }

  void Read(const Request& request, Response& response, const std::string& name) const {
    auto document = AskOnce<absl::StatusOr<rule::SourceDocument>>(
        request, response, [&](auto done) { editor_.Read(name, std::move(done)); });
    if (!document) return;
    if (!document->ok()) return AnswerFailure(document->status(), response);
    AddETag((*document)->version, response);
    response.AddField("Content-Type",
                      (*document)->limit_of ? "application/json" : "application/yaml");
    response.body = std::move((*document)->text);
  }

  void Change(const Request& request, Response& response, const std::string& name) const {
    const auto query = ReadQuery(request.target, {"dry_run"});
    if (!query) return AnswerBadQuery(kDryRunQuery, response);
    const auto version = ExpectedVersion(request, response);
    if (!version) return;
    const auto dry_run = query->dry_run ? rule::DryRun::kYes : rule::DryRun::kNo;
    const bool removes = request.method == "DELETE";
    auto result = AskOnce<rule::EditResult>(request, response, [&](auto done) {
      rule::Edit edit{.change = {.name = name, .text = {}, .expected_version = *version},
                      .author = AuthorOf(request),
                      .dry_run = dry_run};
      if (!removes) edit.change.text = TextOf(request.body);
      editor_.Change(edit, std::move(done));
    });
    if (!result) return;
    if (result->status.ok() && !removes && !query->dry_run && version->empty())
      response.status = 201;
    AnswerEdit(*result, dry_run, response);
  }

  void History(const Request& request, Response& response) const {
    auto query = ReadQuery(request.target, {"document", "key", "count"});
    if (!query) return AnswerBadQuery("document=NAME&count=NUMBER", response);
    if (!query->key.empty()) query->document = editor_.NameOfLimit(query->key);
    if (!query->key.empty() && query->document.empty()) return AnswerNoLimits(response);
    auto changes = AskOnce<absl::StatusOr<std::vector<rule::PastChange>>>(
        request, response,
        [&](auto done) { editor_.History(query->document, query->count, std::move(done)); });
    if (!changes) return;
    if (!changes->ok()) return AnswerFailure(changes->status(), response);
    LeaveOutTexts(**changes);
    AnswerHistory(**changes, response);
  }

  void RollBack(const Request& request, Response& response) const {
    const auto query = ReadQuery(request.target, {"dry_run"});
    if (!query) return AnswerBadQuery(kDryRunQuery, response);
    const auto rollback = ReadRollback(request, query->dry_run, response);
    if (!rollback) return;
    auto result = AskOnce<rule::EditResult>(
        request, response, [&](auto done) { editor_.RollBack(*rollback, std::move(done)); });
    if (result) AnswerEdit(*result, rollback->dry_run, response);
  }

  void Confirm(const Request& request, Response& response) const {
    // A confirmation has no dry run: a query such as ?dry_run=true must not confirm anything.
    if (!ReadQuery(request.target, {})) return AnswerBadQuery("", response);
    auto status = AskOnce<absl::Status>(
        request, response, [&](auto done) { editor_.Confirm(AuthorOf(request), std::move(done)); });
    if (!status) return;
    if (!status->ok()) return AnswerFailure(*status, response);
    response.AddField("Content-Type", "application/json");
    response.body = "{\"confirmed\":true}\n";
  }

  // The name of the document with the limit of the key in the path. Returns nothing if the request
  // was refused in `response`.
  std::optional<std::string> LimitIn(const Request& request, Response& response) const {
    const auto key = NameIn(request, kLimits, response);
    if (!key) return std::nullopt;
    std::string name = editor_.NameOfLimit(*key);
    if (!name.empty()) return name;
    AnswerNoLimits(response);
    return std::nullopt;
  }

 private:
  static void AnswerNoLimits(Response& response) {
    http::AnswerProblem(404, "no source of rules holds limits of single keys",
                        "ZooKeeper does (--watch zk://…); in a rule file, such a limit is a rule",
                        response);
  }

  std::optional<rule::Rollback> ReadRollback(const Request& request, bool dry_run,
                                             Response& response) const {
    const Json body = Json::Parse(request.body, Json::kRequestValuesMax).value_or(nullptr);
    rule::Rollback rollback{.document = {},
                            .expected_version = TextOf(rule::kAnyVersion),
                            .author = AuthorOf(request),
                            .dry_run = dry_run ? rule::DryRun::kYes : rule::DryRun::kNo};
    std::string key;
    std::set<std::string_view> seen;
    bool valid = body.Find("document") != nullptr || body.Find("key") != nullptr;
    for (const auto& [name, value] : body.members()) {
      std::string* const member = name == "document"           ? &rollback.document
                                  : name == "key"              ? &key
                                  : name == "change"           ? &rollback.change
                                  : name == "expected_version" ? &rollback.expected_version
                                                               : nullptr;
      valid = valid && member != nullptr && value.is_string() && seen.insert(name).second;
      if (valid) *member = value.text();
    }
    if (valid && !key.empty()) rollback.document = editor_.NameOfLimit(key);
    if (valid && !key.empty() && rollback.document.empty()) {
      AnswerNoLimits(response);
      return std::nullopt;
    }
    if (valid) return rollback;
    http::AnswerProblem(
        400, "the body is not a rollback",
        R"(send {"document": NAME}, with "change": ID for the text after that change)", response);
    return std::nullopt;
  }

  rule::Editor& editor_;
};

using Method = void (DocumentHandlers::*)(const Request&, Response&) const;

auto OnAll(const DocumentHandlers& handlers, Method method) {
  return [handlers, method](const Request& request, Response& response, base::Instant) {
    (handlers.*method)(request, response);
  };
}

}  // namespace

void AddDocumentRoutes(rule::Editor& editor, http::routing::Router& router) {
  using MethodOfOne =
      void (DocumentHandlers::*)(const Request&, Response&, const std::string&) const;
  using Naming = std::optional<std::string> (*)(const DocumentHandlers&, const Request&, Response&);
  const DocumentHandlers handlers(editor);
  const auto on_one = [handlers](MethodOfOne method, Naming name_of) {
    return [handlers, method, name_of](const Request& request, Response& response, base::Instant) {
      if (const auto name = name_of(handlers, request, response))
        (handlers.*method)(request, response, *name);
    };
  };
  router.Add({.methods = {"GET"},
              .path = "/v1/documents",
              .what = "the documents that rules come from",
              .needs = access::Right::kRead,
              .handle = OnAll(handlers, &DocumentHandlers::List)});
  const auto add_one = [&](std::string_view path, std::string_view what, Naming name_of) {
    router.Add({.methods = {"GET"},
                .path = TextOf(path),
                .match = http::routing::Route::Match::kPrefix,
                .what = TextOf(what),
                .needs = access::Right::kRead,
                .handle = on_one(&DocumentHandlers::Read, name_of)});
    router.Add(
        {.methods = {"PUT", "DELETE"},
         .path = TextOf(path),
         .match = http::routing::Route::Match::kPrefix,
         .what = fmt::format("changes {}", what),
         .needs = access::Right::kAdmin,
         .content_types = {"application/yaml", "application/json", "text/yaml", "text/plain"},
         .handle = on_one(&DocumentHandlers::Change, name_of)});
  };
  add_one(kDocuments, "one of them",
          [](const DocumentHandlers&, const Request& request, Response& response) {
            return NameIn(request, kDocuments, response);
          });
  add_one(kLimits, "the limit of one API key",
          [](const DocumentHandlers& all, const Request& request, Response& response) {
            return all.LimitIn(request, response);
          });
  router.Add({.methods = {"GET"},
              .path = "/v1/history",
              .what = "who changed which document",
              .needs = access::Right::kRead,
              .handle = OnAll(handlers, &DocumentHandlers::History)});
  router.Add({.methods = {"POST"},
              .path = "/v1/rollback",
              .what = "back to an earlier text of a document",
              .needs = access::Right::kAdmin,
              .handle = OnAll(handlers, &DocumentHandlers::RollBack)});
  router.Add({.methods = {"POST"},
              .path = "/v1/confirm",
              .what = "deletions that were taken for an accident were meant",
              .needs = access::Right::kAdmin,
              .handle = OnAll(handlers, &DocumentHandlers::Confirm)});
}

}  // namespace headgate::front::admin
