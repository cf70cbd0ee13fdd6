// Changes the documents of the rules, for operators of a running fleet. A change is made only if
// the resulting rules are valid, if nobody else has changed the document meanwhile, and if the
// journal has noted its author.
//
// `done` is called once, on the thread of the caller, possibly before the call returns.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/status.h"
#include "headgate/rule/problem.h"
#include "headgate/rule/rule_difference.h"
#include "headgate/rule/rule_path.h"
#include "headgate/rule/source.h"

namespace headgate::rule {

// A document as an instance knows it.
struct DocumentState {
  std::string name;
  std::string version;
  size_t bytes = 0;
  std::optional<std::string> limit_of{};  // see SourceDocument
  // Whether this version of the document is in force. If not, the last good version is, if there is
  // one.
  bool in_force = false;
  std::vector<Problem> problems{};
};

struct DocumentStates {
  std::vector<DocumentState> documents;
  std::vector<Problem> problems;  // that belong to none of the documents
};

struct Author {
  std::string user;     // empty: nobody logged in
  std::string address;  // of the client
};

enum class DryRun : bool { kNo, kYes };

// An expected version that stands for any version; the document must exist.
inline constexpr std::string_view kAnyVersion = "*";

// A new text of a document, or its removal.
struct Edit {
  DocumentChange change;
  Author author;
  DryRun dry_run = DryRun::kNo;
};

enum class RuleAction : uint8_t {
  kPut,             // text: the rule (edit/rule_edit.h)
  kRemove,          //
  kPutRollout,      // text: the roll-out (edit/rollout_edit.h)
  kPromoteRollout,  //
  kEndRollout,      //
};

// A change of one rule in the document that holds it. Everything else in the document stays as it
// is written.
struct RuleEdit {
  RulePath rule;
  RuleAction action;
  std::string text{};
  // The version of the document when the rule was read; kAnyVersion; or empty: the rule must not
  // exist yet. Then it is added to the first document of its domain.
  std::string expected_version;
  Author author;
  DryRun dry_run = DryRun::kNo;
};

// Back to an earlier text of a document.
struct Rollback {
  std::string document;
  // The id of a change: back to the text after it; empty: back to the text before the latest
  // change.
  std::string change{};
  std::string expected_version;  // as in DocumentChange
  Author author;
  DryRun dry_run = DryRun::kNo;
};

// The result of an edit.
//
// The status is OK, or: InvalidArgument: `problems` say why the document is refused. Aborted: the
// document has another version, or it exists although it must not, or does not exist although it
// must. NotFound: no such document, or no such change. PermissionDenied: no source holds documents
// of this name, or the source refuses it. FailedPrecondition: changes cannot be noted here, or the
// document was deleted and its source keeps it in force until somebody confirms. Unavailable:
// nothing was changed. Unknown: it may have been changed.
struct EditResult {
  absl::Status status;
  std::string document{};  // its name
  std::vector<Problem> problems{};
  std::string version{};  // the new one; empty if the document was removed, and in a dry run
  std::string diff{};     // the changes in the text (base/line_diff.h)
  std::vector<RuleDifference> differences{};
  // Problems that other documents had before and still have. While a source has problems, this
  // change may not come into force.
  std::vector<Problem> others{};
};

// A change that was made, or tried, earlier.
struct PastChange {
  std::string id;
  std::string time;  // RFC 3339, UTC
  std::string user;
  std::string address;
  std::string action;  // "put", "delete", "rollback"
  std::string document;
  std::string old_version{};
  std::string new_version{};
  std::string outcome{};  // "done", "failed", "unknown"; "begun" if no outcome was noted
  // Absent: there was no document, or its text was too long to note (`texts_left_out`).
  std::optional<std::string> old_text{};
  std::optional<std::string> new_text{};
  bool texts_left_out = false;
};

class Editor {
 public:
  using OnStates = std::function<void(absl::StatusOr<DocumentStates> states)>;
  using OnDocument = std::function<void(absl::StatusOr<SourceDocument> document)>;
  using OnEdited = std::function<void(EditResult result)>;
  using OnChanges = std::function<void(absl::StatusOr<std::vector<PastChange>> changes)>;

  virtual ~Editor() = default;

  virtual void List(OnStates done) = 0;
  virtual void Read(std::string_view name, OnDocument done) = 0;
  // The name of the document with the limit of this API key, whether or not it exists; empty if no
  // source holds such documents. From any thread.
  virtual std::string NameOfLimit(std::string_view key) const = 0;
  virtual void Change(const Edit& edit, OnEdited done) = 0;
  // The text of one rule, with the name and version of its document.
  virtual void ReadRule(const RulePath& rule, OnDocument done) = 0;
  virtual void ChangeRule(const RuleEdit& edit, OnEdited done) = 0;
  virtual void RollBack(const Rollback& rollback, OnEdited done) = 0;
  // The latest changes, at most `count`, the newest first; of all documents if `document` is empty.
  virtual void History(std::string_view document, size_t count, OnChanges done) = 0;
  // Confirms the deletions that sources took for accidents. FailedPrecondition: there are none.
  virtual void Confirm(const Author& author, std::function<void(absl::Status)> done) = 0;
};

}  // namespace headgate::rule
