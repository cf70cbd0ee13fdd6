// The names of protocols in ALPN (RFC 7301).
#pragma once

#include <cstdint>
#include <string_view>

namespace headgate::net {

inline constexpr std::string_view kAlpnHttp11 = "http/1.1";
inline constexpr std::string_view kAlpnHttp2 = "h2";

// The protocol that both ends of a connection with TLS have agreed on.
enum class Alpn : uint8_t { kNone, kHttp11, kHttp2 };

}  // namespace headgate::net
