#include "headgate/watch/zookeeper/deletion_guard.h"

#include <algorithm>
#include <utility>

namespace headgate::watch::zookeeper {

void DeletionGuard::Remember(NodeTexts there, NodeTexts kept, int64_t created_zxid) {
  there_ = std::move(there);
  kept_ = std::move(kept);
  created_zxid_ = created_zxid;
  documents_ = there_;
  documents_.insert(kept_.begin(), kept_.end());
}

void DeletionGuard::OnDocuments(const NodeTexts& now_there, const Found& found,
                                base::BootTime now) {
  Forget(now);
  for (const auto& [name, node] : there_) {
    if (now_there.contains(name)) continue;
    const auto made = made_.extract(name);
    deleted_.push_back({.at = now,
                        .name = name,
                        .node = node,
                        .made_at = made ? std::optional(made.mapped()) : std::nullopt});
  }
  std::erase_if(deleted_, [&](const Deleted& one) { return now_there.contains(one.name); });
  std::erase_if(kept_, [&](const auto& one) { return now_there.contains(one.first); });
  // Before everything has been read once, the age of a document is unknown.
  if (ever_complete_)
    for (const auto& [name, node] : now_there)
      if (!there_.contains(name)) made_.emplace(name, now);
  ever_complete_ = ever_complete_ || found.complete;

  const bool other =
      found.created_zxid != 0 && created_zxid_ != 0 && found.created_zxid != created_zxid_;
  const bool emptied = found.after_gap && now_there.empty() && !there_.empty();
  gone_ = gone_ || found.missing || other || emptied;
  if (found.created_zxid != 0) created_zxid_ = found.created_zxid;
  there_ = now_there;
  Judge(now);
}

void DeletionGuard::Forget(base::BootTime now) {
  std::erase_if(made_, [&](const auto& one) { return one.second + kWithin <= now; });
  std::erase_if(deleted_,
                [&](const Deleted& one) { return one.at + kWithin <= now && !suspicious_; });
}

bool DeletionGuard::IsAccident(base::BootTime now) const {
  if (gone_ || alarmed()) return true;
  const auto deleted =
      static_cast<size_t>(std::count_if(deleted_.begin(), deleted_.end(), [&](const Deleted& one) {
        return one.counts() && (!one.made_at || *one.made_at + kWithin <= now);
      }));
  const size_t before = there_.size() - made_.size() + deleted;
  return before >= kDocumentsMin && deleted * 2 >= before;
}

void DeletionGuard::Judge(base::BootTime now) {
  suspicious_ = IsAccident(now) && std::any_of(deleted_.begin(), deleted_.end(),
                                               [](const Deleted& one) { return one.counts(); });
  documents_ = there_;
  if (suspicious_) {
    const bool open = suspects_any();
    for (const Deleted& one : deleted_) {
      if (!one.counts()) continue;
      (open ? documents_ : kept_).insert_or_assign(one.name, one.node);
    }
    suspicious_ = open;
  }
  if (!suspicious_) gone_ = false;
  documents_.insert(kept_.begin(), kept_.end());
}

std::vector<DeletionGuard::Suspect> DeletionGuard::TakeSuspects() {
  std::vector<Suspect> suspects;
  if (!suspicious_ || asked_) return suspects;
  for (Deleted& one : deleted_) {
    if (one.verdict != Verdict::kUnknown) continue;
    one.verdict = Verdict::kAsked;
    suspects.push_back({.name = one.name, .node = one.node});
  }
  asked_ = !suspects.empty();
  return suspects;
}

bool DeletionGuard::suspects_any() const {
  return suspicious_ && std::any_of(deleted_.begin(), deleted_.end(),
                                    [](const Deleted& one) { return one.open(); });
}

void DeletionGuard::OnFoundOut(const std::set<std::string, std::less<>>& meant,
                               base::BootTime now) {
  asked_ = false;
  for (Deleted& one : deleted_)
    if (one.verdict == Verdict::kAsked)
      one.verdict = meant.contains(one.name) ? Verdict::kMeant : Verdict::kNotMeant;
  Judge(now);
}

void DeletionGuard::OnNotFoundOut() {
  asked_ = false;
  for (Deleted& one : deleted_)
    if (one.verdict == Verdict::kAsked) one.verdict = Verdict::kUnknown;
}

void DeletionGuard::Confirm() {
  kept_.clear();
  deleted_.clear();
  asked_ = false;
  gone_ = false;
  suspicious_ = false;
  documents_ = there_;
}

}  // namespace headgate::watch::zookeeper
