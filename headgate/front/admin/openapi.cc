#include "headgate/front/admin/openapi.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "headgate/base/check.h"

namespace headgate::front::admin {
namespace {

using http::Route;
using nlohmann::ordered_json;

// All that a Path Item Object can have.
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
  return !route.methods.empty() && http::HasBody(method);
}
// A request of these two methods that has a body is malformed.
bool IfItMayHaveABody(const Route& /*route*/, std::string_view method) {
  return method != "GET" && method != "HEAD";
}
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
    {"417", "UnknownExpectation", IfItMayHaveABody},
    {"421", "UnknownHost", IfItKnowsItsHosts},
    {"429", "TooManyLogins", IfItNeedsARight},
    {"431", "HeadTooLarge", Always},
    {"501", "UnknownCoding", Always},
    {"503", "Unavailable", Always},
    {"505", "WrongVersion", Always},
};

// `{}` stands for a request without a login: a client on the same machine may send it if the server
// has no logins, and anybody if it gives the right to everybody.
ordered_json SecurityOf(const Route& route) {
  ordered_json security = ordered_json::array();
  if (!route.needs) return security;
  const ordered_json roles = ordered_json::array({access::Name(*route.needs)});
  security.push_back(ordered_json::object());
  security.push_back({{"basic", roles}});
  security.push_back({{"bearer", roles}});
  return security;
}

ordered_json Completed(ordered_json operation, const Route& route, std::string_view method) {
  std::map<std::string, ordered_json> responses;
  for (const auto& [status, response] : operation["responses"].items())
    responses[status] = response;
  for (const ImpliedResponse& implied : kImplied) {
    if (!implied.holds(route, method)) continue;
    responses.try_emplace(
        std::string(implied.status),
        ordered_json({{"$ref", fmt::format("{}responses/{}", kComponents, implied.component)}}));
  }
  ordered_json& sorted = operation["responses"] = ordered_json::object();
  for (auto& [status, response] : responses) sorted[status] = std::move(response);
  operation["security"] = SecurityOf(route);
  return operation;
}

// The operations of a path that these routes serve, and what they share; null if there are none.
ordered_json DescribePath(std::string_view path, const ordered_json& item,
                          const std::vector<Route>& routes) {
  ordered_json described;
  ordered_json shared = ordered_json::object();
  for (const auto& [member, value] : item.items()) {
    if (member == "parameters") {
      shared[member] = value;
      continue;
    }
    const Route* const route = RouteOf(path, member, routes);
    if (route == nullptr) continue;
    if (member != kAny) {
      described[member] = Completed(value, *route, Uppercase(member));
      continue;
    }
    for (const std::string_view method : kMethods) {
      ordered_json operation = value;
      operation["operationId"] =
          fmt::format("{}_{}", value["operationId"].get<std::string>(), method);
      described[std::string(method)] = Completed(std::move(operation), *route, Uppercase(method));
    }
  }
  if (!described.is_null()) described.update(shared);
  return described;
}

// ---- The components that are referred to

// Calls `use` with each reference below `json`.
template <typename Use>
void ForEachReference(const ordered_json& json, const Use& use) {
  if (json.contains("$ref") && json["$ref"].is_string())
    return use(json["$ref"].get<std::string>());
  if (json.is_structured())
    for (const ordered_json& child : json) ForEachReference(child, use);
}

class Components {
 public:
  explicit Components(const ordered_json& all) : all_(all) {}

  // Takes what `json` refers to, directly or not.
  void TakeThoseOf(const ordered_json& json) {
    ForEachReference(json, [this](const std::string& reference) { Take(reference); });
  }

  ordered_json Taken() const {
    ordered_json taken;
    for (const auto& [kind, components] : all_.items()) {
      for (const auto& [name, component] : components.items()) {
        if (kind == "securitySchemes" ||
            taken_.contains(fmt::format("{}{}/{}", kComponents, kind, name)))
          taken[kind][name] = component;
      }
    }
    return taken;
  }

 private:
  void Take(const std::string& reference) {
    if (!taken_.insert(reference).second) return;
    HEADGATE_CHECK(reference.starts_with(kComponents));
    const ordered_json::json_pointer place(reference.substr(kComponents.size() - 1));
    HEADGATE_CHECK(all_.contains(place));
    TakeThoseOf(all_[place]);
  }

  const ordered_json& all_;
  std::set<std::string> taken_;
};

}  // namespace

std::string DescribeRoutes(std::vector<Route> routes) {
  // The router itself answers GET /, and asks for no right.
  routes.push_back({.methods = {"GET"}, .path = "/"});
  ordered_json document = {
      {"openapi", "3.1.0"},
      {"info",
       {{"title", "Headgate"},
        {"version", "1"},
        {"summary", "Decides for every request whether it may pass now."},
        {"description",
         "The operations of the address that served this document. HEAD is answered like GET, "
         "without the content. A method that a path does not take is answered 405 with Allow, and "
         "a path that is not described 404. Roles in `security` are the rights of users."},
        {"license", {{"name", "Apache-2.0"}, {"identifier", "Apache-2.0"}}}}},
      {"servers", ordered_json::array({{{"url", "/"}}})}};
  ordered_json& paths = document["paths"] = ordered_json::object();
  ordered_json all = ordered_json::object();
  for (const std::string_view text : kOpenApiParts) {
    const ordered_json part = ordered_json::parse(text);
    if (part.contains("paths")) {
      for (const auto& [path, item] : part["paths"].items()) {
        ordered_json described = DescribePath(path, item, routes);
        if (!described.is_null()) paths[path] = std::move(described);
      }
    }
    if (!part.contains("components")) continue;
    for (const auto& [kind, components] : part["components"].items()) all[kind].update(components);
  }
  Components components(all);
  components.TakeThoseOf(paths);
  document["components"] = components.Taken();
  return document.dump(1) + "\n";
}

}  // namespace headgate::front::admin
