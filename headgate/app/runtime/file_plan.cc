#include "headgate/app/runtime/file_plan.h"

#include <sys/resource.h>

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "headgate/net/spare_files.h"

namespace headgate::app {
namespace {

// Standard streams, signals, rule files and their watches, libraries.
constexpr uint64_t kProcess = 32;
// An event loop's epoll, timer and wake-up descriptors.
constexpr uint64_t kPerLoop = 3;
// localhost can resolve to two addresses.
constexpr uint64_t kPerAddress = 2;
constexpr uint64_t kRefusalsMax = 64;
// The server does not start with fewer descriptors for clients.
constexpr uint64_t kConnectionsMin = 16;
// The admin address and the refusals each get at most one in kShare of all descriptors.
constexpr uint64_t kShare = 8;

}  // namespace

absl::StatusOr<FilePlan> PlanFiles(uint64_t open_files_max, const FileNeeds& needs) {
  const uint64_t fixed = kProcess + net::SpareFiles::kCount +
                         needs.threads * (kPerLoop + kPerAddress * needs.addresses +
                                          needs.store_connections + needs.upstream_connections);
  const uint64_t refusals_min = needs.threads;
  const uint64_t needed = (fixed + refusals_min + kConnectionsMin) * kShare / (kShare - 2) + 1;
  if (open_files_max < needed) {
    return absl::ResourceExhaustedError(
        fmt::format("the system allows {} open files; this configuration needs at least {}",
                    open_files_max, needed));
  }
  FilePlan plan;
  plan.admin_connections_max = std::min(needs.admin_connections_max, open_files_max / kShare);
  plan.refusals_max = std::max(refusals_min, std::min(kRefusalsMax, open_files_max / kShare));
  const uint64_t besides = fixed + plan.admin_connections_max + plan.refusals_max;
  const uint64_t left = open_files_max - besides;
  const uint64_t draining = std::min(needs.threads * needs.draining_connections,
                                     (left - std::min(left, kConnectionsMin)) / 4);
  plan.connections_max = std::min(needs.connections_max, left - draining);
  plan.connections_lowered = plan.connections_max < needs.connections_max;
  return plan;
}

void LogLoweredConnections(const FilePlan& plan, uint64_t wanted, std::string_view hint,
                           observe::Log& log) {
  if (!plan.connections_lowered) return;
  const std::string effect = fmt::format("at most {} connections", plan.connections_max);
  log.Warning("connections.max_lowered", {{"open_files_max", OpenFilesMax()},
                                          {"max_connections", wanted},
                                          {"effect", std::string_view(effect)},
                                          {"hint", hint}});
}

std::string HintOnFewFiles(const FileNeeds& needs) {
  std::vector<std::string_view> lowered;
  if (needs.threads > 1) lowered.push_back("threads");
  if (needs.store_connections > needs.store_connections_min) lowered.push_back("store_connections");
  if (needs.upstream_connections > 1) lowered.push_back("upstream_connections");
  return fmt::format("raise `ulimit -n`{}{}", lowered.empty() ? "" : ", or lower ",
                     fmt::join(lowered, " or "));
}

uint64_t OpenFilesMax() {
  rlimit files{};
  return ::getrlimit(RLIMIT_NOFILE, &files) == 0 ? files.rlim_max : 0;
}

uint64_t RaiseOpenFiles() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return 0;
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  return files.rlim_max;
}

absl::StatusOr<FilePlan> AllowFiles(const FileNeeds& needs) {
  const uint64_t open_files_max = RaiseOpenFiles();
  if (open_files_max == 0) return absl::UnavailableError("the limit on open files cannot be read");
  return PlanFiles(open_files_max, needs);
}

}  // namespace headgate::app
