#include "headgate/front/admin/document_routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "headgate/base/status_hint.h"
#include "headgate/front/admin/rule_routes.h"
#include "headgate/http/test_lines.h"
#include "headgate/rule/read/load.h"

namespace headgate::front::admin {
namespace document_routes_test {

using ::testing::HasSubstr;

// Notes what it is asked, and answers what the test sets: at once, or when told to.
class FakeEditor final : public rule::Editor {
 public:
  void List(OnStates done) override { done(states); }
  void Read(std::string_view name, OnDocument done) override {
    asked = "read " + std::string(name);
    done(document);
  }
  std::string NameOfLimit(std::string_view key) const override {
    return holds_limits ? "/config/" + std::string(key) : "";
  }
  void Change(const rule::Edit& edit, OnEdited done) override {
    asked = (edit.change.text ? "put " + *edit.change.text : "delete") + " " + edit.change.name +
            " at " + edit.change.expected_version +
            (edit.dry_run == rule::DryRun::kYes ? " dry" : "") + " by " + edit.author.user + "@" +
            edit.author.address;
    Edited(std::move(done));
  }
  void ReadRule(const rule::RulePath& rule, OnDocument done) override {
    asked = "read rule " + TextOf(rule);
    done(document);
  }
  void ChangeRule(const rule::RuleEdit& edit, OnEdited done) override {
    constexpr std::array<std::string_view, 5> kActions{"put", "remove", "put rollout", "promote",
                                                       "end rollout"};
    asked = std::string(kActions[static_cast<size_t>(edit.action)]) + " " + TextOf(edit.rule) +
            " " + edit.text + " at " + edit.expected_version;
    Edited(std::move(done));
  }
  static std::string TextOf(const rule::RulePath& rule) {
    std::string text = rule.domain;
    for (const rule::RuleEntry& entry : rule.entries)
      text += "|" + entry.key + (entry.value ? "=" + *entry.value : "");
    return text;
  }
  void RollBack(const rule::Rollback& rollback, OnEdited done) override {
    asked = "rollback " + rollback.document + " to " + rollback.change + " at " +
            rollback.expected_version + (rollback.dry_run == rule::DryRun::kYes ? " dry" : "");
    Edited(std::move(done));
  }
  void History(std::string_view name, size_t count, OnChanges done) override {
    asked = "history " + std::string(name) + " " + std::to_string(count);
    done(changes);
  }
  void Confirm(const rule::Author& author, std::function<void(absl::Status)> done) override {
    asked = "confirm by " + author.address;
    done(confirmed);
  }

  void Edited(OnEdited done) {
    if (later) {
      waiting = std::move(done);
    } else {
      done(result);
    }
  }

  absl::Status confirmed;
  absl::StatusOr<rule::DocumentStates> states = rule::DocumentStates();
  absl::StatusOr<rule::SourceDocument> document = absl::NotFoundError("no such document");
  absl::StatusOr<std::vector<rule::PastChange>> changes;
  rule::EditResult result;
  bool holds_limits = true;
  bool later = false;
  OnEdited waiting;
  std::string asked;
};

class DocumentRoutes : public ::testing::Test {
 protected:
  explicit DocumentRoutes(access::AccessOptions options = {}) : access(std::move(options)) {
    AddDocumentRoutes(editor, router);
    AddRuleRoutes(editor, router);
    suspension.wake = [this] { ++woken; };
  }

  using Fields = std::vector<std::pair<std::string_view, std::string_view>>;

  http::Response Ask(std::string_view method, const std::string& target, Fields fields = {},
                     std::string_view body = {}) {
    http::Request request;
    request.method = method;
    request.target = target;
    request.host = "localhost:8081";
    request.fields = std::move(fields);
    if (!body.empty()) request.fields.push_back({"Content-Type", "application/json"});
    request.body = body;
    request.peer.loopback = loopback;
    request.peer.address = "10.0.0.7:1";
    request.suspension = &suspension;
    http::Response response;
    router.Handle(request, response, base::Instant::FromNanos(0));
    return response;
  }
  static nlohmann::json Json(const http::Response& response) {
    return nlohmann::json::parse(response.body, nullptr, false);
  }

