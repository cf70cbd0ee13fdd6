// Loads the rules of files and directories once, without following them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "headgate/rule/read/load.h"

namespace headgate::watch {

struct RulesOfPaths {
  rule::read::LoadResult result;
  size_t file_count = 0;  // 0 if one of them could not be read; then nothing was loaded
  bool awaited = false;   // the only problems are directories without a rule file, which a server
                          // waits for
};

// Reads and loads the rules of `paths`, and rules given as text. A file of mappings is one problem
// that says so.
RulesOfPaths LoadPaths(const std::vector<std::string>& paths,
                       const std::vector<std::string>& one_liners, bool merge_domains);

}  // namespace headgate::watch
