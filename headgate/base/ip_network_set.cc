#include "headgate/base/ip_network_set.h"

#include <algorithm>

namespace headgate::base {

IpNetworkSet::IpNetworkSet(std::vector<IpNetwork> networks) {
  std::sort(networks.begin(), networks.end());
  for (const IpNetwork& network : networks) {
    if (!ranges_.empty() && network.first <= ranges_.back().last) {
      ranges_.back().last = std::max(ranges_.back().last, network.last());
    } else {
      ranges_.push_back({network.first, network.last()});
    }
  }
}

bool IpNetworkSet::Contains(const IpAddress& address) const {
  const auto after = std::upper_bound(
      ranges_.begin(), ranges_.end(), address,
      [](const IpAddress& value, const Range& range) { return value < range.first; });
  return after != ranges_.begin() && address <= std::prev(after)->last;
}

}  // namespace headgate::base
