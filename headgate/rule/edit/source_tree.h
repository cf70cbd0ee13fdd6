// YAML text as it is written: every node with its byte range, for changes in place.
//
// Unlike read/document.h it keeps aliases and merge keys, because a change must not reach other
// nodes through them. Reads the first document of a text, which Document::Parse must have accepted;
// its bounds hold here too.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/status.h"
#include "headgate/rule/read/document.h"

namespace headgate::rule::edit {

enum class NodeForm : uint8_t {
  kBlock,         // one line or more for each item
  kFlow,          // {…} or […]
  kPlain,         // a scalar without quotes
  kSingleQuoted,  // '…'
  kDoubleQuoted,  // "…"
  kText,          // | or >, a scalar of whole lines
};

struct SourceNode {
  read::NodeKind kind = read::NodeKind::kScalar;  // an alias has the kind of its anchor's node
  NodeForm form = NodeForm::kPlain;
  read::Tag tag = read::Tag::kNone;      // scalars only
  const SourceNode* alias_of = nullptr;  // set: this node is an alias, without children
  uint32_t aliases = 0;                  // the number of aliases of this node's anchor
  bool has_properties = false;           // an anchor or a tag is written before it
  // Byte offsets. `begin` includes an anchor or a tag. `open` is the first byte of the first key or
  // dash, the bracket of a flow collection, or the same as `begin`. `end` leaves out line breaks
  // and spaces at the end of a text of whole lines.
  size_t begin = 0;
  size_t open = 0;
  size_t end = 0;
  // If not 0: a change behind the node must begin here or later, because the node ends with a text
  // that keeps its empty lines ("|+").
  size_t kept_end = 0;
  std::string text{};  // scalars only
  // Items; for a mapping, keys and values alternating.
  std::vector<const SourceNode*> children{};

  bool is_alias() const { return alias_of != nullptr; }
  // The node itself, or the node that it is an alias of.
  const SourceNode& target() const { return alias_of == nullptr ? *this : *alias_of; }
  size_t pair_count() const { return children.size() / 2; }
  const SourceNode& key(size_t pair) const { return *children[2 * pair]; }
  const SourceNode& value(size_t pair) const { return *children[2 * pair + 1]; }
};

// Whether this is the key of a merge (`<<`).
inline bool IsMergeKey(const SourceNode& key) {
  return key.kind == read::NodeKind::kScalar && !key.is_alias() && key.tag == read::Tag::kNone &&
         key.text == "<<";
}

// Owns its nodes, and further nodes that an edit adds.
class SourceTree {
 public:
  // Null if the document is empty.
  const SourceNode* root() const { return root_; }
  SourceNode& Make() { return nodes_.emplace_back(); }

 private:
  friend class SourceTreeParser;
  std::deque<SourceNode> nodes_;
  const SourceNode* root_ = nullptr;
};

// InvalidArgument, with "line:column: ", if the text is not YAML in UTF-8.
absl::StatusOr<SourceTree> ParseSource(std::string_view text);

}  // namespace headgate::rule::edit
