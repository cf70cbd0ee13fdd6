#include "headgate/http/routing/router.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "headgate/base/check.h"
#include "headgate/http/problem.h"

namespace headgate::http::routing {
namespace {

// HEAD is GET without the content.
std::string_view RoutedMethod(std::string_view method) { return method == "HEAD" ? "GET" : method; }

bool Matches(const Route& route, std::string_view path) {
  return route.match == Route::Match::kPrefix ? path.starts_with(route.path) : path == route.path;
}

// Whether a browser sends the request for a page of another site. Programs send none of these
// fields.
bool ComesFromAnotherSite(const Request& request) {
  const std::string_view site = request.Field("Sec-Fetch-Site");
  if (EqualsIgnoreCase(site, "cross-site") || EqualsIgnoreCase(site, "same-site")) return true;
  std::string_view origin = request.Field("Origin");
  if (origin.empty()) return false;
  const size_t scheme = origin.find("://");
  if (scheme == std::string_view::npos) return true;  // "null"
  origin.remove_prefix(scheme + 3);
  return !EqualsIgnoreCase(origin, request.host);
}

bool HaveOnePath(const Route& a, const Route& b) { return a.match == b.match && a.path == b.path; }

bool Contains(const std::vector<std::string>& methods, std::string_view method) {
  return std::find(methods.begin(), methods.end(), method) != methods.end();
}

}  // namespace

void Router::Add(Route route) {
  HEADGATE_CHECK(route.path.starts_with('/'));
  HEADGATE_CHECK(route.match == Route::Match::kExact || route.path.ends_with('/'));
  HEADGATE_CHECK(route.handle != nullptr);
  // Routes of the same path keep their order of registration.
  const auto more_specific = [](const Route& a, const Route& b) {
    if (a.match != b.match) return a.match == Route::Match::kExact;
    return a.match == Route::Match::kPrefix && a.path.size() > b.path.size();
  };
  const auto place = std::upper_bound(routes_.begin(), routes_.end(), route, more_specific);
  routes_.insert(place, std::move(route));
}

void Router::TurnOff(std::string path, std::string detail, std::string hint) {
  turned_off_.push_back({std::move(path), std::move(detail), std::move(hint)});
}

void Router::Handle(const Request& request, Response& response, base::Instant now) {
  const Found found = Find(request);
  if (found.route == nullptr) return AnswerNotFound(request, found.path, response);
  Suspension* const suspension = request.suspension;
  const bool waited = suspension != nullptr && suspension->allowed;
  if (!waited && !Passes(*found.route, request, response, now)) return;
  // A response to GET is a snapshot of state: it must not be cached, and its type must not be
  // guessed.
  if (!found.route->methods.empty() && RoutedMethod(request.method) == "GET") {
    response.AddField("Cache-Control", "no-store");
    response.AddField("X-Content-Type-Options", "nosniff");
  }
  found.route->handle(request, response, now);
  if (suspension != nullptr) suspension->allowed = response.later;
}

bool Router::TakesAnyHost(std::string_view path) const {
  if (FindTurnedOff(path) != nullptr) return true;
  return std::any_of(routes_.begin(), routes_.end(),
                     [&](const Route& route) { return route.any_host && Matches(route, path); });
}

bool Router::AnswerRefusedHead(const Request& head, const Refusal& refusal, Response& response,
                               base::Instant now) {
  const Route* const route = Find(head).route;
  return route != nullptr && route->answer_refused_head &&
         route->answer_refused_head(head, refusal, response, now);
}

Router::Found Router::Find(const Request& request) const {
  const std::string_view path = request.path();
  const std::string_view method = RoutedMethod(request.method);
  Found found;
  for (const Route& route : routes_) {
    if (found.path == nullptr ? !Matches(route, path) : !HaveOnePath(route, *found.path)) continue;
    if (found.path == nullptr) found.path = &route;
    if (!route.methods.empty() && !Contains(route.methods, method)) continue;
    found.route = &route;
    break;
  }
  return found;
}

const Router::TurnedOff* Router::FindTurnedOff(std::string_view path) const {
  const auto is_at = [&](const TurnedOff& off) {
    return path.starts_with(off.path) &&
           (path.size() == off.path.size() || path[off.path.size()] == '/');
  };
  const auto found = std::find_if(turned_off_.begin(), turned_off_.end(), is_at);
  return found == turned_off_.end() ? nullptr : &*found;
}

void Router::AnswerNotFound(const Request& request, const Route* path, Response& response) const {
  std::string allowed;
  for (const Route& route : routes_) {
    if (path == nullptr || !HaveOnePath(route, *path)) continue;
    for (const std::string& method : route.methods) {
      allowed.append(allowed.empty() ? "" : ", ").append(method == "GET" ? "GET, HEAD" : method);
    }
  }
  if (path == nullptr && request.path() == "/") {
    if (RoutedMethod(request.method) == "GET") return AnswerIndex(response);
    allowed = "GET, HEAD";
  }
  if (const TurnedOff* const off = FindTurnedOff(request.path()); off != nullptr && path == nullptr)
    return AnswerProblem(404, off->detail, off->hint, response);
  if (allowed.empty())
    return AnswerProblem(404, "this path does not exist", "GET / lists all paths", response);
  response.AddField("Allow", allowed);
  AnswerProblem(405, "this path does not take this method", fmt::format("it takes {}", allowed),
                response);
}

bool Router::Passes(const Route& route, const Request& request, Response& response,
                    base::Instant now) const {
  if (route.needs && *route.needs != access::Right::kCheck && ComesFromAnotherSite(request)) {
    AnswerProblem(403, "the request comes from a web page of another site",
                  "this server's own pages may send it, and programs that send no Origin",
                  response);
    return false;
  }
  if (route.needs && !login_.Allows(*route.needs, request, response, now)) return false;
  return route.methods.empty() || !HasBody(request.method) || TakesBody(route, request, response);
}

bool Router::TakesBody(const Route& route, const Request& request, Response& response) const {
  const std::string_view encoding = request.Field("Content-Encoding");
  if (!encoding.empty() && !EqualsIgnoreCase(encoding, "identity")) {
    response.AddField("Accept-Encoding", "identity");
    AnswerProblem(415,
                  fmt::format("the body is encoded ({}); this server reads plain bodies", encoding),
                  "send the body as it is, without Content-Encoding", response);
    return false;
  }
  const std::string_view type = request.Field("Content-Type");
  const auto& taken = route.content_types;
  if (taken.empty() || std::any_of(taken.begin(), taken.end(),
                                   [&](const auto& t) { return IsMediaType(type, t); })) {
    return true;
  }
  AnswerProblem(415, "this path does not take a body of this type",
                fmt::format("send Content-Type: {}", fmt::join(taken, " or ")), response);
  return false;
}

void Router::AnswerIndex(Response& response) const {
  response.AddField("Content-Type", "text/plain; charset=utf-8");
  response.AddField("Cache-Control", "no-store");
  response.body.append(title_).append("\n\n");
  for (const Route& route : routes_) {
    fmt::format_to(std::back_inserter(response.body), "{:<4} {:<14} {}\n",
                   route.methods.empty() ? "ANY" : fmt::format("{}", fmt::join(route.methods, ",")),
                   route.path + (route.match == Route::Match::kPrefix ? "..." : ""), route.what);
  }
}

}  // namespace headgate::http::routing
