// Consistent hashing (Karger et al., "Consistent Hashing and Random Trees", STOC 1997): which of
// several independent servers has a key. Every process that is given the same names, in whatever
// order, gives the same answers; a server that leaves takes only its own keys along.
//
// A server stands on the ring at 160 virtual nodes of eight points each. With n points a share of
// the keys is off by 1/sqrt(n) (one standard deviation): 160 points would be off by 8 %, 1,280 are
// by 2.8 %.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headgate::store::redis {

class Ring {
 public:
  static constexpr uint32_t kVirtualNodes = 160;
  static constexpr uint32_t kPointsPerNode = 8;

  explicit Ring(std::span<const std::string> names);

  // The index of the key's server among the names. There must be one.
  uint32_t Find(std::string_view key) const;

 private:
  struct Point {
    uint64_t at;
    uint32_t server;
  };
  std::vector<Point> points_;  // sorted
};

}  // namespace headgate::store::redis
