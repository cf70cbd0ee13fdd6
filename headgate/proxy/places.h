// A place (slot) for one exchange on a connection to an upstream. Relays take places; Upstreams
// (upstreams.h) owns them, and divides them among clients.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "headgate/base/time.h"
#include "headgate/http/client_session.h"

namespace headgate::proxy {

// How an exchange on a place ended, as far as the upstream is concerned.
enum class Ended : uint8_t {
  kWell,       // the upstream answered
  kNotBegun,   // the exchange was not begun, or was refused without an error
  kFailed,     // the upstream broke the connection, or violated the protocol
  kTooSlow,    // the upstream did not answer in time
  kCancelled,  // nobody wants the answer any more: no statement about the upstream
};

// Why there is no place.
enum class NoPlace : uint8_t {
  kRefused,    // no connection could be made
  kTimeout,    // the upstream did not accept a connection in time
  kUntrusted,  // the upstream's certificate is not trusted
  kTlsFailed,  // the TLS handshake with the upstream failed
  kQueueFull,  // too many requests wait already, or too many of this client
  kClosed,     // the process shuts down
};

class Place;
struct PlaceClient;  // waiter_queue.h

class Places {
 public:
  // A request that waits for a place, or has one. Requests of one client have the same `client`,
  // the hash of its name, and share its part of the places. A request without a client is not
  // limited to a part.
  class Waiter {
   public:
    explicit Waiter(std::optional<uint64_t> client = std::nullopt) : key_(client) {}
    virtual ~Waiter() = default;
    Waiter(const Waiter&) = delete;
    // Exactly one of these is called, unless Forget is called before. An exchange must begin on the
    // place before OnPlace returns, or the place must be left.
    virtual void OnPlace(Place& place, base::Instant now) = 0;
    // `detail` is for the log.
    virtual void OnNoPlace(NoPlace why, std::string_view detail, base::Instant now) = 0;

   private:
    friend class WaiterQueue;
    friend class Upstreams;
    const std::optional<uint64_t> key_;
    PlaceClient* client_ = nullptr;  // null: it neither waits nor has a place
    Waiter* next_ = nullptr;
    Waiter* previous_ = nullptr;
    bool waits_ = false;
    size_t failed_connects_ = 0;
  };

  struct Taken {
    Place* place = nullptr;  // free now: OnPlace is not called
    std::optional<NoPlace> refused{};
  };
  // If the result has neither a place nor a refusal, the waiter will be called later, never from
  // within this call.
  virtual Taken Take(Waiter& waiter, base::Instant now) = 0;
  // The waiter no longer waits.
  virtual void Forget(Waiter& waiter) = 0;

 protected:
  ~Places() = default;
};

class Place {
 public:
  // Has room for one more exchange.
  virtual http::ClientSession& session() = 0;
  // Whether the connection has carried an exchange before: the upstream may have closed it
  // meanwhile.
  virtual bool reused() const = 0;
  virtual bool speaks_http2() const = 0;
  // Gives back the place that `waiter` has, once. May be called from within a call of the session's
  // receivers.
  virtual void Leave(Places::Waiter& waiter, Ended ended, base::Instant now) = 0;

 protected:
  ~Place() = default;
};

}  // namespace headgate::proxy
