// A set of IP networks, such as a list of blocked networks.
#pragma once

#include <vector>

#include "headgate/base/ip_network_map.h"

namespace headgate::base {

// Immutable after construction, so any number of threads may read it.
class IpNetworkSet {
 public:
  IpNetworkSet() = default;
  // Networks may overlap.
  explicit IpNetworkSet(const std::vector<IpNetwork>& networks);

  bool Contains(const IpAddress& address) const { return map_.Find(address).has_value(); }
  bool empty() const { return map_.empty(); }

 private:
  IpNetworkMap map_;
};

}  // namespace headgate::base
