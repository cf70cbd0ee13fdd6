// The mappings in force. Loaded and published by the app, read by all loops.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "headgate/mapping/mapping.h"

namespace headgate::gate {

// Thread-safe.
class LiveMappings {
 public:
  // `set` is not null.
  void Publish(std::shared_ptr<const mapping::MappingSet> set) {
    const std::lock_guard lock(mutex_);
    set_ = std::move(set);
    generation_.fetch_add(1, std::memory_order_release);
  }

  // 0 before the first set.
  uint64_t generation() const { return generation_.load(std::memory_order_acquire); }
  std::shared_ptr<const mapping::MappingSet> set() const {
    const std::lock_guard lock(mutex_);
    return set_;
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const mapping::MappingSet> set_;
  std::atomic<uint64_t> generation_{0};
};

}  // namespace headgate::gate
