#include "headgate/proxy/websocket.h"

#include <array>

#include "absl/strings/escaping.h"
#include "headgate/base/text.h"
#include "headgate/wire/digest.h"

namespace headgate::proxy {
namespace {

constexpr std::string_view kKey = "Sec-WebSocket-Key";
constexpr std::string_view kAccept = "Sec-WebSocket-Accept";
// RFC 6455, 1.3.
constexpr std::string_view kGuid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

}  // namespace

bool IsWebSocket(const http::RequestHead& head) {
  return base::EqualsIgnoreCase(head.protocol, "websocket");
}

std::string WebSocketKey(base::Random& random) {
  std::string bytes;
  for (const uint64_t word : {random.Next(), random.Next()}) {
    for (int shift = 0; shift < 64; shift += 8) bytes.push_back(static_cast<char>(word >> shift));
  }
  return absl::Base64Escape({bytes.data(), bytes.size()});
}

std::string WebSocketAccept(std::string_view key) {
  const std::string hex =
      wire::DigestHex(wire::Digest::kSha1, std::string(key) + std::string(kGuid));
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2)
    bytes.push_back(static_cast<char>(base::HexValue(hex[i]) * 16 + base::HexValue(hex[i + 1])));
  return absl::Base64Escape({bytes.data(), bytes.size()});
}

void WebSocketHandshake::Ask(bool upstream_http2, base::Random& random, http::RequestHead& head) {
  const bool client_http2 = head.version == http::Version::kHttp2;
  if (client_http2 == upstream_http2) return;
  if (client_http2) {
    change_ = Change::kToHttp1;
    key_ = WebSocketKey(random);
    head.fields.Remove(kKey);
    head.fields.Add(kKey, key_);
  } else if (change_ == Change::kNone) {
    change_ = Change::kToHttp2;
    key_ = head.fields.Find(kKey).value_or("");
    head.fields.Remove(kKey);
  }
}

bool WebSocketHandshake::Answer(http::Fields& fields) const {
  if (change_ == Change::kNone) return true;
  if (change_ == Change::kToHttp1 && fields.Find(kAccept) != WebSocketAccept(key_)) return false;
  fields.Remove(kAccept);
  if (change_ == Change::kToHttp2) fields.Add(kAccept, WebSocketAccept(key_));
  return true;
}

}  // namespace headgate::proxy
