#include "headgate/mapping/network_lists.h"

#include <algorithm>
#include <utility>

namespace headgate::mapping {

bool NetworkLists::AddList(std::string_view name) {
  if (name == "true" || name == "false" || HasList(name)) return false;
  lists_.emplace_back(name);
  return true;
}

bool NetworkLists::HasList(std::string_view name) const {
  return std::find(lists_.begin(), lists_.end(), name) != lists_.end();
}

bool NetworkLists::Add(const base::IpNetwork& network, std::string_view name, const Place& place) {
  if (items_.size() >= kNetworksMax) return false;
  items_.push_back({.network = network,
                    .list = static_cast<uint32_t>(lists_.size() - 1),
                    .name = NumberOf(name.empty() ? std::string_view(lists_.back()) : name),
                    .place = place});
  return true;
}

uint32_t NetworkLists::NumberOf(std::string_view name) {
  const auto [found, is_new] =
      numbers_.try_emplace(std::string(name), static_cast<uint32_t>(names_.size()));
  if (is_new) names_.emplace_back(name);
  return found->second;
}

bool NetworkLists::HasName(uint32_t table, std::string_view name) const {
  const auto found = numbers_.find(std::string(name));
  return found != numbers_.end() && table < parts_.size() && parts_[table].names[found->second];
}

uint32_t NetworkLists::TableOf(std::span<const std::string> lists,
                               std::optional<Conflict>& conflict) {
  std::vector<bool> chosen(lists_.size(), lists.empty());
  for (size_t i = 0; i < lists_.size(); ++i) {
    chosen[i] = chosen[i] || std::find(lists.begin(), lists.end(), lists_[i]) != lists.end();
  }
  const auto known = std::find_if(parts_.begin(), parts_.end(),
                                  [&](const Parts& parts) { return parts.lists == chosen; });
  if (known != parts_.end()) return static_cast<uint32_t>(known - parts_.begin());

  std::vector<const Item*> items;
  for (const Item& item : items_) {
    if (chosen[item.list]) items.push_back(&item);
  }
  std::stable_sort(items.begin(), items.end(),
                   [](const Item* a, const Item* b) { return a->network < b->network; });
  std::vector<base::IpNetworkMap::Item> mapped;
  mapped.reserve(items.size());
  std::vector<bool> names(names_.size());
  for (const Item* item : items) {
    if (!mapped.empty() && mapped.back().network == item->network) {
      if (mapped.back().value != item->name && !conflict) {
        conflict = {.network = item->network,
                    .name = names_[item->name],
                    .other = names_[mapped.back().value],
                    .place = item->place};
      }
      continue;
    }
    names[item->name] = true;
    mapped.push_back({.network = item->network, .value = item->name});
  }
  parts_.push_back({.lists = std::move(chosen), .names = std::move(names)});
  tables_.emplace_back(base::IpNetworkMap(std::move(mapped)), names_);
  return static_cast<uint32_t>(tables_.size() - 1);
}

bool IsNetworkName(std::string_view name) {
  return !name.empty() && std::none_of(name.begin(), name.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
  });
}

}  // namespace headgate::mapping
