// HTTP/1.1 without sockets. A Session (session.h) parses and bounds requests and passes complete
// ones to a Handler. A front implements the Handler, usually as routes of a Router (router.h).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headgate/access/access.h"
#include "headgate/base/text.h"
#include "headgate/base/time.h"
#include "headgate/http/body.h"
#include "headgate/net/session.h"

namespace headgate::http {

// The login of a connection: whose Authorization field was verified last, or is being verified. The
// connection's next requests with the same field need no other look.
struct ConnectionLogin {
  std::string field{};  // empty: none was verified
  access::Identity identity{};
  std::unique_ptr<access::PendingLogin> pending{};
};

// Per connection: the place for the state of a handler that waits for something.
class Suspension {
 public:
  std::function<void()> wake;  // the handler calls it, on the loop's thread
  ConnectionLogin login{};
  // The request has been allowed, and waits for its handler. It is not checked again, whatever has
  // become of its login: the answer that the handler waits for belongs to this request alone.
  bool allowed = false;

  // The handler's state on this connection if it is of this type, otherwise null.
  template <typename T>
  T* Find() {
    auto* const kept = kept_ == nullptr ? nullptr : dynamic_cast<KeptAs<T>*>(kept_.get());
    return kept == nullptr ? nullptr : &kept->state;
  }

  // The handler's state on this connection, constructed from `arguments` if there is none yet. It
  // is destroyed when a handler asks for a state of another type, and with the connection at the
  // latest.
  template <typename T, typename... Arguments>
  T& Ensure(Arguments&&... arguments) {
    if (auto* const kept = dynamic_cast<KeptAs<T>*>(kept_.get())) return kept->state;
    auto made = std::make_unique<KeptAs<T>>(std::forward<Arguments>(arguments)...);
    T& state = made->state;
    kept_ = std::move(made);
    return state;
  }

 private:
  struct Kept {
    virtual ~Kept() = default;
  };
  template <typename T>
  struct KeptAs final : Kept {
    template <typename... Arguments>
    explicit KeptAs(Arguments&&... arguments) : state(std::forward<Arguments>(arguments)...) {}
    T state;
  };
  std::unique_ptr<Kept> kept_;
};

// A complete request. Its views are valid only during the call of Handle.
struct Request {
  std::string_view method;  // "GET", "POST", …
  // Path and query, without the authority of an absolute target.
  std::string_view target;
  std::vector<std::pair<std::string_view, std::string_view>> fields;
  std::string_view body;
  net::Peer peer;
  // Null if nobody can ask again: then the handler must answer at once.
  Suspension* suspension = nullptr;

  // The host of an absolute target, otherwise of the Host field; may be empty.
  std::string_view host{};

  std::string_view path() const { return target.substr(0, target.find('?')); }
  // The value of the first field with this name (case-insensitive), or empty.
  std::string_view Field(std::string_view name) const;
};

// Reused for all responses, together with its memory.
struct Response {
  int status = 200;
  std::string fields;  // lines, each with its CRLF; Date, Content-Length and Connection are added
  std::string body;
  // The rest of the body after `body`, in parts. Null if `body` is complete.
  std::unique_ptr<BodySource> stream{};
  // Set by a handler that cannot answer yet. The handler is called again with the same request
  // after it has called the suspension's `wake`. Everything else it wrote here is dropped.
  bool later = false;
  // With `later`: the answer is held back on purpose until this time. If the client closes its end
  // meanwhile, the connection is closed.
  std::optional<base::Instant> held_until{};

  // `value` must be trusted or escaped: a line break in it stops the process.
  void AddField(std::string_view name, std::string_view value);
  void Clear();
};

// One per event loop; not thread-safe.
class Handler {
 public:
  virtual ~Handler() = default;
  // `response` is cleared. A response to HEAD may have a body, which is counted but not sent.
  virtual void Handle(const Request& request, Response& response, base::Instant now) = 0;

  // How the body of a request is received.
  struct Reception {
    enum class Kind : uint8_t {
      kWhole,    // Handle is called with the complete body
      kInParts,  // `sink` receives the body and answers
      kRefused,  // `response` is the answer; the body is not read, and the connection closes
    };
    Kind kind = Kind::kWhole;
    std::unique_ptr<BodySink> sink{};
  };
  // Called for a request that has a body, with only the head, before any of the body is read.
  virtual Reception Receive(const Request& /*head*/, Response& /*response*/,
                            base::Instant /*now*/) {
    return {};
  }

  // Whether a request to this path may name any host. Otherwise the host must be a known one
  // (known_hosts.h).
  virtual bool TakesAnyHost(std::string_view /*path*/) const { return false; }
};

// Whether requests of this method have a body: POST, PUT and PATCH.
bool HasBody(std::string_view method);

// Whether a field value names this media type, ignoring parameters ("; charset=utf-8").
bool IsMediaType(std::string_view value, std::string_view media_type);

// HTTP compares names and tokens like this.
using base::EqualsIgnoreCase;

}  // namespace headgate::http
