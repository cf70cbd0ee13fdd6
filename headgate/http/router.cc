#include "headgate/http/router.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "fmt/format.h"
#include "headgate/base/check.h"
#include "headgate/http/problem.h"

namespace headgate::http {
namespace {

// HEAD is GET without the content.
std::string_view RoutedMethod(std::string_view method) { return method == "HEAD" ? "GET" : method; }

bool HasBody(std::string_view method) { return method == "POST" || method == "PUT" || method == "PATCH"; }

}  // namespace

bool IsAuthenticated(const Request& request, const Access& access) {
  const std::string_view field = request.Field("Authorization");
  const size_t space = field.find(' ');
  if (!access.credential_set() || space == std::string_view::npos) return false;
  const std::string_view scheme = field.substr(0, space);
  std::string_view presented = field.substr(space);
  presented.remove_prefix(std::min(presented.find_first_not_of(' '), presented.size()));
  if (EqualsIgnoreCase(scheme, "Bearer")) return access.Matches(presented);
  if (!EqualsIgnoreCase(scheme, "Basic")) return false;

  std::string user_and_password;
  if (!absl::Base64Unescape(absl::string_view(presented.data(), presented.size()), &user_and_password)) return false;
  const size_t colon = user_and_password.find(':');
  return colon != std::string::npos && access.Matches(std::string_view(user_and_password).substr(colon + 1));
}

void Router::Add(Route route) {
  HEADGATE_CHECK(route.path.starts_with('/'));
  HEADGATE_CHECK(route.handle != nullptr);
  routes_.push_back(std::move(route));
}

void Router::Handle(const Request& request, Response& response, base::Instant now) {
  const std::string_view path = request.path();
  const std::string_view method = RoutedMethod(request.method);
  std::string allowed;
  for (const Route& route : routes_) {
    if (route.path != path) continue;
    if (route.method == method) {
      if (!Passes(route, request, response)) return;
      // An answer to GET tells the state of a moment; nobody is to keep it, or to guess what it is.
      if (method == "GET") response.AddField("Cache-Control", "no-store");
      if (method == "GET") response.AddField("X-Content-Type-Options", "nosniff");
      route.handle(request, response, now);
      return;
    }
    allowed.append(allowed.empty() ? "" : ", ").append(route.method == "GET" ? "GET, HEAD" : route.method);
  }
  if (allowed.empty() && path == "/") {
    if (method == "GET") return AnswerIndex(response);
    allowed = "GET, HEAD";
  }
  if (allowed.empty()) return AnswerProblem(404, "nothing is at this path", "GET / lists what is here", response);
  response.AddField("Allow", allowed);
  AnswerProblem(405, "this path does not take this method", fmt::format("it takes {}", allowed), response);
}

bool Router::Passes(const Route& route, const Request& request, Response& response) const {
  if (route.needs == Needs::kStateAccess && !access_.MayUseState(request.peer, IsAuthenticated(request, access_))) {
    if (access_.credential_set()) {
      response.AddField("WWW-Authenticate", R"(Bearer realm="headgate", Basic realm="headgate")");
      AnswerProblem(401, "this needs the server's credential",
                    "send Authorization: Bearer CREDENTIAL, or Basic with it as the password", response);
    } else {
      AnswerProblem(403, "the server has no credential set, so this is for its own machine only",
                    "set a credential on the server and send it, or ask from that machine", response);
    }
    return false;
  }
  const std::string_view encoding = request.Field("Content-Encoding");
  if (HasBody(route.method) && !encoding.empty() && !EqualsIgnoreCase(encoding, "identity")) {
    response.AddField("Accept-Encoding", "identity");
    AnswerProblem(415, fmt::format("the body is encoded ({}); this server reads plain bodies", encoding),
                  "send the body as it is, without Content-Encoding", response);
    return false;
  }
  if (HasBody(route.method) && !IsMediaType(request.Field("Content-Type"), "application/json")) {
    AnswerProblem(415, "the body must be JSON", "send Content-Type: application/json", response);
    return false;
  }
  return true;
}

void Router::AnswerIndex(Response& response) const {
  response.AddField("Content-Type", "text/plain; charset=utf-8");
  response.AddField("Cache-Control", "no-store");
  response.body.append(title_).append("\n\n");
  for (const Route& route : routes_) {
    fmt::format_to(std::back_inserter(response.body), "{:<4} {:<14} {}\n", route.method, route.path, route.what);
  }
}

}  // namespace headgate::http
