// The table of routes: which handler serves a path, and what it accepts. Fronts add their routes;
// several fronts may share one address. All refusals follow from the table, in this order: 404, 405
// with Allow, a web page of another site (403, only where more than the right `check` is needed),
// rights (401, 403, 429), the body's coding and type (415).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headgate/access/access.h"
#include "headgate/http/handler.h"
#include "headgate/http/routing/login_check.h"

namespace headgate::http::routing {

struct Route {
  enum class Match : uint8_t {
    kExact,
    kPrefix,  // `path` and every path below it; `path` ends with '/'
  };

  // "GET" serves HEAD too. Empty: any method; such a route ignores bodies, whatever their type.
  std::vector<std::string> methods;
  std::string path;  // as sent: neither percent-decoded nor normalized
  Match match = Match::kExact;
  std::string what{};                    // one line for the list that GET / returns
  std::optional<access::Right> needs{};  // absent: anybody may use the route
  // The accepted media types, for methods that have a body. Empty: any.
  std::vector<std::string> content_types = {"application/json"};
  // Whether requests may name any host. Set it only for routes that a web page cannot misuse.
  bool any_host = false;

  // Called after all checks; `response` is cleared.
  std::function<void(const Request& request, Response& response, base::Instant now)> handle{};
  // See Handler::AnswerRefusedHead. It is called before any check. May be null.
  std::function<bool(const Request& head, const Refusal& refusal, Response& response,
                     base::Instant now)>
      answer_refused_head{};
};

class Router final : public Handler {
 public:
  // `title` is the first line of GET /, which lists the routes. `access` must outlive the router;
  // `post` runs work on the thread of the router.
  Router(std::string title, access::Access& access, access::Post post = {})
      : title_(std::move(title)), login_(access, std::move(post)) {}

  // If several routes match a path, exact routes win, otherwise those with the longest prefix. Only
  // the routes that win determine which methods the path accepts.
  void Add(Route route);

  // Answers 404 at this path and below it, with a reason and a hint, whatever the host: for routes
  // that people may expect but that are turned off.
  void TurnOff(std::string path, std::string detail, std::string hint);

  // The most specific first. GET / has no route of its own.
  const std::vector<Route>& routes() const { return routes_; }

  void Handle(const Request& request, Response& response, base::Instant now) override;
  bool TakesAnyHost(std::string_view path) const override;
  bool AnswerRefusedHead(const Request& head, const Refusal& refusal, Response& response,
                         base::Instant now) override;

 private:
  struct TurnedOff {
    std::string path;
    std::string detail;
    std::string hint;
  };
  struct Found {
    const Route* route = nullptr;  // null: no route accepts this method
    const Route* path = nullptr;   // the first route of the path; null if there is none
  };
  Found Find(const Request& request) const;
  // Null if the path, and all paths above it, are not turned off.
  const TurnedOff* FindTurnedOff(std::string_view path) const;
  void AnswerNotFound(const Request& request, const Route* path, Response& response) const;
  // Each returns false after it has refused the request.
  bool Passes(const Route& route, const Request& request, Response& response,
              base::Instant now) const;
  bool TakesBody(const Route& route, const Request& request, Response& response) const;
  void AnswerIndex(Response& response) const;

  const std::string title_;
  const LoginCheck login_;
  std::vector<Route> routes_;
  std::vector<TurnedOff> turned_off_;
};

}  // namespace headgate::http::routing
