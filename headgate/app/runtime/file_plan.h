// Divides the file descriptors that the system allows, so that connections cannot use up the ones
// that everything else needs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "headgate/base/status.h"
#include "headgate/observe/log.h"

namespace headgate::app {

struct FileNeeds {
  uint64_t threads = 1;
  uint64_t addresses = 1;              // listening addresses
  uint64_t store_connections = 0;      // per thread
  uint64_t store_connections_min = 0;  // per thread, at the lowest setting
  uint64_t upstream_connections = 0;   // per thread
  // Per thread, and seldom in use: at most a quarter of the descriptors for clients is kept for
  // them.
  uint64_t draining_connections = 0;
  uint64_t connections_max = 0;
  uint64_t admin_connections_max = 0;
};

struct FilePlan {
  uint64_t connections_max = 0;  // at most FileNeeds::connections_max
  uint64_t admin_connections_max = 0;
  uint64_t refusals_max = 0;         // refused connections that are still sent an error
  bool connections_lowered = false;  // connections_max is less than the settings ask for
};

// ResourceExhausted if `open_files_max` is too few to serve at all; the message says how many are
// needed.
absl::StatusOr<FilePlan> PlanFiles(uint64_t open_files_max, const FileNeeds& needs);

// Raises the soft limit on open files to the hard limit and returns that; 0 if it is unknown.
uint64_t RaiseOpenFiles();
// The same, and divides the descriptors.
absl::StatusOr<FilePlan> AllowFiles(const FileNeeds& needs);
// The limit on open files.
uint64_t OpenFilesMax();

// Logs that the system allows fewer connections than `wanted`, if it does.
void LogLoweredConnections(const FilePlan& plan, uint64_t wanted, std::string_view hint,
                           observe::Log& log);

// The hint for too few open files. Names only settings that can still be lowered.
std::string HintOnFewFiles(const FileNeeds& needs);

}  // namespace headgate::app
