// Tells a deletion that was meant from one that was not.
//
// If the directory itself goes, or half of at least ten documents within ten seconds, that is taken
// for an accident: the deleted documents are kept, with their last texts, until an operator
// confirms the deletion or they are made again. Documents that are changed or made meanwhile count
// as they are.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "headgate/base/clock.h"
#include "headgate/watch/zookeeper/directory.h"

namespace headgate::watch::zookeeper {

class DeletionGuard {
 public:
  static constexpr size_t kDocumentsMin = 10;
  static constexpr base::Duration kWithin = std::chrono::seconds(10);

  // Takes the documents as they are now, or the news that their directory is missing.
  void OnDocuments(const NodeTexts& now_there, bool missing, base::BootTime now);

  // Whether deleted documents are kept.
  bool alarmed() const { return alarmed_; }
  size_t kept_count() const { return kept_.size(); }
  // Whether documents were deleted within the last kWithin.
  bool deleted_lately(base::BootTime now) const {
    return !deleted_.empty() && now < deleted_.back().at + kWithin;
  }
  // The documents that count: those that are there, and those that are kept.
  const NodeTexts& documents() const { return documents_; }

  // The deletion was meant: nothing is kept any more.
  void Confirm();

 private:
  struct Deleted {
    base::BootTime at;
    std::string name;
    NodeText node;
  };

  NodeTexts documents_;
  NodeTexts there_;
  NodeTexts kept_;
  std::deque<Deleted> deleted_;  // within the last kWithin
  bool alarmed_ = false;
};

}  // namespace headgate::watch::zookeeper
