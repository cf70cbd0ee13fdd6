// A connection to an upstream, from its beginning to its end. stream_connection.h has the real one.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "headgate/base/time.h"
#include "headgate/http/client_session.h"

namespace headgate::proxy {

class UpstreamConnection {
 public:
  enum class End : uint8_t {
    kNotConnected,
    kConnectTimeout,
    kUntrusted,  // its certificate is not trusted, or has another name
    kTlsFailed,  // the TLS handshake failed for another reason
    kClosed,     // by either side, once it was connected
  };

  // Called on the loop's thread, never from within the constructor or Close. May not destroy the
  // connection.
  class Owner {
   public:
    virtual void OnConnected(base::Instant now) = 0;
    // Exchanges may have ended, and places may be free. Or no exchange can begin any more.
    virtual void OnChanged(base::Instant now) = 0;
    // The last call. The receivers of its exchanges have been called before.
    virtual void OnClosed(End end, std::string_view why, base::Instant now) = 0;

   protected:
    ~Owner() = default;
  };

  virtual ~UpstreamConnection() = default;

  // Only once it is connected.
  virtual http::ClientSession& session() = 0;
  // Whether an exchange may begin now: false while the session is being called.
  virtual bool may_begin() const = 0;
  virtual bool speaks_http2() const = 0;
  // Ends it; open exchanges fail. The owner is not called.
  virtual void Close(base::Instant now) = 0;
};

// Begins to connect to the address with this id.
using Connect = std::function<std::unique_ptr<UpstreamConnection>(
    size_t address, UpstreamConnection::Owner& owner)>;

}  // namespace headgate::proxy
