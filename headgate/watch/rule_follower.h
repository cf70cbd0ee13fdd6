// Follows all sources of rules, loads their documents together, and publishes complete sets of
// rules.
//
// If something cannot be read or loaded, the documents in force stay in force, and the problems are
// reported. Missing documents are such a problem too and never mean "no rules". A source with
// invalid documents does not delay the others: their new documents are loaded together with the
// last good ones of that source. If the documents of a source stand alone, the same holds for each
// of them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "headgate/base/status.h"
#include "headgate/rule/editor.h"
#include "headgate/rule/read/load.h"
#include "headgate/rule/rule_set.h"
#include "headgate/rule/source.h"

namespace headgate::watch {

class RuleFollower {
 public:
  // The rules of some texts, or all problems with them.
  struct Loaded {
    std::shared_ptr<const rule::RuleSet> rules;
    std::vector<rule::Problem> problems;
    std::vector<rule::Problem> warnings{};
  };
  using Load = std::function<Loaded(std::span<const rule::read::RuleFile> files)>;
  // Puts the rules of these texts in force. An error is reported like any other problem.
  using OnRules = std::function<absl::Status(const Loaded& loaded,
                                             std::span<const rule::read::RuleFile> files)>;
  // Why the last attempt put no rules in force. The previous rules stay in force.
  struct Refusal {
    std::span<const rule::Problem> problems;  // all of them
    // A source has no document yet, or no valid one; the follower waits for one.
    bool awaited = false;
  };
  using OnRefusal = std::function<void(const Refusal& refusal)>;

  // Documents are loaded in the order of their sources.
  RuleFollower(std::vector<std::unique_ptr<rule::Source>> sources, Load load, OnRules on_rules,
               OnRefusal on_refusal);

  // Subscribes to all sources. The callbacks run on the thread of their event loop, possibly before
  // this returns. If there are no sources, the rules of an empty set of documents are loaded here.
  // Call it once.
  void Start();
  // Reads all sources again, whether or not they changed.
  void Refresh();
  // Calls `done` when all documents that the sources hold now have been loaded or refused
  // (rule::Source::CatchUp).
  void CatchUp(std::function<void()> done);

  // Whether a source keeps documents that were deleted, in case that was an accident.
  bool awaits_confirmation() const;
  // The deletions were intended: their documents are not kept any more.
  void Confirm();

  // All documents as they are now.
  rule::DocumentStates States() const;
  // The rules of all documents together with this change. A new document is the last of its source.
  // The others count as far as they are in force, except documents that are refused together with
  // this one. If no source could hold the document, that is the only problem.
  Loaded Preview(const rule::DocumentChange& change) const;
  // The source that could hold this document, or null.
  rule::Source* SourceOf(std::string_view name) const;
  std::vector<rule::Source*> sources() const;
  // The latest documents that could be read. Valid until a source changes.
  std::vector<const rule::SourceDocument*> Documents() const;

  // Whether every source has reported its documents or its problems.
  bool heard_from_all() const;
  // The problems of all sources together, as they are now. From any thread.
  uint64_t problem_count() const { return problem_count_.load(std::memory_order_relaxed); }

  // Summed over all sources. Callable from any thread.
  rule::Source::Figures figures() const;

  // Shows these rules in all sources.
  void Show(const rule::RulesInForce& rules);
  // The largest number of instances that a source has counted; 0 if none counts. From any thread.
  uint32_t instances() const;
  // Why a source refuses to show this instance; empty if none refuses.
  std::string instances_error() const;

 private:
  struct Followed {
    std::unique_ptr<rule::Source> source;
    bool heard = false;
    bool ever_in_force = false;
    std::vector<rule::SourceDocument> latest{};    // the last documents that could be read
    std::vector<rule::SourceDocument> in_force{};  // the documents of the rules in force
    std::vector<rule::Problem> problems{};         // why it cannot be read now
    bool readable = false;                         // now, or if its documents stand alone, in part
  };
  // The documents of one attempt, by source.
  using Attempt = std::vector<std::vector<const rule::SourceDocument*>>;
  enum class Others { kLatest, kInForce };

  void OnDocuments(Followed& followed, const rule::DocumentSet& documents);
  // Drops the later documents of a source that cannot be read any more: its documents in force
  // count again, and the problems of the later ones do not.
  void GoBack(Followed& unreadable);
  bool AllAreReadable() const;
  // Loads the latest documents of all sources, or else those of `changed` with the documents of
  // the others that are in force. Returns why neither is possible.
  std::vector<rule::Problem> LoadChanged(Followed& changed);
  void CountProblems();
  bool HasPendingOthers(const Followed& changed) const;
  const std::vector<rule::SourceDocument>& DocumentsOf(const Followed& followed,
                                                       const Followed& changed,
                                                       Others others) const;
  struct Outcome {
    bool in_force = false;
    std::vector<rule::Problem>
        problems{};  // why not, or the problems of documents that stand alone
  };
  Outcome Try(const Followed& changed, Others others);
  // Replaces documents that have a problem and stand alone by their last good versions. Returns
  // false if the problems concern others too.
  bool TakeBack(Attempt& attempt, std::span<const rule::Problem> problems) const;
  // Whether the problems concern only documents that are not in force as they are. A contradiction
  // is reported at the later of two documents, which may be the one that is in force.
  bool AreOfChanges(const Attempt& attempt, std::span<const rule::Problem> problems) const;
  // Finds which changes fit to the documents in force, and takes back the others
  // (fitting_changes.h). Returns false if there are no rules that way. `problems`: of the changes
  // that were taken back.
  bool KeepFitting(Attempt& attempt, std::vector<rule::Problem>& problems) const;
  // A document that stands alone, or all documents of a source whose documents do not.
  struct Change {
    size_t source;
    const rule::SourceDocument* document;  // null: all
  };
  // Replaces the change by the documents in force.
  void Undo(const Change& change, Attempt& attempt) const;
  static void AddUnfitting(const Change& change, const Attempt& attempt,
                           std::span<const rule::Problem> found,
                           std::vector<rule::Problem>& problems);
  static std::vector<rule::read::RuleFile> FilesOf(const Attempt& attempt);

  std::vector<Followed> followed_;
  std::vector<rule::Problem> load_problems_;  // of all the latest documents together
  const Load load_;
  const OnRules on_rules_;
  const OnRefusal on_refusal_;
  std::atomic<uint64_t> problem_count_{0};
};

}  // namespace headgate::watch
