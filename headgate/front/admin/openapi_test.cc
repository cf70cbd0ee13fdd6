#include "headgate/front/admin/openapi.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "headgate/front/admin/document_routes.h"
#include "headgate/front/admin/routes.h"
#include "headgate/front/admin/rule_routes.h"

namespace headgate::front::admin {
namespace openapi_test {

using nlohmann::json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

json Describe(std::vector<http::routing::Route> routes) {
  return json::parse(DescribeRoutes(std::move(routes)));
}

std::vector<std::string> Names(const json& object) {
  std::vector<std::string> names;
  for (const auto& [name, value] : object.items()) names.push_back(name);
  return names;
}

TEST(OpenApi, HasTheOperationsOfTheRoutesAndTheIndex) {
  const json document = Describe({{.methods = {"POST"}, .path = "/v1/check"},
                                  {.methods = {"GET"}, .path = "/healthz"},
                                  {.methods = {"GET"}, .path = "/unknown"}});
  EXPECT_EQ(document["openapi"], "3.1.0");
  EXPECT_THAT(Names(document["paths"]), UnorderedElementsAre("/", "/healthz", "/v1/check"));
  EXPECT_THAT(Names(document["paths"]["/v1/check"]), ElementsAre("post"));
}

TEST(OpenApi, HasOnlyTheMethodsThatARouteTakes) {
  const auto prefix = http::routing::Route::Match::kPrefix;
  EXPECT_THAT(Names(Describe({{.methods = {"GET"},
                               .path = "/v1/rules/",
                               .match = prefix}})["paths"]["/v1/rules/{domain}/{rule}"]),
              UnorderedElementsAre("get", "parameters"));
  EXPECT_THAT(Names(Describe({{.methods = {"DELETE", "PUT"}, .path = "/v1/rules/", .match = prefix},
                              {.methods = {"POST"}, .path = "/healthz"}})["paths"]),
              UnorderedElementsAre("/", "/v1/rules/{domain}/{rule}"));
}

TEST(OpenApi, TellsARouteFromThePathsBelowIt) {
  EXPECT_THAT(Names(Describe({{.methods = {}, .path = "/auth"}})["paths"]),
              UnorderedElementsAre("/", "/auth"));
  EXPECT_THAT(Names(Describe({{.methods = {},
                               .path = "/auth/",
                               .match = http::routing::Route::Match::kPrefix}})["paths"]),
              UnorderedElementsAre("/", "/auth/{path}"));
}

TEST(OpenApi, HasEveryMethodThatOpenApiKnowsOfARouteForAnyMethod) {
  const json item = Describe({{.methods = {}, .path = "/auth"}})["paths"]["/auth"];
  EXPECT_THAT(Names(item), UnorderedElementsAre("get", "put", "post", "delete", "options", "head",
                                                "patch", "trace"));
  std::set<std::string> ids;
  for (const auto& [method, operation] : item.items())
    ids.insert(operation["operationId"].get<std::string>());
  EXPECT_EQ(ids.size(), 8);
}

std::vector<std::string> StatusesOf(const json& document, const char* path, const char* method) {
  return Names(document["paths"][path][method]["responses"]);
}

TEST(OpenApi, AddsWhatHttpImplies) {
  const json document = Describe({{.methods = {"GET"}, .path = "/healthz"}});
  EXPECT_THAT(StatusesOf(document, "/healthz", "get"),
              ElementsAre("200", "400", "408", "413", "414", "417", "421", "431", "503", "505"));
}

TEST(OpenApi, AddsWhatTheRouteImplies) {
  const json document =
      Describe({{.methods = {"POST"}, .path = "/v1/checks", .needs = access::Right::kCheck},
                {.methods = {}, .path = "/auth", .any_host = true}});
  EXPECT_THAT(StatusesOf(document, "/v1/checks", "post"),
              IsSupersetOf({"401", "403", "415", "417", "421", "429"}));
  EXPECT_THAT(StatusesOf(document, "/auth", "get"), Contains("417"));
  EXPECT_THAT(StatusesOf(document, "/auth", "post"), Not(Contains("415")));
  EXPECT_THAT(StatusesOf(document, "/auth", "post"), Not(Contains("421")));
}

TEST(OpenApi, AResponseOfItsOwnWins) {
  const json document =
      Describe({{.methods = {"POST"}, .path = "/v1/check", .needs = access::Right::kCheck}});
  const json responses = document["paths"]["/v1/check"]["post"]["responses"];
  EXPECT_EQ(responses["429"]["$ref"], "#/components/responses/Denied");
  EXPECT_EQ(responses["400"]["$ref"], "#/components/responses/Malformed");
}

TEST(OpenApi, SaysTheRightThatIsNeeded) {
  const json document =
      Describe({{.methods = {"POST"}, .path = "/v1/refund", .needs = access::Right::kRefund},
                {.methods = {"GET"}, .path = "/healthz"}});
  EXPECT_EQ(document["paths"]["/v1/refund"]["post"]["security"],
            json::parse(R"([{},{"basic":["refund"]},{"bearer":["refund"]}])"));
  EXPECT_EQ(document["paths"]["/healthz"]["get"]["security"], json::array());
  EXPECT_EQ(document["paths"]["/"]["get"]["security"], json::array());
}

TEST(OpenApi, HasTheComponentsThatItRefersToAndNoOthers) {
  const json document = Describe({{.methods = {"GET"}, .path = "/v1/rules"}});
  // Rules refers to Rule, which refers to RuleLimit.
  EXPECT_THAT(Names(document["components"]["schemas"]),
              UnorderedElementsAre("Problem", "Rule", "RuleLimit", "Rules"));
  EXPECT_FALSE(document["components"].contains("parameters"));
  EXPECT_FALSE(document["components"]["responses"].contains("Denied"));
  EXPECT_THAT(Names(document["components"]["securitySchemes"]),
              UnorderedElementsAre("basic", "bearer"));
}

TEST(OpenApi, ThePartsNameEachOperationAndComponentOnce) {
  std::set<std::string> ids;
  std::set<std::string> components;
  for (const std::string_view text : kOpenApiParts) {
    const json part = json::parse(text);
    const json paths = part.value("paths", json::object());
    for (const auto& [path, item] : paths.items()) {
      for (const auto& [method, operation] : item.items()) {
        if (method == "parameters") continue;
        EXPECT_TRUE(ids.insert(operation["operationId"].get<std::string>()).second)
            << path << " " << method;
      }
    }
    const json all = part.value("components", json::object());
    for (const auto& [kind, some] : all.items()) {
      for (const auto& [name, component] : some.items())
        EXPECT_TRUE(components.insert(fmt::format("{}/{}", kind, name)).second) << kind << name;
    }
  }
  EXPECT_GE(ids.size(), 30);
}

// The routes as the document names them: {"/v1/documents/", {"GET", "PUT", "DELETE"}}.
using Served = std::map<std::string, std::set<std::string>>;

Served ServedBy(const std::vector<http::routing::Route>& routes) {
  Served served{{"/", {"GET"}}};
  for (const http::routing::Route& route : routes)
    served[route.path].insert(route.methods.begin(), route.methods.end());
  return served;
}

Served DescribedIn(const json& document) {
  Served described;
  for (const auto& [path, item] : document["paths"].items()) {
    for (const auto& [method, operation] : item.items()) {
      if (method == "parameters") continue;
      std::string name = method;
      for (char& c : name) c = static_cast<char>(c - 'a' + 'A');
      described[path.substr(0, path.find('{'))].insert(name);
    }
  }
  return described;
}

// Never asked: the routes are only described.
class NoEditor final : public rule::Editor {
 public:
  void List(OnStates) override {}
  void Read(std::string_view, OnDocument) override {}
  std::string NameOfLimit(std::string_view) const override { return {}; }
  void Change(const rule::Edit&, OnEdited) override {}
  void ReadRule(const rule::RulePath&, OnDocument) override {}
  void ChangeRule(const rule::RuleEdit&, OnEdited) override {}
  void RollBack(const rule::Rollback&, OnEdited) override {}
  void History(std::string_view, size_t, OnChanges) override {}
  void Confirm(const rule::Author&, std::function<void(absl::Status)>) override {}
};

TEST(OpenApi, DescribesTheAdminAddressCompletely) {
  NoEditor editor;
  access::Access access;
  http::routing::Router router("Headgate", access);
  AddRoutes({.rules = [] { return nullptr; },
             .metrics = [] { return std::string(); },
             .readiness = [] { return absl::OkStatus(); }},
            router);
  AddDocumentRoutes(editor, router);
  AddRuleRoutes(editor, router);
  http::Request request;
  request.method = "GET";
  request.target = "/openapi.json";
  http::Response response;
  router.Handle(request, response, base::Instant::FromNanos(0));
  ASSERT_NE(response.stream, nullptr);
  std::string text;
  while (response.stream->Read(1000, text, base::Instant::FromNanos(0)) ==
         http::BodySource::Next::kMore) {
  }
  EXPECT_EQ(DescribedIn(json::parse(text)), ServedBy(router.routes()));
}

}  // namespace openapi_test
}  // namespace headgate::front::admin
