// Follows all sources of rules, loads what they hold together, and publishes the rules whole.
//
// What cannot be read or loaded changes nothing: the documents that are in force stay, and what is
// wrong is said. Documents that are gone are such a problem too, never "no rules". A source whose
// documents are wrong does not hold up the others: theirs are loaded with the last good ones of
// that source.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "headgate/base/status.h"
#include "headgate/rule/load.h"
#include "headgate/rule/rule_set.h"
#include "headgate/rule/source.h"

namespace headgate::watch {

class RuleFollower {
 public:
  // The rules of these texts, or every problem.
  struct Loaded {
    std::shared_ptr<const rule::RuleSet> rules;
    std::vector<rule::Problem> problems;
  };
  using Load = std::function<Loaded(std::span<const rule::RuleFile> files)>;
  // Puts the rules in force. An error is a problem like any other.
  using OnRules = std::function<absl::Status(std::shared_ptr<const rule::RuleSet> rules)>;
  // Why the last attempt put no rules in force. Those that are in force stay.
  struct Refusal {
    std::span<const rule::Problem> problems;  // all of them
    bool awaited = false;  // nothing is wrong but that a source has no document yet
  };
  using OnRefusal = std::function<void(const Refusal& refusal)>;

  // Loads the sources' documents in the order of the sources.
  RuleFollower(std::vector<std::unique_ptr<rule::Source>> sources, Load load, OnRules on_rules,
               OnRefusal on_refusal);

  // Subscribes to all sources. The callbacks run on their event loop's thread, perhaps before this
  // returns. Without a source the rules of no document at all are loaded here. Once.
  void Start();
  // All sources read again, changed or not.
  void Refresh();

  // Whether every source has said what it holds, or why it cannot.
  bool heard_from_all() const;
  // Of all sources as they are now.
  size_t problem_count() const;

  // Of all sources together. From any thread.
  rule::Source::Figures figures() const;

 private:
  struct Followed {
    std::unique_ptr<rule::Source> source;
    bool heard = false;
    bool ever_in_force = false;
    std::vector<rule::SourceDocument> latest{};    // that could be read
    std::vector<rule::SourceDocument> in_force{};  // of the rules that are
    std::vector<rule::Problem> problems{};         // of the latest
  };
  enum class Others { kLatest, kInForce };

  void OnDocuments(Followed& followed, const rule::DocumentSet& documents);
  bool HasPendingOthers(const Followed& changed) const;
  const std::vector<rule::SourceDocument>& DocumentsOf(const Followed& followed,
                                                       const Followed& changed,
                                                       Others others) const;
  std::vector<rule::Problem> Try(Followed& changed, Others others);

  std::vector<Followed> followed_;
  const Load load_;
  const OnRules on_rules_;
  const OnRefusal on_refusal_;
};

}  // namespace headgate::watch
