// File descriptors kept in reserve for the moment when the process can get no others: to accept a
// client and tell it why it is refused, to serve an address with reserved places, and to write a
// snapshot. Thread-safe.
//
// The spares are opened at startup, so they have low numbers: they help even if the limit is
// lowered while the process runs.
#pragma once

#include <atomic>
#include <cstddef>
#include <shared_mutex>
#include <vector>

#include "absl/functional/function_ref.h"
#include "headgate/net/file_descriptor.h"

namespace headgate::net {

class SpareFiles {
 public:
  static constexpr size_t kCount = 16;
  // How many spares each use must leave for more important uses. A snapshot needs two descriptors
  // at a time.
  static constexpr size_t kKeptFromRefusals = 8;
  static constexpr size_t kKeptFromReservedPlaces = 2;
  static constexpr size_t kKeptFromSnapshots = 0;

  SpareFiles() { (void)Refill(); }

  // Runs `open`, which returns a descriptor or −1 with errno. If the system has no descriptor left
  // and more than `kept` spares exist, closes one spare and runs `open` again; no other call of
  // Open can take the freed descriptor meanwhile. errno is that of the last attempt.
  FileDescriptor Open(size_t kept, absl::FunctionRef<int()> open);

  // Reopens missing spares; returns false if some are still missing. Call it when a descriptor was
  // closed, and from time to time.
  bool Refill();

 private:
  // Locked in shared mode to open, and in exclusive mode to replace a spare.
  std::shared_mutex mutex_;
  std::vector<FileDescriptor> spares_;
  std::atomic<bool> missing_{true};
};

}  // namespace headgate::net
