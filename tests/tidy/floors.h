// The floors of the tree: which folder may include which.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>

namespace headgate::tidy {

using Folders = std::set<std::string, std::less<>>;

// The folders that a folder may include besides itself. A change here is a decision about the whole
// project; write it down in docs/decisions. `testing` has no floor: only tests use it.
struct Floor {
  int floor;
  Folders may_include;
};
const std::map<std::string, Floor, std::less<>>& Floors();

// Exceptions: folders that may see only a part of a lower folder.
const std::map<std::pair<std::string, std::string>, std::set<std::string>>& Parts();

}  // namespace headgate::tidy
