// Lets one edit after the other change documents. Each edit sees everything that the sources hold
// when it begins, including the previous edit. Otherwise two edits could each be valid alone, but
// contradict each other.
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
  bool busy_ = false;     // an edit is in progress
  bool running_ = false;  // Run is active further up in the stack
};

}  // namespace headgate::watch
