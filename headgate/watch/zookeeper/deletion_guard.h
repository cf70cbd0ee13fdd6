// Tells an intended deletion from an accident.
//
// A deletion is taken for an accident
//
//   - if the directory itself goes, also if another one is in its place,
//   - if nothing is left in it after a time without a connection,
//   - if, within ten seconds, half of at least ten documents go that were there at the beginning.
//
// Deletions that the journal notes as intended do not count. So before an alarm the guard asks
// about each deletion (TakeSuspects); until it is answered, the documents are kept without an
// alarm. After an accident the deleted documents are kept, with their last texts, until an operator
// confirms the deletion or they are created again. Documents that are changed or created meanwhile
// count as they are.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "headgate/base/clock.h"
#include "headgate/watch/zookeeper/directory.h"

namespace headgate::watch::zookeeper {

class DeletionGuard {
 public:
  static constexpr size_t kDocumentsMin = 10;
  static constexpr base::Duration kWithin = std::chrono::seconds(10);

  // The state of the documents' directory.
  struct Found {
    bool missing = false;
    int64_t created_zxid = 0;  // of the directory; 0: not known
    bool after_gap = false;    // there was no connection before, so that watches may be missing
    bool complete = true;      // all documents have been read once
  };
  // Starts from the documents of an earlier process.
  void Remember(NodeTexts there, NodeTexts kept, int64_t created_zxid);
  // Takes the documents as they are now.
  void OnDocuments(const NodeTexts& now_there, const Found& found, base::BootTime now);

  struct Suspect {
    std::string name;
    NodeText node;
  };
  // Deletions that look like an accident. Find out which of them were intended, and say so; until
  // then this returns no others.
  std::vector<Suspect> TakeSuspects();
  void OnFoundOut(const std::set<std::string, std::less<>>& meant, base::BootTime now);
  // This cannot be found out now: the deletions are suspects again.
  void OnNotFoundOut();
  // Whether there are suspects without a verdict.
  bool suspects_any() const;

  // Whether deleted documents are kept.
  bool alarmed() const { return !kept_.empty(); }
  const NodeTexts& kept() const { return kept_; }
  // Whether documents were deleted within the last kWithin.
  bool deleted_lately(base::BootTime now) const {
    return !deleted_.empty() && now < deleted_.back().at + kWithin;
  }
  // The documents that count: the existing ones, and the kept ones.
  const NodeTexts& documents() const { return documents_; }
  int64_t created_zxid() const { return created_zxid_; }

  // The deletion was meant: nothing is kept any more.
  void Confirm();

 private:
  enum class Verdict { kUnknown, kAsked, kMeant, kNotMeant };
  struct Deleted {
    base::BootTime at;
    std::string name;
    NodeText node;
    std::optional<base::BootTime> made_at{};  // empty: more than kWithin before the deletion
    Verdict verdict = Verdict::kUnknown;
    // Whether the deletion may have been an accident, as far as is known.
    bool counts() const { return verdict != Verdict::kMeant; }
    bool open() const { return verdict == Verdict::kUnknown || verdict == Verdict::kAsked; }
  };

  void Forget(base::BootTime now);
  bool IsAccident(base::BootTime now) const;
  void Judge(base::BootTime now);

  NodeTexts documents_;
  NodeTexts there_;
  NodeTexts kept_;
  std::map<std::string, base::BootTime, std::less<>> made_;  // within the last kWithin
  std::deque<Deleted> deleted_;                              // within the last kWithin, or suspects
  int64_t created_zxid_ = 0;
  bool ever_complete_ = false;
  bool asked_ = false;  // about suspects
  bool gone_ = false;   // all documents went at once, with their directory or after a gap
  bool suspicious_ =
      false;  // deleted documents are kept until it is known whether the deletion was intended
};

}  // namespace headgate::watch::zookeeper
