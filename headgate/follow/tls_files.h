// Files with certificates, keys and authorities that a running server follows: they are read again
// when one of them changes.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "headgate/base/status.h"
#include "headgate/net/event_loop.h"
#include "headgate/observe/log.h"
#include "headgate/watch/file/file_source.h"

namespace headgate::follow {

class TlsFiles {
 public:
  // `load` reads all files again, and returns why they cannot be used. `loop` and `log` must
  // outlive this object, which lives on `loop`. `of` says in the log whose certificates they are.
  TlsFiles(std::string_view of, std::function<absl::Status()> load, net::EventLoop& loop,
           observe::Log& log)
      : of_(of), load_(std::move(load)), loop_(loop), log_(log) {}

  // Follows these files, which have just been loaded. Two may be the same, and an empty path is
  // none. Does nothing without a path.
  void Follow(std::set<std::string> paths);
  // Reads all files again, changed or not.
  void Reload();

  // From any thread.
  uint64_t loaded() const { return loaded_.load(std::memory_order_relaxed); }
  uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  void OnChange();

  const std::string_view of_;
  const std::function<absl::Status()> load_;
  net::EventLoop& loop_;
  observe::Log& log_;
  std::unique_ptr<watch::file::FileSource> source_;
  std::atomic<uint64_t> loaded_{0};
  std::atomic<uint64_t> refused_{0};
};

}  // namespace headgate::follow
