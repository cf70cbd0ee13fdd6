// One port speaks everything: which protocol, told by a connection's first bytes.
//
//   0x16 0x03                 TLS, which nobody here speaks
//   PRI * HTTP/2.0            HTTP/2
//   *                         RESP
//   METHOD SP / …             HTTP/1, for the methods that HTTP defines
//   a line that ends HTTP/x.y HTTP/1
//   anything else             RESP: an inline command, or an error that RESP explains best
//
// Pure and incremental: shown ever more of the same bytes until it knows.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace headgate::front::mux {

enum class Protocol : uint8_t { kResp, kHttp1, kHttp2, kTls };

std::string_view Name(Protocol protocol);

// A first line longer than this is no HTTP request line that we would take.
inline constexpr size_t kSniffBytesMax = 16 * 1024;

// Nothing where the bytes so far do not tell. With kSniffBytesMax bytes it always knows.
std::optional<Protocol> SniffProtocol(std::span<const char> bytes);

}  // namespace headgate::front::mux
