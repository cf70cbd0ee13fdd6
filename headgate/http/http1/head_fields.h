// Reads the field lines of a head, of a request or a response. The fields that belong to the
// connection (RFC 9110, 7.6.1) and those that say where the body ends are taken out and judged; the
// others are collected.
//
// Everything is refused that two readers could understand differently: two lengths, a length with
// anything but digits, a coding other than chunked, a name that is not a token, control characters,
// and a Connection field that names a field it must not remove.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "headgate/http/bounds.h"
#include "headgate/http/fields.h"

namespace headgate::http::http1 {

// The fields that were taken out. The views point into the head.
struct ConnectionFields {
  uint32_t host_count = 0;
  std::string_view host{};
  std::optional<uint64_t> length{};
  bool chunked = false;
  bool close = false;
  bool keep_alive = false;
  bool upgrade = false;           // Connection names Upgrade
  std::string_view upgrade_to{};  // the value of Upgrade; empty if there are several
  bool accepts_trailers = false;  // TE names trailers
  bool expects_continue = false;
  bool expects_other = false;
};

// `lines` are complete: each ends with CR LF, and contains neither elsewhere (HeadScan). Connection
// must not name a field of `never_nominated`.
Refusal ReadFieldLines(std::string_view lines, const Bounds& bounds,
                       std::span<const std::string> never_nominated, bool keeps_nominated,
                       Fields& fields, ConnectionFields& connection);

}  // namespace headgate::http::http1
