// Which handler answers which path. Fronts add their routes; one address may have those of several fronts. The
// checks common to all routes are made here, in this order: 404, 405, access to state (401, 403), JSON bodies only
// (415).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "headgate/http/access.h"
#include "headgate/http/handler.h"

namespace headgate::http {

// The access that a route needs; see access.h.
enum class Needs : uint8_t { kNothing, kStateAccess };

struct Route {
  std::string method;  // "GET" answers HEAD too
  std::string path;    // exact
  std::string what;    // one line for whoever asks GET /
  Needs needs = Needs::kNothing;
  // Called for what has passed; `response` is cleared.
  std::function<void(const Request& request, Response& response, base::Instant now)> handle;
};

class Router final : public Handler {
 public:
  // `title` is the first line of GET /, which lists the routes. `access` must outlive the router.
  Router(std::string title, const Access& access) : title_(std::move(title)), access_(access) {}

  void Add(Route route);
  void Handle(const Request& request, Response& response, base::Instant now) override;

 private:
  bool Passes(const Route& route, const Request& request, Response& response) const;
  void AnswerIndex(Response& response) const;

  const std::string title_;
  const Access& access_;
  std::vector<Route> routes_;
};

// Whether the request's Authorization presents the credential: `Bearer <credential>`, or `Basic` with it as password.
bool IsAuthenticated(const Request& request, const Access& access);

}  // namespace headgate::http
