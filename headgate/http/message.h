// The heads of messages, in one form for HTTP/1 and HTTP/2.
//
// A head says what a message means, not how it was framed. Readers validate strictly, and take out
// everything that belongs to one connection: Connection and the fields that it names, Keep-Alive,
// Proxy-Connection, TE, Transfer-Encoding, Upgrade, Content-Length, Host and Expect. Writers add
// the fields that the version needs. So nothing that is ambiguous in one version reaches another.
#pragma once

#include <cstdint>
#include <string>

#include "headgate/http/fields.h"

namespace headgate::http {

enum class Version : uint8_t { kHttp10, kHttp11, kHttp2 };

struct BodyLength {
  enum class Kind : uint8_t {
    kNone,     // there is no body, and no length was stated
    kSized,    // exactly `bytes`, which may be 0
    kUnsized,  // ends with an explicit end: chunked, or END_STREAM. May have trailers
    kTunnel,   // no HTTP any more: the bytes of another protocol (RFC 9110, 7.8 and 9.3.6)
  };
  Kind kind = Kind::kNone;
  uint64_t bytes = 0;

  // Whether it is known that no byte of a body comes.
  bool is_empty() const { return kind == Kind::kNone || (kind == Kind::kSized && bytes == 0); }
  bool operator==(const BodyLength&) const = default;
};

struct RequestHead {
  Version version = Version::kHttp11;
  std::string method{};
  // Path and query, beginning with '/'; "*" for OPTIONS; empty for CONNECT without a protocol.
  std::string target{};
  std::string scheme{};     // "http" or "https"
  std::string authority{};  // host and port, as in the Host field. Empty only in HTTP/1.0
  // If not empty, the client wants a tunnel for this protocol, for example "websocket": the token
  // of Upgrade, or :protocol (RFC 8441). The method is then GET.
  std::string protocol{};
  Fields fields{};
  // With `protocol`: kNone. The tunnel begins with the answer.
  BodyLength body{};
  bool expects_continue = false;
  bool accepts_trailers = false;  // TE: trailers
};

struct ResponseHead {
  int status = 200;
  Fields fields{};
  // kSized for an answer to HEAD and for 304 states the length of a body that is not sent.
  BodyLength body{};
  // Whether a connection of HTTP/1 closes after the response.
  bool closes = false;
};

}  // namespace headgate::http
