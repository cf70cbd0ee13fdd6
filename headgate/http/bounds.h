// Bounds on a request, and the answer to a request that is refused.
#pragma once

#include <cstddef>
#include <string_view>

namespace headgate::http {

struct Bounds {
  // The request line without its LF; at most head_bytes_max. Raise it for targets with long
  // queries.
  size_t line_bytes_max = 8 * 1024;
  // The request line and the fields together. Proxies pass on all fields of their clients: nginx
  // and HAProxy up to 32 KiB, Caddy more.
  size_t head_bytes_max = 64 * 1024;
  // The trailer of a chunked body, and, counted apart, all of its chunk extensions together. Nobody
  // needs them.
  size_t chunk_extra_bytes_max = 16 * 1024;
  // The number of fields of the head, and of a trailer.
  size_t fields_max = 100;
  // The content of a request. Raise it for requests with very many descriptors.
  size_t body_bytes_max = size_t{1} << 20;
};

// The capacity that each buffer of a quiet connection keeps.
inline constexpr size_t kKeptBytesMax = 4 * 1024;

// Why a request is refused; status 0 if it is accepted.
struct Refusal {
  int status = 0;
  std::string_view detail;
  std::string_view hint;

  explicit operator bool() const { return status != 0; }
};

// The hint of every refusal that prevents request smuggling.
inline constexpr std::string_view kAmbiguous =
    "two readers of this request could see two different requests";

inline constexpr Refusal kBodyTooLarge{
    413, "the body is too large",
    "send less in one request; max_body_bytes can be raised for all but the admin address"};

// Refusals of heads, the same in each version of HTTP.
inline constexpr Refusal kNoConnect{501, "this server does not open tunnels by CONNECT",
                                    "send the request to the server that it is for"};
inline constexpr Refusal kOtherExpectation{
    417, "100-continue is the only expectation that this server supports",
    "send the request without Expect"};

}  // namespace headgate::http
