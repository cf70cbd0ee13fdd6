// The mappings of forward-auth on a running server: loaded at start, loaded again when their file,
// or a list or key set that it names, changes.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "headgate/gate/live_mappings.h"
#include "headgate/mapping/mapping_file.h"
#include "headgate/net/event_loop.h"
#include "headgate/observe/log.h"
#include "headgate/observe/metrics.h"
#include "headgate/watch/file/file_source.h"

namespace headgate::follow {

// Loads the mappings of a file, together with the files that it names.
mapping::LoadedMappings LoadMappingFile(const std::string& path,
                                        mapping::Asker asker = mapping::Asker::kOtherProxy);

// All problems of the mappings that a server would load first; none without a path.
std::vector<rule::Problem> ProblemsOfMappings(const std::string& path);

class Mappings {
 public:
  // The mappings of a file, and of the header if it is not empty. Without a path no file is read.
  // `live`, `loop` and `log` must outlive this object, which lives on `loop`.
  Mappings(std::string path, std::string header, gate::LiveMappings& live, net::EventLoop& loop,
           observe::Log& log, mapping::Asker asker = mapping::Asker::kOtherProxy);

  // Loads the mappings for the first time, and returns all problems. If there are none, they are in
  // force.
  std::vector<rule::Problem> LoadFirst();
  // Reads all files again, changed or not.
  void Reload();

  // From any thread.
  uint64_t loaded() const { return loaded_.load(std::memory_order_relaxed); }
  uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  void Follow(std::vector<std::string> paths);
  void OnDocuments(const rule::DocumentSet& documents);
  void Refuse(std::vector<rule::Problem> problems);

  const std::string path_;
  const std::string header_;
  const mapping::Asker asker_;
  gate::LiveMappings& live_;
  net::EventLoop& loop_;
  observe::Log& log_;
  std::vector<std::string> paths_;  // the mapping file, and the files that it names
  std::unique_ptr<watch::file::FileSource> source_;
  // A source that was replaced; it may still be in the call that replaced it.
  std::unique_ptr<watch::file::FileSource> former_source_;
  bool loading_first_ = true;
  std::vector<rule::Problem> first_problems_;
  std::atomic<uint64_t> loaded_{0};
  std::atomic<uint64_t> refused_{0};
};

// Reports the reloads of all of them. From any thread.
void CollectMappings(std::span<const Mappings* const> followed, observe::Sink& sink);

}  // namespace headgate::follow
