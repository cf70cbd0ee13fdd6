// Detects the protocol of a connection by its first bytes:
//
//   0x16 0x03                 TLS, which is not served here
//   PRI * HTTP/2.0            HTTP/2
//   *                         RESP
//   METHOD SP / …             HTTP/1, for the methods that HTTP defines
//   a line that ends HTTP/x.y HTTP/1
//   anything else             RESP: an inline command, or an error that RESP explains best
//
// Pure and incremental: call it with more and more of the same bytes until it knows.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace headgate::front::mux {

enum class Protocol : uint8_t { kResp, kHttp1, kHttp2, kTls };

std::string_view Name(Protocol protocol);

// A longer first line is not an HTTP request line that Headgate would accept.
inline constexpr size_t kSniffBytesMax = 16 * 1024;

// Empty if the bytes so far do not decide. With kSniffBytesMax bytes it always knows.
std::optional<Protocol> SniffProtocol(std::span<const char> bytes);

}  // namespace headgate::front::mux
