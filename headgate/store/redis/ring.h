// Consistent hashing (Karger et al., "Consistent Hashing and Random Trees", STOC 1997): which of
// several independent servers has a key. All processes that are given the same names, in any order,
// give the same answers. If a server leaves, only its own keys move.
//
// A server has 160 virtual nodes on the ring, with eight points each. With n points, a server's
// share of the keys deviates by 1/sqrt(n) (one standard deviation): 8 % with 160 points, 2.8 % with
// 1,280.
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

  // The index of the key's server among the names, of which there must be at least one.
  uint32_t Find(std::string_view key) const;

 private:
  struct Point {
    uint64_t at;
    uint32_t server;
  };
  std::vector<Point> points_;  // sorted
};

}  // namespace headgate::store::redis
