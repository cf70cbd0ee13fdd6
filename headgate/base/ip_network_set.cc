#include "headgate/base/ip_network_set.h"

#include <utility>

namespace headgate::base {

IpNetworkSet::IpNetworkSet(const std::vector<IpNetwork>& networks) {
  std::vector<IpNetworkMap::Item> items;
  items.reserve(networks.size());
  for (const IpNetwork& network : networks) items.push_back({.network = network, .value = 0});
  map_ = IpNetworkMap(std::move(items));
}

}  // namespace headgate::base
