// The names of networks, looked up by address.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headgate/base/ip_network_map.h"

namespace headgate::mapping {

// The networks of one or more lists. Immutable after construction.
class NetworkTable {
 public:
  NetworkTable(base::IpNetworkMap map, std::vector<std::string> names)
      : map_(std::move(map)), names_(std::move(names)) {}

  // The name of the longest prefix; empty if the address is in no network.
  std::string_view NameOf(const base::IpAddress& address) const {
    const std::optional<uint32_t> found = map_.Find(address);
    return found ? std::string_view(names_[*found]) : std::string_view();
  }

 private:
  base::IpNetworkMap map_;
  std::vector<std::string> names_;
};

}  // namespace headgate::mapping
