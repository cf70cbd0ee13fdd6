// HTTP/1.1 without its socket: an Session (session.h) parses and bounds requests and hands whole
// ones to an Handler, which a front implements, mostly as routes of an Router (router.h).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headgate/base/text.h"
#include "headgate/base/time.h"
#include "headgate/http/body.h"
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
  std::string_view
      target;  // path and query; the authority of an absolute target has been taken off
  std::vector<std::pair<std::string_view, std::string_view>> fields;
  std::string_view body;
  net::Peer peer;
  Suspension* suspension =
      nullptr;  // null where nobody would ask again: such a handler answers at once

  std::string_view path() const { return target.substr(0, target.find('?')); }
  // The first field of this name (case-insensitive), or empty.
  std::string_view Field(std::string_view name) const;
};

// Reused from answer to answer, so that its memory is.
struct Response {
  int status = 200;
  std::string fields;  // field lines, each with its CRLF; Date, Content-Length and Connection are
                       // added to them
  std::string body;
  // The rest of the body, behind `body`, in parts. Null: `body` is all.
  std::unique_ptr<BodySource> stream{};
  // Set by a handler that cannot answer yet. It is asked again, with the same request, once it has
  // called the suspension's `wake`; what else it wrote here is dropped.
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

  // How a request's body is taken.
  struct Reception {
    enum class Kind : uint8_t {
      kWhole,    // Handle is called with all of it
      kInParts,  // `sink` takes it and answers
      kRefused,  // `response` is the answer; the body is not read, and the connection closes
    };
    Kind kind = Kind::kWhole;
    std::unique_ptr<BodySink> sink{};
  };
  // Called for a request that has a body, with its head alone, before any of the body is read.
  virtual Reception Receive(const Request& /*head*/, Response& /*response*/,
                            base::Instant /*now*/) {
    return {};
  }
};

// Whether requests of this method have a body: POST, PUT and PATCH.
bool HasBody(std::string_view method);

// Whether a field value names this media type; parameters ("; charset=utf-8") do not matter.
bool IsMediaType(std::string_view value, std::string_view media_type);

// How HTTP compares names and tokens.
using base::EqualsIgnoreCase;

}  // namespace headgate::http
