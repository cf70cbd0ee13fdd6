#include "headgate/watch/zookeeper/deletion_guard.h"

#include <utility>

namespace headgate::watch::zookeeper {

void DeletionGuard::OnDocuments(const NodeTexts& now_there, bool missing, base::BootTime now) {
  while (!deleted_.empty() && deleted_.front().at + kWithin <= now) deleted_.pop_front();
  for (const auto& [name, node] : there_)
    if (!now_there.contains(name)) deleted_.push_back({.at = now, .name = name, .node = node});
  std::erase_if(deleted_, [&](const Deleted& one) { return now_there.contains(one.name); });
  const bool any_was_there = !there_.empty() || !deleted_.empty();
  there_ = now_there;

  const size_t before = there_.size() + deleted_.size();
  if ((missing && any_was_there) || (before >= kDocumentsMin && deleted_.size() * 2 >= before))
    alarmed_ = true;
  if (alarmed_) {
    for (const Deleted& one : deleted_) kept_.insert_or_assign(one.name, one.node);
    std::erase_if(kept_, [&](const auto& one) { return there_.contains(one.first); });
    alarmed_ = !kept_.empty();
  }
  documents_ = there_;
  documents_.insert(kept_.begin(), kept_.end());
}

void DeletionGuard::Confirm() {
  alarmed_ = false;
  kept_.clear();
  deleted_.clear();
  documents_ = there_;
}

}  // namespace headgate::watch::zookeeper
