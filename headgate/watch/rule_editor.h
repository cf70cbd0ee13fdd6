// Changes documents of the sources that a RuleFollower follows (rule/editor.h).
//
// Edits are made one after the other (edit_queue.h). Each takes these steps, and the first that
// fails ends it:
//
//   catch up   the documents are known as they are now
//   compare    the document has the version that the editor saw
//   preview    the rules that would result are valid
//   note       the change and its author, in every journal
//   write      if the document still has this version
//   note       the outcome
//
// A change that could not be noted is not made. If the process ends between the two notes, the
// first one stays: "begun".
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/clock.h"
#include "headgate/net/event_loop.h"
#include "headgate/rule/editor.h"
#include "headgate/rule/journal.h"
#include "headgate/watch/edit_queue.h"
#include "headgate/watch/rule_follower.h"

namespace headgate::watch {

class RuleEditor final : public rule::Editor {
 public:
  struct Options {
    // Gets the notes in addition to the journals of the sources; null: none.
    std::unique_ptr<rule::Journal> journal;
    // The name of this machine, for the notes.
    std::string instance;
    // The rules in force; may return null.
    std::function<std::shared_ptr<const rule::RuleSet>()> rules;
    // Fills in how many buckets of each rule live in this process, if that is known.
    std::function<void(std::vector<rule::RuleDifference>& differences)> count_live;
    // Called for each change that was made, or begun and not made.
    std::function<void(const rule::PastChange& change, const absl::Status& status)> on_edited;
    // Called after on_edited if the outcome of a change could not be noted: its note stays "begun".
    std::function<void(const rule::PastChange& change, const absl::Status& status)>
        on_outcome_not_noted{};
  };

  // All arguments must outlive it. `loop` is the one of the sources.
  RuleEditor(RuleFollower& follower, net::EventLoop& loop, const base::Clock& clock,
             Options options);

  void List(OnStates done) override;
  void Read(std::string_view name, OnDocument done) override;
  std::string NameOfLimit(std::string_view key) const override;
  void Change(const rule::Edit& edit, OnEdited done) override;
  void ReadRule(const rule::RulePath& rule, OnDocument done) override;
  void ChangeRule(const rule::RuleEdit& edit, OnEdited done) override;
  void RollBack(const rule::Rollback& rollback, OnEdited done) override;
  void History(std::string_view document, size_t count, OnChanges done) override;
  void Confirm(const rule::Author& author, std::function<void(absl::Status)> done) override;

 private:
  // The limit of a key may be in a node whose name is encoded in another way than NameOfLimit does.
  // So if this document does not exist, returns the name of the document with the limit of the same
  // key.
  std::string ActualName(std::string_view name) const;
  // An edit in progress.
  struct Order;
  using Orders = std::shared_ptr<Order>;

  // Calls `edit` after all earlier edits have ended.
  void InOrder(OnEdited done, std::function<void(OnEdited done)> edit);
  void Begin(const rule::Edit& edit, std::string_view action, OnEdited done);
  // Calls `done` if the change is refused at once, otherwise `on_begun`.
  void ChangeRuleIn(const rule::SourceDocument& document, const rule::RuleEdit& edit,
                    const OnEdited& done, OnEdited on_begun);
  // The name of the document that holds the rule, or else of the first one of its domain.
  std::optional<std::string> DocumentOf(const rule::RulePath& rule) const;
  void Compare(const Orders& order, absl::StatusOr<rule::SourceDocument> current);
  void Preview(const Orders& order);
  void NoteBegin(const Orders& order);
  void Write(const Orders& order);
  void ChangeRuleAgain(const rule::RuleEdit& edit, uint32_t times_max, const OnEdited& done);
  void RollBackNow(const rule::Rollback& rollback, OnEdited done);
  // `text` is what the document is now, if it exists.
  void RollBackIn(const std::vector<rule::PastChange>& changes, const rule::Rollback& rollback,
                  const std::optional<std::string>& text, OnEdited done);
  // Reads the document again, to find the outcome of a write without an answer.
  void ResolveSoon(const Orders& order, const absl::Status& unknown);
  void Resolve(const Orders& order, const absl::Status& unknown);
  void End(const Orders& order, const absl::Status& status);
  // Whether the source keeps the document although it is deleted.
  bool Keeps(const rule::Source& source, std::string_view document) const;
  // Puts the record into all these journals, one after the other.
  void Note(std::shared_ptr<const rule::PastChange> record, std::vector<rule::Journal*> journals,
            rule::Journal::OnNoted done) const;
  // The journals of `source`, or of all sources if it is null.
  std::vector<rule::Journal*> JournalsOf(rule::Source* source) const;
  rule::PastChange NewRecord(const rule::Author& author, std::string_view action,
                             std::string_view document);

  RuleFollower& follower_;
  net::EventLoop& loop_;
  const base::Clock& clock_;
  const Options options_;
  const uint16_t process_;  // makes the ids of several instances differ
  int64_t last_id_ns_ = 0;
  EditQueue edits_;
};

}  // namespace headgate::watch
