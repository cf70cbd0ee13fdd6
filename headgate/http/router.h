// The table of routes: which handler answers which path, and what it takes. Fronts add their
// routes; one address may have those of several fronts. Every refusal follows from the table, in
// this order: 404, 405 with Allow, access to state (401, 403), the body's coding and type (415).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "headgate/http/access.h"
#include "headgate/http/handler.h"

namespace headgate::http {

// The access that a route needs; see access.h.
enum class Needs : uint8_t { kNothing, kStateAccess };

struct Route {
  enum class Match : uint8_t {
    kExact,
    kPrefix,  // `path` and every path that goes on behind it; `path` ends with '/'
  };

  std::vector<std::string> methods;  // "GET" answers HEAD too
  std::string path;                  // as sent: nothing is decoded, and no dots are resolved
  Match match = Match::kExact;
  std::string what{};  // one line for the list that GET / answers
  Needs needs = Needs::kNothing;
  // Media types of which the body must have one, for methods that have a body. Empty: any.
  std::vector<std::string> content_types = {"application/json"};

  // One of the two. Called for what has passed; `response` is cleared.
  std::function<void(const Request& request, Response& response, base::Instant now)> handle{};
  // Takes the body in parts; only for methods that have one.
  std::function<std::unique_ptr<BodySink>(const Request& head, base::Instant now)> receive{};
};

class Router final : public Handler {
 public:
  // `title` is the first line of GET /, which lists the routes. `access` must outlive the router.
  Router(std::string title, const Access& access) : title_(std::move(title)), access_(access) {}

  // If several routes match a path, the exact ones win, else those with the longest prefix. These
  // alone say which methods the path takes.
  void Add(Route route);

  void Handle(const Request& request, Response& response, base::Instant now) override;
  Reception Receive(const Request& head, Response& response, base::Instant now) override;

 private:
  struct Found {
    const Route* route = nullptr;  // null: none takes this method
    const Route* path = nullptr;   // the first of the path's routes; null: there is none
  };
  Found Find(const Request& request) const;
  void AnswerNotFound(const Request& request, const Route* path, Response& response) const;
  // False after the refusal.
  bool Passes(const Route& route, const Request& request, Response& response) const;
  bool TakesBody(const Route& route, const Request& request, Response& response) const;
  void AnswerIndex(Response& response) const;

  const std::string title_;
  const Access& access_;
  std::vector<Route> routes_;  // the most specific first
  bool receives_ = false;      // one of them takes bodies in parts
};

// Whether the request's Authorization presents the credential: `Bearer <credential>`, or `Basic`
// with it as password.
bool IsAuthenticated(const Request& request, const Access& access);

}  // namespace headgate::http
