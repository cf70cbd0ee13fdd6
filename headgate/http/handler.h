// HTTP/1.1 without its socket: an Session (session.h) parses and bounds requests and hands whole ones to an
// Handler, which a front implements, mostly as routes of an Router (router.h).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headgate/base/text.h"
#include "headgate/base/time.h"
#include "headgate/net/session.h"

namespace headgate::http {

// Of one connection: where a handler keeps what it waits for.
struct Suspension {
  struct Kept {
    virtual ~Kept() = default;
  };
  std::unique_ptr<Kept> kept;  // the handler's own; goes with the connection at the latest
  std::function<void()> wake;  // for the handler to call, on the loop's thread
};

// A whole request. Views are valid during the call of Handle.
struct Request {
  std::string_view method;  // "GET", "POST", …
  std::string_view target;  // path and query; the authority of an absolute target has been taken off
  std::vector<std::pair<std::string_view, std::string_view>> fields;
  std::string_view body;
  net::Peer peer;
  Suspension* suspension = nullptr;  // null where nobody would ask again: such a handler answers at once

  std::string_view path() const { return target.substr(0, target.find('?')); }
  // The first field of this name (case-insensitive), or empty.
  std::string_view Field(std::string_view name) const;
};

// Reused from answer to answer, so that its memory is.
struct Response {
  int status = 200;
  std::string fields;  // field lines, each with its CRLF; Date, Content-Length and Connection are added to them
  std::string body;
  // Set by a handler that cannot answer yet. It is asked again, with the same request, once it has called the
  // suspension's `wake`; what else it wrote here is dropped.
  bool later = false;

  // `value` is ours, or has been escaped: a line break in it stops the process.
  void AddField(std::string_view name, std::string_view value);
  void Clear();
};

// One per loop; not thread-safe.
class Handler {
 public:
  virtual ~Handler() = default;
  // `response` comes cleared. An answer to HEAD may have a body: it is counted, and not sent.
  virtual void Handle(const Request& request, Response& response, base::Instant now) = 0;
};

// Whether a field value names this media type; parameters ("; charset=utf-8") do not matter.
bool IsMediaType(std::string_view value, std::string_view media_type);

// How HTTP compares names and tokens.
using base::EqualsIgnoreCase;

}  // namespace headgate::http
