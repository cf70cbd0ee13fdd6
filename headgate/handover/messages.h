// The messages of a restart (handover.h), without sockets. Both processes run as the same
// user, but may be of different versions, so nothing in a message is trusted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/status.h"
#include "headgate/net/endpoint.h"
#include "headgate/share/handed_pool.h"
#include "headgate/share/share_options.h"

namespace headgate::handover {

// A listening address. Its sockets come with the message.
struct AddressMessage {
  std::string name;  // the purpose, and the address as its flag states it: "listen 127.0.0.1:0"
  net::Endpoint bound;

  bool operator==(const AddressMessage&) const = default;
};
std::string Write(const AddressMessage& message);
absl::StatusOr<AddressMessage> ParseAddressMessage(std::string_view text);

// A setting that can be changed while a sidecar runs.
template <typename T>
struct LiveSetting {
  T now{};
  T flag{};  // as the process was started

  bool operator==(const LiveSetting&) const = default;
};

// An address behind a name among the upstreams: "app:9000" and "10.0.0.7:9000".
struct NamedAddress {
  std::string name;
  std::string address;

  bool operator==(const NamedAddress&) const = default;
};
inline constexpr size_t kNamedAddressesMax = 256;

// The state that a sidecar passes on when it leaves:
//
//   headgate sidecar 1
//   mode passthrough enforce
//   upstream http://127.0.0.1:9001
//   upstream_flag http://127.0.0.1:9000
//   address app:9000 10.0.0.7:9000     behind a name; once for each address
//   found 123000 18 10000000           the capacity per 1,000 s, the limit, the base latency in ns
//   instances 3                        that share the pool of a fleet, as last known
//   pool 1764119940000000000 9         the time, and the length of what follows the line end
//
// Lines of other names are ignored. All but the first one may be absent.
struct SidecarState {
  std::optional<LiveSetting<share::Mode>> mode{};
  std::optional<LiveSetting<std::string>> upstream{};  // as proxy/upstream/list.h reads it
  std::vector<NamedAddress> addresses{};               // at most kNamedAddressesMax
  uint32_t instances = 0;  // 0: it is not known, or no fleet shares the pool
  share::HandedPool pool{};

  bool operator==(const SidecarState&) const = default;
};
inline constexpr size_t kSidecarStateBytesMax = size_t{64} << 20;
std::string Write(const SidecarState& state);
absl::StatusOr<SidecarState> ParseSidecarState(std::string_view bytes);

}  // namespace headgate::handover
