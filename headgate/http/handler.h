// Complete requests and their responses, for HTTP/1 and HTTP/2. A HandlerApplication collects a
// request and passes it to a Handler, usually the routes of a Router (routing/router.h).
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
#include "headgate/http/bounds.h"
#include "headgate/http/exchange.h"
#include "headgate/http/fields.h"
#include "headgate/net/peer.h"

namespace headgate::http {

// The place for the state of a handler that waits for something. It is used again for later
// requests, together with the state's memory.
class Suspension {
 public:
  std::function<void()> wake;  // the handler calls it, on the loop's thread
  // The request has been allowed, and waits for its handler. It is not checked again, whatever has
  // become of its login: the answer that the handler waits for belongs to this request alone.
  bool allowed = false;

  // The handler's state if it is of this type, otherwise null.
  template <typename T>
  T* Find() {
    auto* const kept = kept_ == nullptr ? nullptr : dynamic_cast<KeptAs<T>*>(kept_.get());
    return kept == nullptr ? nullptr : &kept->state;
  }

  // The handler's state, constructed from `arguments` if there is none of this type yet. It is
  // destroyed when a handler asks for a state of another type, and if the client goes before the
  // answer.
  void Forget() { kept_.reset(); }
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
  // Null if the handler cannot be called again: then it must answer at once.
  Suspension* suspension = nullptr;
  // The state that handlers keep for all requests of the connection. Null: there is no place for
  // it.
  std::unique_ptr<ConnectionState>* connection_state = nullptr;

  // The host of an absolute target, otherwise of the Host field; may be empty.
  std::string_view host{};

  std::string_view path() const { return target.substr(0, target.find('?')); }
  // The value of the first field with this name (case-insensitive), or empty.
  std::string_view Field(std::string_view name) const;
};

// Reused for all responses, together with its memory.
struct Response {
  int status = 200;
  Fields fields;  // Date, Content-Length and Connection are added
  std::string body;
  // The rest of the body after `body`, in parts. Null if `body` is complete.
  std::unique_ptr<BodySource> stream{};
  // Set by a handler that cannot answer yet. The handler is called again with the same request
  // after it has called the suspension's `wake`. Everything else it wrote here is dropped.
  bool later = false;
  // With `later`: the answer is held back on purpose until this time. If the client closes its end
  // meanwhile, the connection is closed.
  std::optional<base::Instant> held_until{};

  // Sent behind the body, as gRPC has them. A client of HTTP/1 gets them only if it accepts
  // trailers.
  Fields trailers;
  // Whether a connection of HTTP/1 closes after it.
  bool closes = false;

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

  // A request is refused because of its head, for example because it has too many fields. `head`
  // has the method, the target and the fields up to there. Returns whether `response` is the
  // answer, in place of the problem document. The connection closes.
  virtual bool AnswerRefusedHead(const Request& /*head*/, const Refusal& /*refusal*/,
                                 Response& /*response*/, base::Instant /*now*/) {
    return false;
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
