// Which handler answers which path. Fronts add their routes; one address may have those of several fronts. The
// checks common to all routes are made here, in this order: 404, 405, access to state (401, 403), JSON bodies only
// (415).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "headgate/net/access.h"
#include "headgate/net/http.h"

namespace headgate::net {

// The access that a route needs; see access.h.
enum class HttpNeeds : uint8_t { kNothing, kStateAccess };

struct HttpRoute {
  std::string method;  // "GET" answers HEAD too
  std::string path;    // exact
  std::string what;    // one line for whoever asks GET /
  HttpNeeds needs = HttpNeeds::kNothing;
  // Called for what has passed; `response` is cleared.
  std::function<void(const HttpRequest& request, HttpResponse& response, base::Instant now)> handle;
};

class HttpRouter final : public HttpHandler {
 public:
  // `title` is the first line of GET /, which lists the routes. `access` must outlive the router.
  HttpRouter(std::string title, const Access& access) : title_(std::move(title)), access_(access) {}

  void Add(HttpRoute route);
  void Handle(const HttpRequest& request, HttpResponse& response, base::Instant now) override;

 private:
  bool Passes(const HttpRoute& route, const HttpRequest& request, HttpResponse& response) const;
  void AnswerIndex(HttpResponse& response) const;

  const std::string title_;
  const Access& access_;
  std::vector<HttpRoute> routes_;
};

// Whether the request's Authorization presents the credential: `Bearer <credential>`, or `Basic` with it as password.
bool IsAuthenticated(const HttpRequest& request, const Access& access);

}  // namespace headgate::net
