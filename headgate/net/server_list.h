// Servers to connect to, as text: "HOST[:PORT],HOST[:PORT],…".
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "headgate/base/status.h"
#include "headgate/net/connector.h"

namespace headgate::net {

inline constexpr size_t kServersMax = 256;

// A server without a port has the default one. An IPv6 address stands in brackets. InvalidArgument,
// with a message that says what is wrong, if there is no server, more than kServersMax, one twice,
// or one that is not of this form. The message never has text that may be a password of a URL.
absl::StatusOr<std::vector<StreamTarget>> ParseServerList(std::string_view text,
                                                          uint16_t default_port);

}  // namespace headgate::net