  FakeEditor editor;
  access::Access access;
  http::routing::Router router{"Headgate", access};
  http::Suspension suspension;
  bool loopback = true;
  int woken = 0;
};

TEST_F(DocumentRoutes, ListsTheDocumentsAndTheirProblems) {
  editor.states->documents.push_back({.name = "/r/a.yaml", .version = "v1", .bytes = 3});
  editor.states->documents.back().problems.push_back(
      {.file = "/r/a.yaml", .line = 2, .column = 5, .message = "no", .hint = "do"});
  editor.states->documents.push_back(
      {.name = "/c/k", .version = "v2", .bytes = 9, .limit_of = "k", .in_force = true});
  const http::Response response = Ask("GET", "/v1/documents");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(Json(response), nlohmann::json::parse(R"({"documents":[
    {"name":"/r/a.yaml","version":"v1","bytes":3,"in_force":false,
     "problems":[{"place":"/r/a.yaml","message":"no","line":2,"column":5,"hint":"do"}]},
    {"name":"/c/k","version":"v2","bytes":9,"in_force":true,"problems":[],"limit_of":"k"}],
    "problems":[]})"));
}

TEST_F(DocumentRoutes, ReadsADocumentWithItsVersion) {
  editor.document =
      rule::SourceDocument{.name = "/r/a.yaml", .text = "domain: a\n", .version = "7"};
  const http::Response response = Ask("GET", "/v1/documents/%2Fr%2Fa.yaml");
  EXPECT_EQ(editor.asked, "read /r/a.yaml");
  EXPECT_EQ(response.body, "domain: a\n");
  EXPECT_THAT(http::Lines(response.fields), HasSubstr("ETag: \"7\"\r\n"));
  EXPECT_THAT(http::Lines(response.fields), HasSubstr("Content-Type: application/yaml\r\n"));
  EXPECT_EQ(Ask("GET", "/v1/documents//r/a.yaml").status, 200);
  EXPECT_EQ(editor.asked, "read /r/a.yaml");
  editor.document = absl::NotFoundError("no such document");
  EXPECT_EQ(Ask("GET", "/v1/documents/x").status, 404);
  EXPECT_EQ(Ask("GET", "/v1/documents/%zz").status, 400);
  EXPECT_EQ(Ask("GET", "/v1/documents/").status, 400);
}

TEST_F(DocumentRoutes, ChangesADocumentOfTheVersionThatWasRead) {
  editor.result.version = "8";
  const http::Response response =
      Ask("PUT", "/v1/documents/a", {{"If-Match", "\"7\""}}, "domain: b\n");
  EXPECT_EQ(editor.asked, "put domain: b\n a at 7 by @10.0.0.7:1");
  EXPECT_EQ(response.status, 200);
  EXPECT_THAT(http::Lines(response.fields), HasSubstr("ETag: \"8\"\r\n"));
  EXPECT_EQ(Json(response)["version"], "8");
  EXPECT_EQ(Ask("DELETE", "/v1/documents/a?dry_run=true", {{"If-Match", "*"}}).status, 200);
  EXPECT_EQ(editor.asked, "delete a at * dry by @10.0.0.7:1");
  EXPECT_EQ(Ask("PUT", "/v1/documents/a", {{"If-None-Match", "*"}}, "x").status, 201);
  EXPECT_EQ(editor.asked, "put x a at  by @10.0.0.7:1");
}

TEST_F(DocumentRoutes, AChangeHasToSayWhichVersionItExpects) {
  EXPECT_EQ(Ask("PUT", "/v1/documents/a", {}, "x").status, 428);
  for (const std::string_view bad : {"7", "\"7", "W/\"7\"", "\"7\", \"8\"", "\"\"", "\"*\""})
    EXPECT_EQ(Ask("PUT", "/v1/documents/a", {{"If-Match", bad}}, "x").status, 400) << bad;
  EXPECT_EQ(Ask("PUT", "/v1/documents/a", {{"If-None-Match", "\"7\""}}, "x").status, 400);
  EXPECT_EQ(Ask("PUT", "/v1/documents/a", {{"If-Match", "*"}, {"If-None-Match", "*"}}, "x").status,
            400);
  EXPECT_EQ(Ask("PUT", "/v1/documents/a", {{"If-Match", "*"}, {"if-match", "\"7\""}}, "x").status,
            400);
  for (const char* query : {"dry=1", "dry_run=true&dry_run=false", "dry_run=true&dry_run=true",
                            "document=x", "key=x", "count=3", "dry_run=1"}) {
    const std::string target = std::string("/v1/documents/a?") + query;
    EXPECT_EQ(Ask("PUT", target, {{"If-Match", "*"}}, "x").status, 400) << query;
    EXPECT_EQ(Ask("DELETE", target, {{"If-Match", "*"}}).status, 400) << query;
  }
  EXPECT_EQ(Ask("PUT", "/v1/rules/d/u?count=3", {{"If-Match", "*"}}, "{}").status, 400);
  EXPECT_EQ(Ask("POST", "/v1/rollback?document=a", {}, R"({"document":"a"})").status, 400);
  EXPECT_EQ(Ask("POST", "/v1/confirm?dry_run=true", {}, "{}").status, 400);
  EXPECT_EQ(Ask("GET", "/v1/history?document=a&document=b").status, 400);
  EXPECT_EQ(Ask("GET", "/v1/history?dry_run=false").status, 400);
  EXPECT_EQ(Ask("GET", "/v1/rules/d/%ff").status, 400);
  EXPECT_EQ(Ask("GET", "/v1/rules/d/u=%ff").status, 400);
  EXPECT_EQ(Ask("GET", "/v1/rules/%ff/u").status, 400);
  EXPECT_EQ(Ask("GET", "/v1/rules/d/" + std::string(4097, 'k')).status, 400);
  EXPECT_EQ(editor.asked, "");
}

TEST_F(DocumentRoutes, SaysWhyAChangeWasNotMade) {
  const auto status_of = [&](const absl::Status& status) {
    editor.result = {.status = status};
    return Ask("PUT", "/v1/documents/a", {{"If-Match", "*"}}, "x").status;
  };
  EXPECT_EQ(status_of(absl::AbortedError("")), 412);
  EXPECT_EQ(status_of(absl::NotFoundError("")), 404);
  EXPECT_EQ(status_of(absl::PermissionDeniedError("")), 403);
  EXPECT_EQ(status_of(absl::FailedPreconditionError("")), 409);
  EXPECT_EQ(status_of(absl::UnavailableError("")), 503);
  EXPECT_EQ(status_of(absl::UnknownError("")), 504);
  editor.result = {.status = base::WithHint(absl::FailedPreconditionError("no"), "do this")};
  EXPECT_EQ(Json(Ask("PUT", "/v1/documents/a", {{"If-Match", "*"}}, "x"))["hint"], "do this");
  editor.result = {.status = absl::InvalidArgumentError("not valid")};
  editor.result.problems.push_back(
      {.file = "a", .line = 3, .column = 1, .message = "bad word", .hint = {}});
  const http::Response response = Ask("PUT", "/v1/documents/a", {{"If-Match", "*"}}, "x");
  EXPECT_EQ(response.status, 422);
  EXPECT_THAT(http::Lines(response.fields), HasSubstr("application/problem+json"));
  EXPECT_EQ(Json(response)["problems"][0]["line"], 3);
  EXPECT_EQ(Json(response)["detail"], "not valid");
}

TEST_F(DocumentRoutes, NamesTheRulesThatDiffer) {
  const rule::read::RuleFile file{
      .name = "a",
      .text =
          "domain: a\ndescriptors:\n- key: k\n  rate_limit: {unit: minute, "
          "requests_per_unit: 3}\n"};
  editor.result.differences.push_back(
      {.after = rule::read::LoadRules({&file, 1}).rules->rules()[0], .live_buckets = 5});
  const http::Response response =
      Ask("PUT", "/v1/documents/a?dry_run=true", {{"If-None-Match", "*"}}, "x");
  EXPECT_EQ(response.status, 200);
  const nlohmann::json change = Json(response)["changes"][0];
  EXPECT_EQ(change["change"], "added");
  EXPECT_EQ(change["rule"], "k");
  EXPECT_EQ(change["before"], nullptr);
  EXPECT_EQ(change["after"]["limits"][0]["requests"], 3);
  EXPECT_EQ(change["live_keys"], 5);
}

TEST_F(DocumentRoutes, WaitsForAnAnswerThatComesLater) {
  editor.later = true;
  const auto ask = [&] { return Ask("PUT", "/v1/documents/a", {{"If-Match", "*"}}, "x"); };
  EXPECT_TRUE(ask().later);
  EXPECT_EQ(woken, 0);
  editor.waiting({.status = absl::OkStatus(), .version = "9"});
  EXPECT_EQ(woken, 1);
  editor.asked.clear();
  const http::Response response = ask();
  EXPECT_FALSE(response.later);
  EXPECT_EQ(Json(response)["version"], "9");
  EXPECT_EQ(editor.asked, "");  // it is not asked twice
}

TEST_F(DocumentRoutes, AnAnswerForAClientThatHasGoneIsDropped) {
  editor.later = true;
  EXPECT_TRUE(Ask("PUT", "/v1/documents/a", {{"If-Match", "*"}}, "x").later);
  suspension = http::Suspension();
  editor.waiting({.status = absl::OkStatus()});
  EXPECT_EQ(woken, 0);
}

TEST_F(DocumentRoutes, TheLimitOfAKeyHasAPathOfItsOwn) {
  EXPECT_EQ(Ask("PUT", "/v1/limits/gold%2F1", {{"If-Match", "\"1\""}}, "{}").status, 200);
  EXPECT_EQ(editor.asked, "put {} /config/gold/1 at 1 by @10.0.0.7:1");
  editor.holds_limits = false;
  const http::Response response = Ask("GET", "/v1/limits/k");
  EXPECT_EQ(response.status, 404);
  EXPECT_THAT(response.body, HasSubstr("no source of rules holds limits"));
}

TEST_F(DocumentRoutes, ARuleHasAPathOfItsOwn) {
  const Fields any = {{"If-Match", "*"}};
  editor.document = rule::SourceDocument{.name = "a", .text = "rate_limit: {}\n", .version = "7"};
  const http::Response read = Ask("GET", "/v1/rules/shop/user=a%2Fb/path");
  EXPECT_EQ(editor.asked, "read rule shop|user=a/b|path");
  EXPECT_THAT(http::Lines(read.fields), HasSubstr("ETag: \"7\"\r\n"));
  EXPECT_EQ(Ask("PUT", "/v1/rules/shop/user", {{"If-None-Match", "*"}}, "{}").status, 201);
  EXPECT_EQ(editor.asked, "put shop|user {} at ");
  (void)Ask("DELETE", "/v1/rules/shop/user", {{"If-Match", "\"7\""}});
  EXPECT_EQ(editor.asked, "remove shop|user  at 7");
  (void)Ask("PUT", "/v1/rollouts/shop/user", any, R"({"percent":5})");
  EXPECT_EQ(editor.asked, R"(put rollout shop|user {"percent":5} at *)");
  (void)Ask("DELETE", "/v1/rollouts/shop/user", any);
  EXPECT_EQ(editor.asked, "end rollout shop|user  at *");
  (void)Ask("POST", "/v1/promote/shop/user", any, "{}");
  EXPECT_EQ(editor.asked, "promote shop|user {} at *");
  EXPECT_EQ(Ask("PUT", "/v1/rules/shop/user", {}, "{}").status, 428);
  for (const std::string bad :
       {"", "shop", "shop/", "/user", "shop/=v", "shop/u%zz", "shop/user//x"})
    EXPECT_EQ(Ask("GET", "/v1/rules/" + bad).status, 400) << bad;
}

TEST_F(DocumentRoutes, RollsBack) {
  EXPECT_EQ(Ask("POST", "/v1/rollback", {}, R"({"document":"a"})").status, 200);
  EXPECT_EQ(editor.asked, "rollback a to  at *");
  (void)Ask("POST", "/v1/rollback?dry_run=true", {},
            R"({"document":"a","change":"5","expected_version":"v"})");
  EXPECT_EQ(editor.asked, "rollback a to 5 at v dry");
  for (const std::string_view bad :
       {"{}", "[]", "{", R"({"document":1})", R"({"document":"a","x":""})",
        R"({"document":"a","document":"b"})", R"({"document":"a","change":"1","change":"2"})"})
    EXPECT_EQ(Ask("POST", "/v1/rollback", {}, bad).status, 400) << bad;
}

TEST_F(DocumentRoutes, ShowsWhoChangedWhat) {
  editor.changes = std::vector<rule::PastChange>{{.id = "1",
                                                  .time = "t",
                                                  .user = "ann",
                                                  .address = "x",
                                                  .action = "put",
                                                  .document = "a",
                                                  .outcome = "done",
                                                  .new_text = "n"}};
  const http::Response response = Ask("GET", "/v1/history?document=%2Fa&count=2");
  EXPECT_EQ(editor.asked, "history /a 2");
  EXPECT_EQ(Json(response)["changes"][0]["user"], "ann");
  EXPECT_FALSE(Json(response)["changes"][0].contains("old_text"));
  (void)Ask("GET", "/v1/history");
  EXPECT_EQ(editor.asked, "history  50");
  EXPECT_EQ(Ask("GET", "/v1/history?count=x").status, 400);
  editor.changes = absl::FailedPreconditionError("no audit log");
  EXPECT_EQ(Ask("GET", "/v1/history").status, 409);
}

TEST_F(DocumentRoutes, AHistoryLeavesOutTheTextsOfOlderChangesIfTheyAreLong) {
  const std::string text(size_t{3} << 20, 'x');
  rule::PastChange change;
  change.id = "1";
  change.new_text = text;
  editor.changes = std::vector<rule::PastChange>(3, change);
  const auto changes = Json(Ask("GET", "/v1/history"))["changes"];
  ASSERT_EQ(changes.size(), 3u);
  EXPECT_EQ(changes[1]["new_text"], text);
  EXPECT_FALSE(changes[1].contains("texts_left_out"));
  EXPECT_FALSE(changes[2].contains("new_text"));
  EXPECT_EQ(changes[2]["texts_left_out"], true);
}

TEST_F(DocumentRoutes, ConfirmsDeletions) {
  EXPECT_EQ(Ask("POST", "/v1/confirm", {}, "{}").status, 200);
  EXPECT_EQ(editor.asked, "confirm by 10.0.0.7:1");
  editor.confirmed = absl::FailedPreconditionError("nothing waits for a confirmation");
  EXPECT_EQ(Ask("POST", "/v1/confirm", {}, "{}").status, 409);
}

TEST_F(DocumentRoutes, AConfirmationNeedsTheRightToChange) {
  loopback = false;
  EXPECT_EQ(Ask("POST", "/v1/confirm", {}, "{}").status, 403);
  EXPECT_EQ(editor.asked, "");
  const auto& routes = router.routes();
  const auto confirm =
      std::ranges::find(routes, "/v1/confirm", [](const auto& route) { return route.path; });
  ASSERT_NE(confirm, routes.end());
  EXPECT_EQ(confirm->needs, access::Right::kAdmin);
}

TEST_F(DocumentRoutes, AListThatCannotBeMadeIsAProblem) {
  editor.states = absl::UnavailableError("the server is going down");
  EXPECT_EQ(Ask("GET", "/v1/documents").status, 503);
}

TEST_F(DocumentRoutes, AreForAdministratorsOnly) {
  loopback = false;
  EXPECT_EQ(Ask("GET", "/v1/documents").status, 403);
  EXPECT_EQ(Ask("PUT", "/v1/documents/a", {{"If-Match", "*"}}, "x").status, 403);
  EXPECT_EQ(Ask("POST", "/v1/rollback", {}, R"({"document":"a"})").status, 403);
  loopback = true;
  EXPECT_EQ(
      Ask("PUT", "/v1/documents/a", {{"If-Match", "*"}, {"Origin", "http://evil.example"}}, "x")
          .status,
      403);
  EXPECT_EQ(editor.asked, "");
}

}  // namespace document_routes_test
}  // namespace headgate::front::admin
