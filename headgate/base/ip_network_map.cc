#include "headgate/base/ip_network_map.h"

#include <algorithm>

namespace headgate::base {
namespace {

constexpr IpAddress kLastAddress{UINT64_MAX, UINT64_MAX};

IpAddress After(const IpAddress& address) {
  return {address.high + (address.low == UINT64_MAX ? 1 : 0), address.low + 1};
}

IpAddress Before(const IpAddress& address) {
  return {address.high - (address.low == 0 ? 1 : 0), address.low - 1};
}

}  // namespace

// Two networks are nested or apart. So if they are sorted, with wider ones first, the networks
// around the present one form a stack.
IpNetworkMap::IpNetworkMap(std::vector<Item> items) {
  std::sort(items.begin(), items.end(),
            [](const Item& a, const Item& b) { return a.network < b.network; });
  struct Open {
    IpAddress last;
    uint32_t value;
  };
  std::vector<Open> around;
  IpAddress next;  // the first address without a range, inside of the innermost network
  const auto close = [&] {
    const Open closed = around.back();
    around.pop_back();
    if (next <= closed.last) Add(next, closed.last, closed.value);
    if (next <= closed.last && closed.last != kLastAddress) next = After(closed.last);
  };
  for (const Item& item : items) {
    while (!around.empty() && around.back().last < item.network.first) close();
    if (!around.empty() && next < item.network.first)
      Add(next, Before(item.network.first), around.back().value);
    next = item.network.first;
    around.push_back({item.network.last(), item.value});
  }
  while (!around.empty()) {
    const bool is_end = around.back().last == kLastAddress;
    close();
    if (is_end) break;  // the networks that contain it end there too
  }
}

void IpNetworkMap::Add(const IpAddress& first, const IpAddress& last, uint32_t value) {
  if (!ranges_.empty() && ranges_.back().value == value && After(ranges_.back().last) == first) {
    ranges_.back().last = last;
  } else {
    ranges_.push_back({first, last, value});
  }
}

std::optional<uint32_t> IpNetworkMap::Find(const IpAddress& address) const {
  const auto after = std::upper_bound(
      ranges_.begin(), ranges_.end(), address,
      [](const IpAddress& value, const Range& range) { return value < range.first; });
  if (after == ranges_.begin() || std::prev(after)->last < address) return std::nullopt;
  return std::prev(after)->value;
}

}  // namespace headgate::base
