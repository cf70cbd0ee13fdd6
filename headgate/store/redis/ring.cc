#include "headgate/store/redis/ring.h"

#include <algorithm>

#include "headgate/base/check.h"
#include "headgate/base/random.h"

namespace headgate::store::redis {
namespace {

// FNV-1a, mixed once more. All processes must agree on this function: a change moves every key.
uint64_t Hash(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3u;
  }
  return base::Random(hash).Next();
}

}  // namespace

Ring::Ring(std::span<const std::string> names) {
  HEADGATE_CHECK(!names.empty());
  points_.reserve(names.size() * kVirtualNodes * kPointsPerNode);
  for (uint32_t server = 0; server < names.size(); ++server) {
    for (uint32_t node = 0; node < kVirtualNodes; ++node) {
      base::Random points(Hash(names[server] + "#" + std::to_string(node)));
      for (uint32_t point = 0; point < kPointsPerNode; ++point)
        points_.push_back({points.Next(), server});
    }
  }
  // If two servers share a point, the name decides, so that the order in which they were given does
  // not matter.
  std::sort(points_.begin(), points_.end(), [&](const Point& a, const Point& b) {
    return a.at != b.at ? a.at < b.at : names[a.server] < names[b.server];
  });
}

uint32_t Ring::Find(std::string_view key) const {
  const uint64_t at = Hash(key);
  const auto next = std::lower_bound(points_.begin(), points_.end(), at,
                                     [](const Point& p, uint64_t value) { return p.at < value; });
  return next == points_.end() ? points_.front().server : next->server;
}

}  // namespace headgate::store::redis
