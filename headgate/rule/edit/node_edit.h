// Changes YAML text so that a node becomes another one, and rewrites only the differing parts.
//
// An unchanged part keeps its lines, its order, its comments and its style. A new part is written
// in the style around it, behind its older siblings. A removed pair or item takes with it the
// comment on its own lines, comment lines directly above it at its column, and comment lines
// directly below it that are indented deeper than it.
#pragma once

#include <string_view>

#include "headgate/base/status.h"
#include "headgate/rule/edit/node_writer.h"
#include "headgate/rule/edit/source_tree.h"
#include "headgate/rule/edit/text_edits.h"

namespace headgate::rule::edit {

// The beginning of the line after a child of a block collection in this column and after the
// child's comments.
size_t LineBehind(const TextLines& lines, const SourceNode& child, size_t column);
// The dash of an item. FailedPrecondition if it cannot be found.
absl::StatusOr<size_t> DashOf(const TextLines& lines, const SourceNode& sequence, size_t item);
// "line N: REASON; edit the text by hand", FailedPrecondition.
absl::Status CannotEdit(const TextLines& lines, size_t offset, std::string_view reason);

class NodeEdit {
 public:
  // The arguments must outlive this object. Every line of the text must end with a line break.
  NodeEdit(const TextLines& lines, const WriterStyle& style, TextEdits& edits)
      : lines_(lines), style_(style), edits_(edits) {}

  // Changes `old` to `wanted`, which may contain nodes of `old`. Both are mappings, and have a key
  // in common. FailedPrecondition if this could change other nodes too (through anchors and merge
  // keys), or if the text is written in a way that cannot be changed in place.
  absl::Status ChangeMapping(const SourceNode& old, const SourceNode& wanted);

 private:
  // A pair or an item with its bytes.
  struct Entry {
    size_t begin;
    size_t end;
  };
  // The changes of the children of a collection.
  struct Plan {
    std::vector<bool> removed;  // for each old child
    // Texts of new children, by the old child that they precede, or the number of old children.
    std::vector<std::vector<std::string>> added;
  };

  absl::Status ChangeSequence(const SourceNode& old, const SourceNode& wanted,
                              const SourceNode& key);
  absl::Status ChangeValue(const SourceNode& mapping, size_t pair, const SourceNode& wanted);
  absl::Status ChangeItem(const SourceNode& old, const SourceNode& wanted);
  absl::Status ReplaceValue(const SourceNode& mapping, size_t pair, const SourceNode& wanted);
  absl::Status EmptyBlockSequence(const SourceNode& mapping, size_t pair);
  void ReplaceInline(const SourceNode& old, std::string text);

  absl::Status ChangeBlockMapping(const SourceNode& old, const Plan& plan);
  absl::Status ChangeBlockSequence(const SourceNode& old, const Plan& plan, size_t floor);
  absl::Status ChangeFlow(const SourceNode& old, const Plan& plan);
  void RemoveFlowRun(const std::vector<Entry>& entries, size_t first, size_t last, bool extended);
  void AppendToFlow(const std::vector<Entry>& entries, size_t last_kept,
                    const std::vector<std::string>& texts);
  bool HasOwnLines(const Entry& entry) const;
  // Behind the comma that follows the entry, or behind the entry if there is none.
  size_t AfterComma(const Entry& entry) const;

  size_t After(const SourceNode& last, size_t column) const {
    return LineBehind(lines_, last, column);
  }
  size_t WithComments(size_t begin, size_t floor) const {
    return lines_.CommentsAbove(begin, floor);
  }
  absl::StatusOr<size_t> Colon(const SourceNode& mapping, size_t pair) const;

  // Whether this node itself, or everything in it, may be changed.
  absl::Status CheckOwn(const SourceNode& node) const;
  absl::Status CheckAll(const SourceNode& node) const;
  absl::Status Refuse(size_t offset, std::string_view reason) const {
    return CannotEdit(lines_, offset, reason);
  }

  const TextLines& lines_;
  const WriterStyle& style_;
  TextEdits& edits_;
};

}  // namespace headgate::rule::edit
