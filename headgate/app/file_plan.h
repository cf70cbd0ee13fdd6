// How the descriptors that the system allows are divided, so that connections never use up those of
// everything else.
#pragma once

#include <cstdint>
#include <string>

#include "headgate/base/status.h"

namespace headgate::app {

struct FileNeeds {
  uint64_t threads = 1;
  uint64_t addresses = 1;              // that the server listens on
  uint64_t store_connections = 0;      // of each thread
  uint64_t store_connections_min = 0;  // the same with the lowest setting
  uint64_t connections_max = 0;
  uint64_t admin_connections_max = 0;
};

struct FilePlan {
  uint64_t connections_max = 0;  // at most as asked for
  uint64_t admin_connections_max = 0;
  uint64_t refusals_max = 0;  // connections that wait to be told why they are refused
};

// ResourceExhausted if `open_files_max` is too few to serve at all; the message says how many are
// needed.
absl::StatusOr<FilePlan> PlanFiles(uint64_t open_files_max, const FileNeeds& needs);

// A hint for too few open files; names only settings that can still be lowered.
std::string HintOnFewFiles(const FileNeeds& needs);

}  // namespace headgate::app
