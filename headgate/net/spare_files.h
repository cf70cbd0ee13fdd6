// Descriptors that are kept open for the moment when the process can get no others: to accept a
// client and tell it why it is refused, to answer on an address with places of its own, and to
// write a snapshot. Thread-safe.
//
// The spares are opened at start, so they have low numbers: they help also if the limit is lowered
// while the process runs.
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
  // How many spares must be left for more important uses. A snapshot needs two descriptors at a
  // time.
  static constexpr size_t kKeptFromRefusals = 8;
  static constexpr size_t kKeptFromReservedPlaces = 2;
  static constexpr size_t kKeptFromSnapshots = 0;

  SpareFiles() { (void)Refill(); }

  // Runs `open`, which returns a descriptor or −1 with errno. If the system has no descriptor left
  // and there are more than `kept` spares, closes one and runs `open` again, while no other call of
  // Open can take what was freed. errno is that of the last attempt.
  FileDescriptor Open(size_t kept, absl::FunctionRef<int()> open);

  // Opens what is missing again; false if some still is. Call it when a descriptor was closed, and
  // now and then.
  bool Refill();

 private:
  // Shared by those who open, exclusive for who replaces a spare.
  std::shared_mutex mutex_;
  std::vector<FileDescriptor> spares_;
  std::atomic<bool> missing_{true};
};

}  // namespace headgate::net
