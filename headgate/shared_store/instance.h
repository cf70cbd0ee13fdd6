// This process among the instances that share rules or a store.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "headgate/observe/log.h"

namespace headgate::shared_store {

struct Instance {
  std::string name;  // no other process has it
  // The number of instances as the source of the rules counts them; 0: not counted. From any
  // thread.
  std::function<uint32_t()> counted_elsewhere{};
};

std::string RandomInstanceName();

// Logs that the number of instances changes, and that it cannot be counted.
class InstanceWatch {
 public:
  explicit InstanceWatch(observe::Log& log) : log_(log) {}

  // Call it about every second with the number of instances, which is 0 if nobody counts, and with
  // the error of the source that counts them, which is empty if there is none.
  void Step(uint32_t instances, std::string_view error);

 private:
  observe::Log& log_;
  uint32_t logged_ = 0;
  std::string error_;
};

}  // namespace headgate::shared_store
