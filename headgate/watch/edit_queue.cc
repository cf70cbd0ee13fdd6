#include "headgate/watch/edit_queue.h"

#include <utility>

namespace headgate::watch {

bool EditQueue::Add(Edit edit) {
  if (waiting_.size() >= kWaitingMax) return false;
  waiting_.push_back(std::move(edit));
  Run();
  return true;
}

// A loop, because edits that finish at once would otherwise fill the stack.
void EditQueue::Run() {
  if (std::exchange(running_, true)) return;
  while (!busy_ && !waiting_.empty()) {
    busy_ = true;
    Edit edit = std::move(waiting_.front());
    waiting_.pop_front();
    follower_.CatchUp([this, edit = std::move(edit)] {
      edit([this] {
        busy_ = false;
        Run();
      });
    });
  }
  running_ = false;
}

}  // namespace headgate::watch
