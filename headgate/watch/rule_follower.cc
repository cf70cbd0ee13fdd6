// How the documents of several sources become one set of rules. Each attempt (Try) is a choice of
// one version for every document: the latest or the one in force. If an attempt has problems, the
// documents that cause them go back to their versions in force, and the rest is tried again.
// Invariant: `in_force` of all sources together has loaded without a problem, so there is always a
// choice to go back to.
#include "headgate/watch/rule_follower.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "headgate/watch/fitting_changes.h"

namespace headgate::watch {
namespace {

bool IsOneOf(const rule::SourceDocument& document,
             const std::vector<rule::SourceDocument>& documents) {
  return std::find(documents.begin(), documents.end(), document) != documents.end();
}

}  // namespace

RuleFollower::RuleFollower(std::vector<std::unique_ptr<rule::Source>> sources, Load load,
                           OnRules on_rules, OnRefusal on_refusal)
    : load_(std::move(load)), on_rules_(std::move(on_rules)), on_refusal_(std::move(on_refusal)) {
  for (auto& source : sources) followed_.push_back({.source = std::move(source)});
}

void RuleFollower::Start() {
  if (followed_.empty()) {
    // Without sources, the empty set of rules is loaded here, because no source will report.
    Followed none;
    load_problems_ = Try(none, Others::kLatest).problems;
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

void RuleFollower::CatchUp(std::function<void()> done) {
  // The number of sources whose CatchUp has not ended, plus one until all have been asked.
  const auto behind = std::make_shared<size_t>(followed_.size() + 1);
  const auto on_one = [behind, done = std::move(done)] {
    if (--*behind == 0) done();
  };
  for (Followed& followed : followed_) followed.source->CatchUp(on_one);
  on_one();
}

bool RuleFollower::awaits_confirmation() const {
  return std::any_of(followed_.begin(), followed_.end(),
                     [](const Followed& one) { return one.source->awaits_confirmation(); });
}

void RuleFollower::Confirm() {
  for (Followed& followed : followed_) followed.source->Confirm();
}

std::vector<rule::Source*> RuleFollower::sources() const {
  std::vector<rule::Source*> sources;
  for (const Followed& followed : followed_) sources.push_back(followed.source.get());
  return sources;
}

std::vector<const rule::SourceDocument*> RuleFollower::Documents() const {
  std::vector<const rule::SourceDocument*> documents;
  for (const Followed& followed : followed_)
    for (const rule::SourceDocument& document : followed.latest) documents.push_back(&document);
  return documents;
}

rule::Source* RuleFollower::SourceOf(std::string_view name) const {
  for (const Followed& followed : followed_)
    if (followed.source->Place(name)) return followed.source.get();
  return nullptr;
}

rule::DocumentStates RuleFollower::States() const {
  rule::DocumentStates states;
  std::vector<rule::Problem> problems = load_problems_;
  for (const Followed& followed : followed_) {
    problems.insert(problems.end(), followed.problems.begin(), followed.problems.end());
    for (const rule::SourceDocument& document : followed.latest) {
      const bool in_force = IsOneOf(document, followed.in_force);
      states.documents.push_back({.name = document.name,
                                  .version = document.version,
                                  .bytes = document.text.size(),
                                  .limit_of = document.limit_of,
                                  .in_force = in_force});
    }
  }
  for (const rule::Problem& problem : problems) {
    const auto found =
        std::find_if(states.documents.begin(), states.documents.end(),
                     [&](const auto& document) { return document.name == problem.file; });
    (found == states.documents.end() ? states.problems : found->problems).push_back(problem);
  }
  return states;
}

RuleFollower::Loaded RuleFollower::Preview(const rule::DocumentChange& change) const {
  std::vector<rule::read::RuleFile> files;
  const rule::Source* const source = SourceOf(change.name);
  if (source == nullptr)
    return {.rules = nullptr,
            .problems = {rule::WholeFileProblem(change.name, "no source holds this document")}};
  for (const Followed& followed : followed_) {
    const bool concerned = followed.source.get() == source;
    // A source whose documents depend on each other is loaded as a whole, so the preview uses its
    // latest documents. Otherwise only documents in force count.
    const bool with_its_latest = concerned && !source->documents_stand_alone();
    bool placed = !concerned || !change.text;
    for (const rule::SourceDocument& document :
         with_its_latest ? followed.latest : followed.in_force) {
      const bool changed = concerned && document.name == change.name;
      if (changed && !change.text) continue;
      placed = placed || changed;
      files.push_back({.name = document.name,
                       .text = changed ? *change.text : document.text,
                       .limit_of = document.limit_of});
    }
    if (!placed) {
      files.push_back({.name = change.name,
                       .text = *change.text,
                       .limit_of = source->Place(change.name)->limit_of});
    }
  }
  return load_(files);
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
    sum.age = std::max(sum.age, one.age);
    sum.kept += one.kept;
    sum.reads += one.reads;
    sum.missed += one.missed;
  }
  return sum;
}

void RuleFollower::Show(const rule::RulesInForce& rules) {
  for (Followed& followed : followed_) followed.source->Show(rules);
}

uint32_t RuleFollower::instances() const {
  uint32_t most = 0;
  for (const Followed& followed : followed_) most = std::max(most, followed.source->instances());
  return most;
}

std::string RuleFollower::instances_error() const {
  for (const Followed& followed : followed_) {
    if (std::string error = followed.source->instances_error(); !error.empty()) return error;
  }
  return {};
}

void RuleFollower::OnDocuments(Followed& followed, const rule::DocumentSet& set) {
  followed.heard = true;
  // The problems of the source itself, such as an unreadable file. Problems of rules come from
  // loading.
  followed.problems = set.problems;
  std::vector<rule::Problem> refused = set.problems;
  followed.readable =
      set.problems.empty() || (followed.source->documents_stand_alone() && !set.documents.empty());
  if (!followed.readable) {
    GoBack(followed);
  } else {
    followed.latest = set.documents;
    // A source that cannot be read yet reports its own problems.
    if (AllAreReadable()) {
      const std::vector<rule::Problem> found = LoadChanged(followed);
      refused.insert(refused.end(), found.begin(), found.end());
    }
  }
  CountProblems();
  // With a source whose documents stand alone, a process waits for rules instead of failing at its
  // start: operators correct the documents there.
  const bool awaited = set.awaited || followed.source->documents_stand_alone();
  if (!refused.empty()) on_refusal_({.problems = refused, .awaited = awaited});
}

void RuleFollower::GoBack(Followed& unreadable) {
  const auto concerns_it = [&](const rule::Problem& problem) {
    return problem.file.empty() ||
           std::any_of(unreadable.latest.begin(), unreadable.latest.end(),
                       [&](const auto& document) { return document.name == problem.file; });
  };
  // Nothing newer than the rules in force is known, so the load problems are not about this source.
  if (unreadable.latest == unreadable.in_force) return;
  std::erase_if(load_problems_, concerns_it);
  unreadable.latest = unreadable.in_force;
}

bool RuleFollower::AllAreReadable() const {
  return std::all_of(followed_.begin(), followed_.end(),
                     [](const Followed& one) { return one.ever_in_force || one.readable; });
}

std::vector<rule::Problem> RuleFollower::LoadChanged(Followed& changed) {
  // First everything that is new. If that fails, perhaps because of another source, the change
  // alone with the others' documents in force: a source with problems must not delay this one.
  Outcome outcome = Try(changed, Others::kLatest);
  load_problems_ = std::move(outcome.problems);
  if (outcome.in_force || !HasPendingOthers(changed)) return load_problems_;
  return Try(changed, Others::kInForce).problems;
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
  // A source that never was in force has no older documents to fall back on.
  const bool old = &followed != &changed && others == Others::kInForce && followed.ever_in_force;
  return old ? followed.in_force : followed.latest;
}

bool RuleFollower::TakeBack(Attempt& attempt, std::span<const rule::Problem> problems) const {
  // Each round takes back at least one document, or gives up, so the loop in Try ends.
  bool all_alone = true;
  bool any = false;
  for (const rule::Problem& problem : problems) {
    bool alone = false;
    for (size_t i = 0; i < followed_.size(); ++i) {
      if (!followed_[i].source->documents_stand_alone()) continue;
      const auto is_it = [&](const rule::SourceDocument& one) { return one.name == problem.file; };
      const auto found = std::find_if(attempt[i].begin(), attempt[i].end(),
                                      [&](const auto* one) { return is_it(*one); });
      if (found == attempt[i].end()) {
        // The document may have had several problems, and is then taken back already.
        alone = alone || std::any_of(followed_[i].latest.begin(), followed_[i].latest.end(), is_it);
        continue;
      }
      alone = true;
      const std::vector<rule::SourceDocument>& good = followed_[i].in_force;
      const auto last_good = std::find_if(good.begin(), good.end(), is_it);
      any = true;
      if (last_good != good.end() && *last_good != **found) {
        *found = &*last_good;
      } else {
        attempt[i].erase(found);
      }
      // A source without any fitting document, and without documents ever in force, has no rules
      // yet.
      if (attempt[i].empty() && !followed_[i].ever_in_force) return false;
    }
    all_alone = all_alone && alone;
  }
  return all_alone && any;
}

bool RuleFollower::AreOfChanges(const Attempt& attempt,
                                std::span<const rule::Problem> problems) const {
  return std::all_of(problems.begin(), problems.end(), [&](const rule::Problem& problem) {
    for (size_t i = 0; i < followed_.size(); ++i) {
      const auto found = std::find_if(attempt[i].begin(), attempt[i].end(),
                                      [&](const auto* one) { return one->name == problem.file; });
      if (found != attempt[i].end()) return !IsOneOf(**found, followed_[i].in_force);
    }
    return false;
  });
}

bool RuleFollower::KeepFitting(Attempt& attempt, std::vector<rule::Problem>& problems) const {
  // Without documents that stand alone, the sources are tried as a whole (LoadChanged).
  if (std::none_of(followed_.begin(), followed_.end(),
                   [](const Followed& one) { return one.source->documents_stand_alone(); }))
    return false;
  // A change is the smallest unit that can be made or refused: one document that stands alone, or a
  // whole source.
  std::vector<Change> changes;
  for (size_t i = 0; i < followed_.size(); ++i) {
    if (!followed_[i].source->documents_stand_alone()) {
      changes.push_back({.source = i, .document = nullptr});
      continue;
    }
    for (const rule::SourceDocument* const document : attempt[i])
      if (!IsOneOf(*document, followed_[i].in_force))
        changes.push_back({.source = i, .document = document});
  }
  const auto made_of = [&](const std::vector<bool>& made) {
    Attempt result = attempt;
    for (size_t i = 0; i < changes.size(); ++i)
      if (!made[i]) Undo(changes[i], result);
    return result;
  };
  FittingChanges fitting(changes.size(), [&](const std::vector<bool>& made) {
    return load_(FilesOf(made_of(made))).problems;
  });
  for (const FittingChanges::Refused& refused : fitting.Find())
    AddUnfitting(changes[refused.change], attempt, refused.problems, problems);
  Attempt kept = made_of(fitting.made());
  for (size_t i = 0; i < followed_.size(); ++i)
    if (kept[i].empty() && !attempt[i].empty() && !followed_[i].ever_in_force) return false;
  // If no change was refused, taking back changes cannot help.
  if (problems.empty()) return false;
  attempt = std::move(kept);
  return load_(FilesOf(attempt)).problems.empty();
}

void RuleFollower::Undo(const Change& change, Attempt& attempt) const {
  std::vector<const rule::SourceDocument*>& documents = attempt[change.source];
  const std::vector<rule::SourceDocument>& good = followed_[change.source].in_force;
  if (change.document == nullptr) {
    documents.clear();
    for (const rule::SourceDocument& document : good) documents.push_back(&document);
    return;
  }
  const auto found = std::find(documents.begin(), documents.end(), change.document);
  const auto last_good = std::find_if(
      good.begin(), good.end(), [&](const auto& one) { return one.name == change.document->name; });
  if (last_good == good.end()) {
    documents.erase(found);
  } else {
    *found = &*last_good;
  }
}

// The problems with a change that was refused, at its own document.
void RuleFollower::AddUnfitting(const Change& change, const Attempt& attempt,
                                std::span<const rule::Problem> found,
                                std::vector<rule::Problem>& problems) {
  const std::vector<const rule::SourceDocument*>& documents = attempt[change.source];
  const auto is_its = [&](const rule::Problem& problem) {
    if (change.document != nullptr) return problem.file == change.document->name;
    return std::any_of(documents.begin(), documents.end(),
                       [&](const auto* one) { return one->name == problem.file; });
  };
  // The loader may report a contradiction at the document in force. Then the refused document gets
  // a problem that names the other one.
  const size_t before = problems.size();
  std::copy_if(found.begin(), found.end(), std::back_inserter(problems), is_its);
  if (problems.size() > before) return;
  const std::string name = change.document != nullptr ? change.document->name
                           : documents.empty()        ? std::string()
                                                      : documents[0]->name;
  if (found.empty()) {
    problems.push_back(rule::WholeFileProblem(
        name, "it was not tried, because too many other documents contradict each other"));
    return;
  }
  rule::Problem problem = rule::WholeFileProblem(
      name, "it contradicts " + found[0].file + ", which is in force: " + found[0].message);
  problem.hint = found[0].hint;
  problems.push_back(std::move(problem));
}

std::vector<rule::read::RuleFile> RuleFollower::FilesOf(const Attempt& attempt) {
  std::vector<rule::read::RuleFile> files;
  for (const auto& documents : attempt)
    for (const rule::SourceDocument* document : documents)
      files.push_back(
          {.name = document->name, .text = document->text, .limit_of = document->limit_of});
  return files;
}

// Puts the documents of the changed source in force, together with those of the other sources.
RuleFollower::Outcome RuleFollower::Try(const Followed& changed, Others others) {
  Attempt attempt;
  for (const Followed& followed : followed_) {
    std::vector<const rule::SourceDocument*>& documents = attempt.emplace_back();
    for (const rule::SourceDocument& document : DocumentsOf(followed, changed, others))
      documents.push_back(&document);
  }
  std::vector<rule::Problem> refused;
  Loaded loaded;
  std::vector<rule::read::RuleFile> files;
  while (true) {
    files = FilesOf(attempt);
    loaded = load_(files);
    if (loaded.problems.empty()) break;
    // A problem at a document in force means that it contradicts a new one. KeepFitting finds out
    // which new ones fit; otherwise the reported documents are the cause, and are taken back.
    if (!AreOfChanges(attempt, loaded.problems)) {
      std::vector<rule::Problem> unfitting;
      const bool kept = KeepFitting(attempt, unfitting);
      const std::vector<rule::Problem>& why = kept ? unfitting : loaded.problems;
      refused.insert(refused.end(), why.begin(), why.end());
      if (!kept) return {.problems = std::move(refused)};
      continue;
    }
    refused.insert(refused.end(), loaded.problems.begin(), loaded.problems.end());
    if (!TakeBack(attempt, loaded.problems)) return {.problems = std::move(refused)};
  }
  // The limiter may still refuse the rules, for example if it has no room for their limits. Then
  // nothing is in force that was not before.
  const absl::Status status = on_rules_(loaded, files);
  if (!status.ok())
    return {.problems = {rule::WholeFileProblem("", std::string(status.message()))}};
  for (size_t i = 0; i < followed_.size(); ++i) {
    std::vector<rule::SourceDocument> used;
    for (const rule::SourceDocument* document : attempt[i]) used.push_back(*document);
    followed_[i].in_force = std::move(used);
    followed_[i].ever_in_force = true;
  }
  return {.in_force = true, .problems = std::move(refused)};
}

}  // namespace headgate::watch
