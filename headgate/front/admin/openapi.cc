#include "headgate/front/admin/openapi.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "headgate/base/check.h"
#include "headgate/wire/json.h"

namespace headgate::front::admin {
namespace {

using http::routing::Route;
using wire::Json;

// All methods that a Path Item Object can have.
constexpr std::array<std::string_view, 8> kMethods = {"get",     "put",  "post",  "delete",
                                                      "options", "head", "patch", "trace"};
constexpr std::string_view kAny = "any";

constexpr std::string_view kComponents = "#/components/";

std::string Uppercase(std::string_view method) {
  std::string upper(method);
  std::transform(upper.begin(), upper.end(), upper.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return upper;
}

// ---- Which operations there are

// The route of an operation; null if there is none.
const Route* RouteOf(std::string_view path_template, std::string_view method,
                     const std::vector<Route>& routes) {
  const size_t brace = path_template.find('{');
  const auto match = brace == std::string_view::npos ? Route::Match::kExact : Route::Match::kPrefix;
  const std::string_view path = path_template.substr(0, brace);
  const std::string name = Uppercase(method);
  const auto serves = [&](const Route& route) {
    if (route.match != match || route.path != path) return false;
    return method == kAny
               ? route.methods.empty()
               : std::find(route.methods.begin(), route.methods.end(), name) != route.methods.end();
  };
  const auto found = std::find_if(routes.begin(), routes.end(), serves);
  return found == routes.end() ? nullptr : &*found;
}

// ---- What the table of routes and HTTP imply for an operation

bool Always(const Route& /*route*/, std::string_view /*method*/) { return true; }
bool IfItNeedsARight(const Route& route, std::string_view /*method*/) {
  return route.needs.has_value();
}
bool IfItReadsABody(const Route& route, std::string_view method) {
  return !route.methods.empty() && !route.content_types.empty() && http::HasBody(method);
}
// A request of these two methods that has a body is malformed.
bool IfItKnowsItsHosts(const Route& route, std::string_view /*method*/) { return !route.any_host; }

struct ImpliedResponse {
  std::string_view status;
  std::string_view component;
  bool (*holds)(const Route& route, std::string_view method);
};
constexpr ImpliedResponse kImplied[] = {
    {"400", "Malformed", Always},
    {"401", "NoLogin", IfItNeedsARight},
    {"403", "NoRight", IfItNeedsARight},
    {"408", "TooSlow", Always},
    {"413", "BodyTooLarge", Always},
    {"414", "TargetTooLong", Always},
    {"415", "WrongBodyType", IfItReadsABody},
    {"417", "UnknownExpectation", Always},
    {"421", "UnknownHost", IfItKnowsItsHosts},
    {"429", "TooManyLogins", IfItNeedsARight},
    {"431", "HeadTooLarge", Always},
    {"503", "Unavailable", Always},
    {"505", "WrongVersion", Always},
};

// `{}` stands for a request without a login: a client on the same machine may send it if the server
// has no logins, and anybody if it gives the right to everybody.
Json SecurityOf(const Route& route) {
  if (!route.needs) return Json::Array();
  const Json roles = Json::Array({access::Name(*route.needs)});
  return Json::Array(
      {Json::Object(), Json::Object({{"basic", roles}}), Json::Object({{"bearer", roles}})});
}

Json Completed(Json operation, const Route& route, std::string_view method) {
  std::map<std::string, Json> responses;
  for (const auto& [status, response] : operation["responses"].members())
    responses[status] = response;
  for (const ImpliedResponse& implied : kImplied) {
    if (!implied.holds(route, method)) continue;
    responses.try_emplace(
        std::string(implied.status),
        Json::Object({{"$ref", fmt::format("{}responses/{}", kComponents, implied.component)}}));
  }
  Json& sorted = operation["responses"] = Json::Object();
  for (auto& [status, response] : responses) sorted.Add(status, std::move(response));
  operation["security"] = SecurityOf(route);
  return operation;
}

// The operations of a path that these routes serve, and their common members; null if there are
// none.
Json DescribePath(std::string_view path, const Json& item, const std::vector<Route>& routes) {
  constexpr std::string_view kShared = "parameters";
  Json described;
  for (const auto& [member, value] : item.members()) {
    if (member == kShared) continue;
    const Route* const route = RouteOf(path, member, routes);
    if (route == nullptr) continue;
    if (member != kAny) {
      described[member] = Completed(value, *route, Uppercase(member));
      continue;
    }
    for (const std::string_view method : kMethods) {
      Json operation = value;
      operation["operationId"] = fmt::format("{}_{}", value["operationId"].text(), method);
      described[method] = Completed(std::move(operation), *route, Uppercase(method));
    }
  }
  const Json* const shared = item.Find(kShared);
  if (!described.is_null() && shared != nullptr) described.Add(kShared, *shared);
  return described;
}

// ---- The components that are referred to

// Calls `use` with each reference below `json`.
template <typename Use>
void ForEachReference(const Json& json, const Use& use) {
  if (json["$ref"].is_string()) return use(json["$ref"].text());
  for (const Json& item : json.items()) ForEachReference(item, use);
  for (const Json::Member& member : json.members()) ForEachReference(member.value, use);
}

class Components {
 public:
  explicit Components(const Json& all) : all_(all) {}

  // Adds the components that `json` refers to, directly or not.
  void TakeThoseOf(const Json& json) {
    ForEachReference(json, [this](std::string_view reference) { Take(reference); });
  }

  Json Taken() const {
    Json taken;
    for (const auto& [kind, components] : all_.members()) {
      for (const auto& [name, component] : components.members()) {
        if (kind == "securitySchemes" ||
            taken_.contains(fmt::format("{}{}/{}", kComponents, kind, name)))
          taken[kind][name] = component;
      }
    }
    return taken;
  }

 private:
  // A reference is "#/components/KIND/NAME".
  void Take(std::string_view reference) {
    if (!taken_.emplace(reference).second) return;
    HEADGATE_CHECK(reference.starts_with(kComponents));
    const std::string_view place = reference.substr(kComponents.size());
    const size_t slash = place.find('/');
    HEADGATE_CHECK(slash != place.npos);
    const Json* const component = all_[place.substr(0, slash)].Find(place.substr(slash + 1));
    HEADGATE_CHECK(component != nullptr);
    TakeThoseOf(*component);
  }

  const Json& all_;
  std::set<std::string> taken_;
};

}  // namespace

std::string DescribeRoutes(std::vector<Route> routes) {
  // The router itself answers GET /, and asks for no right.
  routes.push_back({.methods = {"GET"}, .path = "/"});
  const Json license = Json::Object({{"name", "Apache-2.0"}, {"identifier", "Apache-2.0"}});
  Json document = Json::Object({
      {"openapi", "3.1.0"},
      {"info",
       Json::Object({
           {"title", "Headgate"},
           {"version", "1"},
           {"summary", "Decides for every request whether it may pass now."},
           {"description",
            "The operations of the address that served this document. HEAD is answered like GET, "
            "without the content. A method that a path does not take is answered 405 with Allow, "
            "and a path that is not described 404. Roles in `security` are the rights of users."},
           {"license", license},
       })},
      {"servers", Json::Array({Json::Object({{"url", "/"}})})},
  });
  Json paths = Json::Object();
  Json all = Json::Object();
  for (const std::string_view text : kOpenApiParts) {
    const std::optional<const Json> part = Json::Parse(text);
    HEADGATE_CHECK(part.has_value());
    for (const auto& [path, item] : (*part)["paths"].members()) {
      Json described = DescribePath(path, item, routes);
      if (!described.is_null()) paths[path] = std::move(described);
    }
    for (const auto& [kind, components] : (*part)["components"].members())
      for (const auto& [name, component] : components.members()) all[kind][name] = component;
  }
  Components components(all);
  components.TakeThoseOf(paths);
  document.Add("paths", std::move(paths));
  document.Add("components", components.Taken());
  return document.IndentedText(1) + "\n";
}

}  // namespace headgate::front::admin
