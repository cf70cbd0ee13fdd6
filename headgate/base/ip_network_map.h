// Which of many IP networks an address is in: the one with the longest prefix, as in routing.
//
//   10.0.0.0/8    ─▶ 0          ──10.0.0.0── 0 ──10.1.0.0── 1 ──10.1.255.255── 0 ──10.255.255.255──
//   10.1.0.0/16   ─▶ 1
//
// The networks are cut into ranges without overlaps, so a lookup is one binary search: 18 steps
// and up to 80 bytes for each of 100,000 networks.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "headgate/base/ip_address.h"

namespace headgate::base {

// Immutable after construction, so any number of threads may read it.
class IpNetworkMap {
 public:
  struct Item {
    IpNetwork network;
    uint32_t value = 0;
  };

  IpNetworkMap() = default;
  // Networks may overlap. If one network has several values, it gets one of them.
  explicit IpNetworkMap(std::vector<Item> items);

  std::optional<uint32_t> Find(const IpAddress& address) const;
  bool empty() const { return ranges_.empty(); }

 private:
  struct Range {
    IpAddress first;
    IpAddress last;
    uint32_t value;
  };
  void Add(const IpAddress& first, const IpAddress& last, uint32_t value);

  std::vector<Range> ranges_;  // in order, without overlaps
};

}  // namespace headgate::base
