// Lets one edit after the other change documents, each with everything in view that the sources
// hold at its begin: also what the edit before it wrote. Otherwise two edits could each fit to what
// they see, and not to each other.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>

#include "headgate/watch/rule_follower.h"

namespace headgate::watch {

class EditQueue {
 public:
  static constexpr size_t kWaitingMax = 1'000;

  // Calls `finished` once, possibly before it returns. The next edit begins then.
  using Edit = std::function<void(std::function<void()> finished)>;

  explicit EditQueue(RuleFollower& follower) : follower_(follower) {}

  // Begins the edit when it is its turn, possibly before this returns. Returns false, and drops the
  // edit, if too many wait.
  [[nodiscard]] bool Add(Edit edit);

 private:
  void Run();

  RuleFollower& follower_;
  std::deque<Edit> waiting_;
  bool busy_ = false;     // an edit is under way
  bool running_ = false;  // Run is, further up in the stack
};

}  // namespace headgate::watch
