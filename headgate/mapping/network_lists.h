// Named lists of networks, by which a client's address becomes a name that rules can match:
//
//   networks:
//   - {name: office, networks: [198.51.100.0/24]}
//   - {name: clouds, networks_file: clouds.txt}       a line may end with a name of its own
//
//   {key: network, network: true}        the name at the longest prefix in all of these lists
//   {key: cloud, network: clouds}        … in one of them
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "headgate/mapping/network_table.h"
#include "headgate/rule/mark.h"

namespace headgate::mapping {

// Collects the lists of a mapping file, and makes tables of them.
class NetworkLists {
 public:
  // All lists together.
  static constexpr size_t kNetworksMax = 1'000'000;

  struct Place {
    rule::Mark mark{};
    size_t line = 0;  // of the list's file; 0: it stands in the mapping file
  };

  // False if there is such a list already, or no list can have this name: "true", "false".
  bool AddList(std::string_view name);
  bool HasList(std::string_view name) const;
  // Adds a network to the last list. `name`: the network's own name; empty: the list's name. False
  // if there are too many.
  bool Add(const base::IpNetwork& network, std::string_view name, const Place& place);

  struct Conflict {
    base::IpNetwork network{};
    std::string name{};
    std::string other{};
    Place place{};
  };
  // The place of the table with these lists in tables(); all lists if there are none. Sets
  // `conflict` if one network has different names in these lists.
  uint32_t TableOf(std::span<const std::string> lists, std::optional<Conflict>& conflict);
  // Whether a client can have this name by the table.
  bool HasName(uint32_t table, std::string_view name) const;
  std::vector<NetworkTable> TakeTables() { return std::move(tables_); }
  bool empty() const { return lists_.empty(); }

 private:
  struct Item {
    base::IpNetwork network;
    uint32_t list;
    uint32_t name;
    Place place;
  };
  uint32_t NumberOf(std::string_view name);

  std::vector<std::string> lists_;
  std::vector<std::string> names_;
  absl::flat_hash_map<std::string, uint32_t> numbers_;  // of the names
  std::vector<Item> items_;
  std::vector<NetworkTable> tables_;
  struct Parts {
    std::vector<bool> lists;
    std::vector<bool> names;
  };
  std::vector<Parts> parts_;  // of each table
};

// Whether rules can match it: not empty, and without control characters.
bool IsNetworkName(std::string_view name);

}  // namespace headgate::mapping
