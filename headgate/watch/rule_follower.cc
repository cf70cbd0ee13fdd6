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
    load_problems_ = Try(none, Others::kLatest);
    CountProblems();
    if (!load_problems_.empty()) on_refusal_({.problems = load_problems_});
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

void RuleFollower::CountProblems() {
  uint64_t count = rule::CountOf(load_problems_);
  for (const Followed& followed : followed_) count += rule::CountOf(followed.problems);
  problem_count_.store(count, std::memory_order_relaxed);
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
  std::vector<rule::Problem> refused = set.problems;
  if (!set.problems.empty()) {
    GoBack(followed);
  } else {
    followed.latest = set.documents;
    // A source that cannot be read yet reports its own problems.
    if (AllAreReadable()) refused = LoadChanged(followed);
  }
  CountProblems();
  if (!refused.empty()) on_refusal_({.problems = refused, .awaited = set.awaited});
}

void RuleFollower::GoBack(Followed& unreadable) {
  const auto concerns_it = [&](const rule::Problem& problem) {
    return problem.file.empty() ||
           std::any_of(unreadable.latest.begin(), unreadable.latest.end(),
                       [&](const auto& document) { return document.name == problem.file; });
  };
  if (unreadable.latest == unreadable.in_force) return;
  std::erase_if(load_problems_, concerns_it);
  unreadable.latest = unreadable.in_force;
}

bool RuleFollower::AllAreReadable() const {
  return std::all_of(followed_.begin(), followed_.end(), [](const Followed& one) {
    return one.ever_in_force || (one.heard && one.problems.empty());
  });
}

std::vector<rule::Problem> RuleFollower::LoadChanged(Followed& changed) {
  load_problems_ = Try(changed, Others::kLatest);
  if (load_problems_.empty() || !HasPendingOthers(changed)) return load_problems_;
  return Try(changed, Others::kInForce);
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
    if (&used == &followed.latest) followed.in_force = followed.latest;
    followed.ever_in_force = true;
  }
  return {};
}

}  // namespace headgate::watch
