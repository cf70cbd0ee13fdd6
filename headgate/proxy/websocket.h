// The handshake of WebSocket, if one side speaks HTTP/1 and the other HTTP/2. HTTP/1 proves with
// Sec-WebSocket-Key and -Accept that the server knows the protocol (RFC 6455, 4); HTTP/2 needs no
// proof (RFC 8441, 5).
#pragma once

#include <string>
#include <string_view>

#include "headgate/base/random.h"
#include "headgate/http/message.h"

namespace headgate::proxy {

bool IsWebSocket(const http::RequestHead& head);

// 16 random bytes in base64.
std::string WebSocketKey(base::Random& random);
// The answer to a key.
std::string WebSocketAccept(std::string_view key);

// The handshake of one request.
class WebSocketHandshake {
 public:
  // Changes the request for an upstream that speaks the other version. Call it for each attempt.
  void Ask(bool upstream_http2, base::Random& random, http::RequestHead& head);
  // Changes the answer that accepts the tunnel. Returns false if the upstream has not proved that
  // it knows WebSocket.
  [[nodiscard]] bool Answer(http::Fields& fields) const;

 private:
  enum class Change : uint8_t { kNone, kToHttp1, kToHttp2 };
  Change change_ = Change::kNone;
  std::string key_;
};

}  // namespace headgate::proxy
