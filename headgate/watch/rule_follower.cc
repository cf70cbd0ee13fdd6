#include "headgate/watch/rule_follower.h"

#include <algorithm>
#include <utility>

namespace headgate::watch {

RuleFollower::RuleFollower(std::vector<std::unique_ptr<rule::Source>> sources, Load load,
                           OnRules on_rules, OnRefusal on_refusal)
    : load_(std::move(load)), on_rules_(std::move(on_rules)), on_refusal_(std::move(on_refusal)) {
  for (auto& source : sources) followed_.push_back({.source = std::move(source)});
}

void RuleFollower::Start() {
  if (followed_.empty()) {
    Followed none;
    const std::vector<rule::Problem> problems = Try(none, Others::kLatest);
    if (!problems.empty()) on_refusal_({.problems = problems});
  }
  for (Followed& followed : followed_) {
    followed.source->Subscribe(
        [this, &followed](const rule::DocumentSet& set) { OnDocuments(followed, set); });
  }
}

void RuleFollower::Refresh() {
  for (Followed& followed : followed_) followed.source->Refresh();
}

bool RuleFollower::heard_from_all() const {
  return std::all_of(followed_.begin(), followed_.end(),
                     [](const Followed& followed) { return followed.heard; });
}

size_t RuleFollower::problem_count() const {
  size_t count = 0;
  for (const Followed& followed : followed_) count += rule::CountOf(followed.problems);
  return count;
}

rule::Source::Figures RuleFollower::figures() const {
  rule::Source::Figures sum;
  for (const Followed& followed : followed_) {
    const rule::Source::Figures one = followed.source->figures();
    sum.polling = sum.polling || one.polling;
    sum.failures += one.failures;
  }
  return sum;
}

void RuleFollower::OnDocuments(Followed& followed, const rule::DocumentSet& set) {
  followed.heard = true;
  followed.problems = set.problems;
  if (set.problems.empty()) {
    followed.latest = set.documents;
    const bool all_heard = std::all_of(followed_.begin(), followed_.end(), [](const Followed& one) {
      return one.ever_in_force || (one.heard && one.problems.empty());
    });
    // Sources that were not heard from will report their own problems.
    if (!all_heard) return;
    followed.problems = Try(followed, Others::kLatest);
    if (!followed.problems.empty() && HasPendingOthers(followed)) {
      followed.problems = Try(followed, Others::kInForce);
    }
  }
  if (!followed.problems.empty())
    on_refusal_({.problems = followed.problems, .awaited = set.awaited});
}

// Whether any other source that has documents in force also has newer ones that are not in force.
bool RuleFollower::HasPendingOthers(const Followed& changed) const {
  return std::any_of(followed_.begin(), followed_.end(), [&](const Followed& one) {
    return &one != &changed && one.ever_in_force && one.latest != one.in_force;
  });
}

const std::vector<rule::SourceDocument>& RuleFollower::DocumentsOf(const Followed& followed,
                                                                   const Followed& changed,
                                                                   Others others) const {
  const bool old = &followed != &changed && others == Others::kInForce && followed.ever_in_force;
  return old ? followed.in_force : followed.latest;
}

// Puts the documents of the changed source in force, together with those of the other sources.
// Returns the problems if this fails.
std::vector<rule::Problem> RuleFollower::Try(Followed& changed, Others others) {
  std::vector<rule::RuleFile> files;
  for (const Followed& followed : followed_) {
    for (const rule::SourceDocument& document : DocumentsOf(followed, changed, others)) {
      files.push_back({.name = document.name, .text = document.text});
    }
  }
  Loaded loaded = load_(files);
  if (!loaded.problems.empty()) return std::move(loaded.problems);
  const absl::Status status = on_rules_(std::move(loaded.rules));
  if (!status.ok()) return {rule::WholeFileProblem("", std::string(status.message()))};
  for (Followed& followed : followed_) {
    const std::vector<rule::SourceDocument>& used = DocumentsOf(followed, changed, others);
    if (&used == &followed.latest) {
      followed.in_force = followed.latest;
      if (&followed != &changed) followed.problems.clear();
    }
    followed.ever_in_force = true;
  }
  return {};
}

}  // namespace headgate::watch
