#include "headgate/front/resp/reply_queue.h"

#include <algorithm>

namespace headgate::front::resp {

bool ReplyQueue::Admits(CommandKind kind) const {
  if (items_.empty()) return true;
  if (items_.size() >= kItemsMax || kept_bytes() >= net::Session::kOutputPauseBytes) return false;
  // The first command of the queue waits, and decides which commands may follow.
  const CommandKind first = items_.front().late->kind();
  switch (kind) {
    case CommandKind::kCheck:
      return first == CommandKind::kCheck || first == CommandKind::kChange;
    case CommandKind::kCount:
    case CommandKind::kAcquire:
    case CommandKind::kRelease:
      return first == kind;
    case CommandKind::kChange:
    case CommandKind::kAlone:
      return false;
  }
  __builtin_unreachable();
}

std::string& ReplyQueue::OutputBehind(std::string& output) {
  if (items_.empty()) return output;
  ++added_commands_;
  return items_.emplace_back().text;
}

void ReplyQueue::Add(std::unique_ptr<LateReply> reply, uint64_t commands) {
  // The reply takes the place that OutputBehind made for it.
  const bool has_place = !items_.empty() && items_.back().late == nullptr;
  Item& item = has_place ? items_.back() : items_.emplace_back();
  added_commands_ += has_place ? commands - 1 : commands;
  reply->queue_ = this;
  Await(*reply);
  item.late = std::move(reply);
  item.commands = commands;
}

void ReplyQueue::Hold(std::unique_ptr<Acquiring> permit) {
  if (items_.empty()) {
    written_.push_back(std::move(permit));
  } else {
    items_.back().permit = std::move(permit);
  }
}

ReplyQueue::Written ReplyQueue::Write(std::string& output, base::Instant now) {
  Written written;
  bool has_turn = true;
  for (Item& item : items_) {
    if (item.late != nullptr) {
      const Answered answered = item.late->Write(has_turn ? output : item.text, now);
      has_turn = has_turn && answered != Answered::kLater;
      if (answered == Answered::kLater) {
        Await(*item.late);
        continue;
      }
      item.has_error = answered == Answered::kWithError;
      item.permit = item.late->TakePermit();
      item.late = nullptr;
    }
    if (!has_turn) continue;
    output.append(std::exchange(item.text, {}));
  }
  while (!items_.empty() && items_.front().late == nullptr) {
    Item& item = items_.front();
    written.commands += item.commands;
    written.errors += item.has_error ? 1 : 0;
    if (item.permit != nullptr) written_.push_back(std::move(item.permit));
    items_.pop_front();
  }
  return written;
}

void ReplyQueue::KeepPermits() {
  for (const auto& permit : written_) permit->hold.Keep();
  written_.clear();
}

bool ReplyQueue::acquires() const {
  return !written_.empty() || std::any_of(items_.begin(), items_.end(), [](const Item& item) {
    return item.permit != nullptr || (item.late != nullptr && item.late->acquires());
  });
}

size_t ReplyQueue::kept_bytes() const {
  size_t bytes = 0;
  for (const Item& item : items_)
    bytes += item.text.size() + (item.late != nullptr ? item.late->kept_bytes() : 0);
  return bytes;
}

}  // namespace headgate::front::resp
