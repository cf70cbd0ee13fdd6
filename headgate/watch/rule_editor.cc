#include "headgate/watch/rule_editor.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "headgate/base/line_diff.h"
#include "headgate/base/random_secret.h"
#include "headgate/base/status_hint.h"
#include "headgate/rule/edit/rollout_edit.h"
#include "headgate/rule/edit/rule_edit.h"
#include "headgate/rule/quote.h"
#include "headgate/watch/change_record.h"

namespace headgate::watch {
namespace {

// As the audit log names it.
constexpr std::string_view kPut = "put";

// How often it asks for the outcome of a write, and how long it waits before each question.
constexpr uint32_t kResolutionsMax = 10;
constexpr base::Duration kResolveAfter = std::chrono::milliseconds(500);
// How many changes of a document a rollback searches.
constexpr size_t kRollbackDepth = 1000;

// How often an edit of a rule begins again if any version of its document will do.
constexpr uint32_t kRuleEditsMax = 20;
// A longer diff is cut.
constexpr size_t kDiffBytesMax = size_t{1} << 20;

absl::Status CompareVersions(const absl::StatusOr<rule::SourceDocument>& current,
                             const rule::DocumentChange& change) {
  const std::string name = rule::Quote(change.name);
  const bool missing = absl::IsNotFound(current.status());
  if (!current.ok() && !missing) return current.status();
  if (missing) {
    return change.expected_version.empty()
               ? absl::OkStatus()
               : absl::AbortedError(fmt::format("there is no document {}", name));
  }
  if (change.expected_version.empty())
    return absl::AbortedError(fmt::format("the document {} exists already", name));
  if (change.expected_version != rule::kAnyVersion && change.expected_version != current->version) {
    return absl::AbortedError(fmt::format(
        "the document {} has changed meanwhile: its version is {}", name, current->version));
  }
  return absl::OkStatus();
}

// The document is deleted already, but its source keeps it in force until somebody confirms the
// deletion.
std::string KeptMessage(std::string_view name) {
  return fmt::format(
      "the document {} is deleted, and stays in force, because that looked like an accident; if it "
      "was meant to go: headgate rules confirm",
      rule::Quote(name));
}

absl::Status WithoutJournal(std::string_view message) {
  return base::WithHint(absl::FailedPreconditionError(std::string(message)),
                        "start the instance with --audit-log PATH, or keep the rules in ZooKeeper "
                        "(--watch), which keeps their history too");
}

std::string_view OutcomeOf(const absl::Status& status) {
  if (status.ok()) return "done";
  return absl::IsUnknown(status) ? "unknown" : "failed";
}

absl::Status NoDocumentOf(std::string_view domain) {
  return absl::NotFoundError(fmt::format("no document has the domain {}", rule::Quote(domain)));
}

absl::StatusOr<std::string> TextAfter(std::string_view document, const rule::RuleEdit& edit) {
  const std::vector<rule::RuleEntry>& path = edit.rule.entries;
  switch (edit.action) {
    case rule::RuleAction::kPut:
      return rule::edit::PutRule(document, path, edit.text);
    case rule::RuleAction::kRemove:
      return rule::edit::RemoveRule(document, path);
    case rule::RuleAction::kPutRollout:
      return rule::edit::PutRollout(document, path, edit.text);
    case rule::RuleAction::kPromoteRollout:
      return rule::edit::PromoteRollout(document, path);
    case rule::RuleAction::kEndRollout:
      return rule::edit::EndRollout(document, path);
  }
  __builtin_unreachable();
}

// As the audit log names it.
std::string_view NameOf(rule::RuleAction action) {
  switch (action) {
    case rule::RuleAction::kPut:
      return "put_rule";
    case rule::RuleAction::kRemove:
      return "remove_rule";
    case rule::RuleAction::kPutRollout:
      return "put_rollout";
    case rule::RuleAction::kPromoteRollout:
      return "promote_rollout";
    case rule::RuleAction::kEndRollout:
      return "end_rollout";
  }
  __builtin_unreachable();
}

// At most kDiffBytesMax, and whole lines if they are not very long.
std::string Bounded(std::string diff) {
  if (diff.size() <= kDiffBytesMax) return diff;
  const size_t line_end = diff.rfind('\n', kDiffBytesMax - 1);
  const size_t kept = line_end == std::string::npos ? 0 : line_end + 1;
  const size_t left_out = diff.size() - kept;
  diff.resize(kept);
  return diff + fmt::format("... {} more bytes\n", left_out);
}

// The latest change that was made. If the outcome of a change is unknown, as after a crash, it
// counts as made if the document now has the text of the change.
std::vector<rule::PastChange>::const_iterator LatestChange(
    const std::vector<rule::PastChange>& changes, const std::optional<std::string>& text) {
  return std::find_if(changes.begin(), changes.end(), [&](const rule::PastChange& change) {
    if (change.outcome == "done") return true;
    return change.outcome != "failed" && !change.texts_left_out && change.new_text == text;
  });
}

bool Contains(const std::vector<rule::Problem>& problems, const rule::Problem& problem) {
  return std::find(problems.begin(), problems.end(), problem) != problems.end();
}

std::vector<rule::Problem> AllProblems(rule::DocumentStates states) {
  std::vector<rule::Problem> problems = std::move(states.problems);
  for (rule::DocumentState& document : states.documents)
    problems.insert(problems.end(), document.problems.begin(), document.problems.end());
  return problems;
}

}  // namespace

struct RuleEditor::Order {
  rule::DocumentChange change;
  rule::DryRun dry_run;
  rule::Source* source = nullptr;
  std::shared_ptr<rule::PastChange> record;
  rule::EditResult result{};
  OnEdited done;
  uint32_t resolutions = 0;
  std::unique_ptr<net::Timer> timer{};
};

RuleEditor::RuleEditor(RuleFollower& follower, net::EventLoop& loop, const base::Clock& clock,
                       Options options)
    : follower_(follower),
      loop_(loop),
      clock_(clock),
      options_(std::move(options)),
      process_(static_cast<uint16_t>(
          base::HashBytes(base::RandomHashSecret(), base::KeyKind::kRaw, options_.instance).high)),
      edits_(follower) {}

void RuleEditor::List(OnStates done) { done(follower_.States()); }

void RuleEditor::Read(std::string_view name, OnDocument done) {
  rule::Source* const source = follower_.SourceOf(name);
  if (source == nullptr)
    return done(absl::NotFoundError(fmt::format("no source holds {}", rule::Quote(name))));
  const std::string actual = ActualName(name);
  source->Read(actual, [this, source, actual,
                        done = std::move(done)](absl::StatusOr<rule::SourceDocument> document) {
    if (absl::IsNotFound(document.status()) && Keeps(*source, actual))
      return done(absl::NotFoundError(KeptMessage(actual)));
    done(std::move(document));
  });
}

std::string RuleEditor::ActualName(std::string_view name) const {
  const std::vector<const rule::SourceDocument*> documents = follower_.Documents();
  const auto find = [&](const auto& is_it) {
    const auto found = std::find_if(documents.begin(), documents.end(), is_it);
    return found == documents.end() ? nullptr : *found;
  };
  if (find([&](const auto* one) { return one->name == name; }) != nullptr) return std::string(name);
  const rule::Source* const source = follower_.SourceOf(name);
  const auto place = source == nullptr ? std::nullopt : source->Place(name);
  if (!place || !place->limit_of) return std::string(name);
  const rule::SourceDocument* const other = find([&](const auto* one) {
    return one->limit_of == place->limit_of && follower_.SourceOf(one->name) == source;
  });
  return other == nullptr ? std::string(name) : other->name;
}

std::string RuleEditor::NameOfLimit(std::string_view key) const {
  for (const rule::Source* source : follower_.sources())
    if (std::string name = source->NameOfLimit(key); !name.empty()) return name;
  return {};
}

void RuleEditor::InOrder(OnEdited done, std::function<void(OnEdited done)> edit) {
  const bool waits =
      edits_.Add([edit = std::move(edit), done](const std::function<void()>& finished) {
        edit([done, finished](rule::EditResult result) {
          done(std::move(result));
          finished();
        });
      });
  if (!waits) done({.status = absl::UnavailableError("too many changes are in progress")});
}

void RuleEditor::Change(const rule::Edit& edit, OnEdited done) {
  InOrder(std::move(done), [this, edit](OnEdited edited) {
    rule::Edit actual = edit;
    actual.change.name = ActualName(edit.change.name);
    Begin(actual, edit.change.text ? kPut : "delete", std::move(edited));
  });
}

std::optional<std::string> RuleEditor::DocumentOf(const rule::RulePath& rule) const {
  std::optional<std::string> of_domain;
  for (const rule::SourceDocument* const document : follower_.Documents()) {
    if (document->limit_of || rule::edit::DomainOf(document->text) != rule.domain) continue;
    if (rule::edit::RuleText(document->text, rule.entries).ok()) return document->name;
    if (!of_domain) of_domain = document->name;
  }
  return of_domain;
}

void RuleEditor::ReadRule(const rule::RulePath& rule, OnDocument done) {
  follower_.CatchUp([this, rule, done = std::move(done)] {
    const auto name = DocumentOf(rule);
    if (!name) return done(NoDocumentOf(rule.domain));
    Read(*name, [rule, done](absl::StatusOr<rule::SourceDocument> document) {
      if (!document.ok()) return done(document.status());
      auto text = rule::edit::RuleText(document->text, rule.entries);
      if (!text.ok()) return done(text.status());
      document->text = *std::move(text);
      done(std::move(document));
    });
  });
}

void RuleEditor::ChangeRule(const rule::RuleEdit& edit, OnEdited done) {
  InOrder(std::move(done), [this, edit](OnEdited edited) {
    ChangeRuleAgain(edit, kRuleEditsMax, std::move(edited));
  });
}

// For kAnyVersion, and for a new rule, any version of the document will do. So if it changes during
// the edit, it is read again.
void RuleEditor::ChangeRuleAgain(const rule::RuleEdit& edit, uint32_t times_max,
                                 const OnEdited& done) {
  OnEdited on_begun = done;
  if (times_max > 1 &&
      (edit.expected_version == rule::kAnyVersion || edit.expected_version.empty())) {
    on_begun = [this, edit, times_max, done](rule::EditResult result) {
      if (!absl::IsAborted(result.status)) return done(std::move(result));
      ChangeRuleAgain(edit, times_max - 1, done);
    };
  }
  const auto name = DocumentOf(edit.rule);
  if (!name) return done({.status = NoDocumentOf(edit.rule.domain)});
  Read(*name, [this, edit, done, on_begun = std::move(on_begun)](
                  const absl::StatusOr<rule::SourceDocument>& document) mutable {
    if (!document.ok()) return done({.status = document.status()});
    ChangeRuleIn(*document, edit, done, std::move(on_begun));
  });
}

void RuleEditor::ChangeRuleIn(const rule::SourceDocument& document, const rule::RuleEdit& edit,
                              const OnEdited& done, OnEdited on_begun) {
  const auto fail = [&](absl::Status status) {
    done({.status = std::move(status), .document = document.name});
  };
  const bool exists = rule::edit::RuleText(document.text, edit.rule.entries).ok();
  const bool adds = edit.expected_version.empty();
  if (adds && exists)
    return fail(absl::AbortedError(
        fmt::format("the rule exists already, in {}", rule::Quote(document.name))));
  if (!adds && !exists) {
    return fail(absl::NotFoundError(
        fmt::format("no document has this rule of the domain {}", rule::Quote(edit.rule.domain))));
  }
  if (!adds && edit.expected_version != rule::kAnyVersion &&
      edit.expected_version != document.version) {
    return fail(absl::AbortedError(
        fmt::format("the document {} has changed meanwhile", rule::Quote(document.name))));
  }
  auto text = TextAfter(document.text, edit);
  if (absl::IsInvalidArgument(text.status())) {
    // A mistake in the request, not in the document.
    rule::EditResult result{.status = text.status(), .document = document.name};
    result.problems.push_back(
        rule::WholeFileProblem("what was sent", std::string(text.status().message())));
    return done(std::move(result));
  }
  if (!text.ok()) return fail(text.status());
  Begin({.change = {.name = document.name,
                    .text = *std::move(text),
                    .expected_version = document.version},
         .author = edit.author,
         .dry_run = edit.dry_run},
        NameOf(edit.action), std::move(on_begun));
}

void RuleEditor::Begin(const rule::Edit& edit, std::string_view action, OnEdited done) {
  auto order = std::make_shared<Order>(Order{.change = edit.change,
                                             .dry_run = edit.dry_run,
                                             .source = follower_.SourceOf(edit.change.name),
                                             .record = std::make_shared<rule::PastChange>(
                                                 NewRecord(edit.author, action, edit.change.name)),
                                             .done = std::move(done)});
  order->result.document = edit.change.name;
  if (order->source == nullptr) {
    order->result.status = absl::PermissionDeniedError(
        fmt::format("no source of rules holds a document {}", rule::Quote(edit.change.name)));
    return order->done(std::move(order->result));
  }
  order->source->Read(order->change.name,
                      [this, order](absl::StatusOr<rule::SourceDocument> current) {
                        Compare(order, std::move(current));
                      });
}

void RuleEditor::Compare(const Orders& order, absl::StatusOr<rule::SourceDocument> current) {
  order->result.status = CompareVersions(current, order->change);
  if (absl::IsNotFound(current.status()) && !order->change.text &&
      Keeps(*order->source, order->change.name))
    order->result.status = absl::FailedPreconditionError(KeptMessage(order->change.name));
  if (!order->result.status.ok()) return order->done(std::move(order->result));
  if (current.ok()) {
    order->change.expected_version = current->version;
    order->record->old_version = current->version;
    order->record->old_text = std::move(current->text);
  }
  order->record->new_text = order->change.text;
  if (order->record->old_text == order->record->new_text) {
    order->result.version = order->record->old_version;
    return order->done(std::move(order->result));
  }
  Preview(order);
}

void RuleEditor::Preview(const Orders& order) {
  rule::EditResult& result = order->result;
  if (!order->change.text) {
    result.status = order->source->CheckRemoval(order->change.name);
    if (!result.status.ok()) return order->done(std::move(result));
  }
  const RuleFollower::Loaded loaded = follower_.Preview(order->change);
  const std::vector<rule::Problem> known = AllProblems(follower_.States());
  for (const rule::Problem& problem : loaded.problems) {
    const bool old = problem.file != order->change.name && Contains(known, problem);
    (old ? result.others : result.problems).push_back(problem);
  }
  if (!result.problems.empty()) {
    result.status = absl::InvalidArgumentError(
        fmt::format("the document {} is not valid like this", rule::Quote(order->change.name)));
    return order->done(std::move(result));
  }
  result.diff = Bounded(
      base::LineDiff(order->record->old_text.value_or(""), order->record->new_text.value_or("")));
  if (const auto rules = options_.rules(); rules != nullptr && loaded.rules != nullptr) {
    result.differences = rule::DifferencesOf(*rules, *loaded.rules);
    if (options_.count_live) options_.count_live(result.differences);
  }
  if (order->dry_run == rule::DryRun::kYes) return order->done(std::move(result));
  NoteBegin(order);
}

void RuleEditor::NoteBegin(const Orders& order) {
  std::vector<rule::Journal*> journals = JournalsOf(order->source);
  if (journals.empty()) {
    order->result.status = WithoutJournal("changes are made only if they can be noted");
    return order->done(std::move(order->result));
  }
  Note(order->record, std::move(journals), [this, order](const absl::Status& noted) {
    if (noted.ok()) return Write(order);
    order->result.status = absl::UnavailableError(
        fmt::format("nothing was changed, because the change could not be noted: {}",
                    std::string(noted.message())));
    options_.on_edited(*order->record, order->result.status);
    order->done(std::move(order->result));
  });
}

void RuleEditor::Write(const Orders& order) {
  order->source->Write(order->change, [this, order](absl::StatusOr<std::string> version) {
    if (absl::IsUnknown(version.status()) ||
        (absl::IsAborted(version.status()) && order->resolutions > 0)) {
      return ResolveSoon(order, version.status());
    }
    if (version.ok()) order->result.version = *std::move(version);
    End(order, version.status());
  });
}

void RuleEditor::ResolveSoon(const Orders& order, const absl::Status& unknown) {
  if (++order->resolutions > kResolutionsMax) {
    return End(order, absl::UnknownError(fmt::format("it is not known whether {} was changed: {}",
                                                     rule::Quote(order->change.name),
                                                     std::string(unknown.message()))));
  }
  order->timer =
      std::make_unique<net::Timer>(loop_, [this, order, unknown] { Resolve(order, unknown); });
  order->timer->SetAfter(kResolveAfter);
}

// If the document still has the old version, the first write may yet arrive. So the same text is
// written again under the same condition: at most one of the two writes can succeed.
void RuleEditor::Resolve(const Orders& order, const absl::Status& unknown) {
  order->source->Read(
      order->change.name,
      [this, order, unknown](const absl::StatusOr<rule::SourceDocument>& document) {
        const bool missing = absl::IsNotFound(document.status());
        if (!document.ok() && !missing) return ResolveSoon(order, unknown);
        const std::string version = missing ? "" : document->version;
        if (version == order->change.expected_version) return Write(order);
        const bool as_asked = missing ? !order->change.text : order->change.text == document->text;
        order->result.version = as_asked ? version : "";
        End(order, as_asked ? absl::OkStatus()
                            : absl::UnknownError("somebody else has changed the document since; "
                                                 "it is not known whether this change was made "
                                                 "before"));
      });
}

void RuleEditor::End(const Orders& order, const absl::Status& status) {
  order->timer.reset();
  order->result.status = status;
  order->record->outcome = OutcomeOf(status);
  order->record->new_version = order->result.version;
  Note(order->record, JournalsOf(order->source), [this, order](const absl::Status& noted) {
    options_.on_edited(*order->record, order->result.status);
    if (!noted.ok() && options_.on_outcome_not_noted)
      options_.on_outcome_not_noted(*order->record, noted);
    if (!order->result.status.ok() || order->change.text || !order->source->awaits_confirmation())
      return order->done(std::move(order->result));
    follower_.CatchUp([this, order] {
      if (Keeps(*order->source, order->change.name))
        order->result.status = absl::FailedPreconditionError(KeptMessage(order->change.name));
      order->done(std::move(order->result));
    });
  });
}

bool RuleEditor::Keeps(const rule::Source& source, std::string_view document) const {
  const std::vector<const rule::SourceDocument*> documents = follower_.Documents();
  return source.awaits_confirmation() &&
         std::any_of(documents.begin(), documents.end(),
                     [&](const auto* one) { return one->name == document; });
}

void RuleEditor::RollBack(const rule::Rollback& rollback, OnEdited done) {
  InOrder(std::move(done),
          [this, rollback](OnEdited edited) { RollBackNow(rollback, std::move(edited)); });
}

void RuleEditor::RollBackNow(const rule::Rollback& rollback, OnEdited done) {
  Read(rollback.document, [this, rollback, done = std::move(done)](
                              absl::StatusOr<rule::SourceDocument> current) mutable {
    const bool missing = absl::IsNotFound(current.status());
    if (!current.ok() && !missing) return done({.status = current.status()});
    rule::Rollback to_undo = rollback;
    to_undo.document = ActualName(rollback.document);
    std::optional<std::string> text;
    if (current.ok()) text = std::move(current->text);
    // Any version includes none, if the change removed the document.
    if (missing && to_undo.expected_version == rule::kAnyVersion) to_undo.expected_version = "";
    const std::string document = to_undo.document;
    History(document, kRollbackDepth,
            [this, rollback = std::move(to_undo), text = std::move(text), done = std::move(done)](
                absl::StatusOr<std::vector<rule::PastChange>> changes) mutable {
              if (!changes.ok()) return done({.status = changes.status()});
              RollBackIn(*changes, rollback, text, std::move(done));
            });
  });
}

void RuleEditor::RollBackIn(const std::vector<rule::PastChange>& changes,
                            const rule::Rollback& rollback, const std::optional<std::string>& text,
                            OnEdited done) {
  const auto fail = [&](absl::Status status) { done({.status = std::move(status)}); };
  const bool undo = rollback.change.empty();
  const auto found = undo ? LatestChange(changes, text)
                          : std::find_if(changes.begin(), changes.end(), [&](const auto& change) {
                              return change.id == rollback.change;
                            });
  if (found == changes.end()) {
    return fail(absl::NotFoundError(
        undo ? fmt::format("no change of {} is noted", rule::Quote(rollback.document))
             : fmt::format("no change {} of {} is noted", rule::Quote(rollback.change),
                           rule::Quote(rollback.document))));
  }
  if (found->texts_left_out) {
    return fail(absl::FailedPreconditionError("the texts of this change were too long to note"));
  }
  Begin({.change = {.name = rollback.document,
                    .text = undo ? found->old_text : found->new_text,
                    .expected_version = rollback.expected_version},
         .author = rollback.author,
         .dry_run = rollback.dry_run},
        "rollback", std::move(done));
}

void RuleEditor::History(std::string_view document, size_t count, OnChanges done) {
  rule::Source* const source = document.empty() ? nullptr : follower_.SourceOf(document);
  const std::vector<rule::Journal*> journals = JournalsOf(source);
  if (journals.empty()) {
    return done(WithoutJournal("no changes are noted here"));
  }
  // The journal of a source is the same for all instances.
  journals.back()->Read(
      ActualName(document), count,
      [done = std::move(done)](const absl::StatusOr<std::vector<rule::Note>>& notes) {
        if (!notes.ok()) return done(notes.status());
        std::vector<rule::PastChange> changes;
        for (const rule::Note& note : *notes)
          if (auto change = ChangeFromJson(note.text)) changes.push_back(*std::move(change));
        done(std::move(changes));
      });
}

void RuleEditor::Confirm(const rule::Author& author, std::function<void(absl::Status)> done) {
  if (!follower_.awaits_confirmation()) {
    return done(absl::FailedPreconditionError(
        "nothing waits for a confirmation on this instance: no document is kept"));
  }
  auto record = std::make_shared<rule::PastChange>(NewRecord(author, "confirm", ""));
  record->outcome = "done";
  Note(record, JournalsOf(nullptr),
       [this, record, done = std::move(done)](const absl::Status& noted) {
         options_.on_edited(*record, noted);
         if (!noted.ok()) {
           return done(absl::UnavailableError(
               fmt::format("nothing was confirmed, because that could not be noted: {}",
                           std::string(noted.message()))));
         }
         follower_.Confirm();
         done(noted);
       });
}

void RuleEditor::Note(std::shared_ptr<const rule::PastChange> record,
                      std::vector<rule::Journal*> journals, rule::Journal::OnNoted done) const {
  if (journals.empty()) return done(absl::OkStatus());
  rule::Journal* const journal = journals.back();
  journals.pop_back();
  journal->Put({.id = record->id,
                .document = record->document,
                .text = ChangeAsJson(*record, options_.instance, journal->text_bytes_max())},
               [this, record, journals = std::move(journals),
                done = std::move(done)](const absl::Status& status) mutable {
                 if (!status.ok()) return done(status);
                 Note(std::move(record), std::move(journals), std::move(done));
               });
}

std::vector<rule::Journal*> RuleEditor::JournalsOf(rule::Source* source) const {
  std::vector<rule::Journal*> journals;
  if (options_.journal != nullptr) journals.push_back(options_.journal.get());
  for (rule::Source* const one : follower_.sources()) {
    if (source != nullptr && source != one) continue;
    if (one->journal() != nullptr) journals.push_back(one->journal());
  }
  return journals;
}

rule::PastChange RuleEditor::NewRecord(const rule::Author& author, std::string_view action,
                                       std::string_view document) {
  const base::WallTime now = clock_.WallNow();
  last_id_ns_ = std::max(now.ns, last_id_ns_ + 1);
  return {.id = fmt::format("{:019}-{:04x}", last_id_ns_, process_),
          .time = TimeAsText(now),
          .user = author.user,
          .address = author.address,
          .action = std::string(action),
          .document = std::string(document),
          .outcome = "begun"};
}

}  // namespace headgate::watch
