// HTTP/1.1 without its socket: an HttpSession parses (Boost.Beast) and bounds requests and hands whole ones to an
// HttpHandler, which a front implements.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headgate/base/time.h"
#include "headgate/net/session.h"

namespace headgate::net {

// A whole request. Views are valid during the call of Handle.
struct HttpRequest {
  std::string_view method;  // "GET", "POST", …
  std::string_view target;  // as sent: path and query
  std::vector<std::pair<std::string_view, std::string_view>> fields;
  std::string_view body;
  Peer peer;

  std::string_view path() const { return target.substr(0, target.find('?')); }
  // The first field of this name (case-insensitive), or empty.
  std::string_view Field(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::vector<std::pair<std::string, std::string>> fields;  // Content-Length, Date and Connection are added
  std::string body;
};

// One per loop; not thread-safe.
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  virtual void Handle(const HttpRequest& request, HttpResponse& response, base::Instant now) = 0;
};

}  // namespace headgate::net
