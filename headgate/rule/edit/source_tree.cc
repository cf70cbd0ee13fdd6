#include "headgate/rule/edit/source_tree.h"

#include <algorithm>

#include <fmt/format.h>
#include <yaml.h>

#include "absl/container/flat_hash_map.h"
#include "headgate/rule/edit/text_edits.h"
#include "headgate/rule/read/libyaml_event.h"

namespace headgate::rule::edit {

using read::Event;
using read::NodeKind;
using read::TagOf;

namespace {

// Turns libyaml's positions, which count characters, into bytes.
class ByteOffsets {
 public:
  explicit ByteOffsets(std::string_view text) : text_(text) {
    size_t count = 0;
    for (size_t i = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0; i < text.size();
         ++i) {
      if (!BeginsCharacter(text[i])) continue;
      if (count++ % kStride == 0) marks_.push_back(i);
    }
  }

  size_t Of(size_t character) const {
    const size_t mark = character / kStride;
    if (mark >= marks_.size()) return text_.size();
    size_t at = marks_[mark];
    for (size_t left = character % kStride; left > 0 && at < text_.size(); --left) {
      ++at;
      while (at < text_.size() && !BeginsCharacter(text_[at])) ++at;
    }
    return at;
  }

 private:
  static constexpr size_t kStride = 64;
  static bool BeginsCharacter(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

  std::string_view text_;
  std::vector<size_t> marks_;  // the offset of every 64th character
};

NodeForm FormOf(yaml_scalar_style_t style) {
  switch (style) {
    case YAML_SINGLE_QUOTED_SCALAR_STYLE:
      return NodeForm::kSingleQuoted;
    case YAML_DOUBLE_QUOTED_SCALAR_STYLE:
      return NodeForm::kDoubleQuoted;
    case YAML_LITERAL_SCALAR_STYLE:
    case YAML_FOLDED_SCALAR_STYLE:
      return NodeForm::kText;
    default:
      return NodeForm::kPlain;
  }
}

}  // namespace

class SourceTreeParser {
 public:
  explicit SourceTreeParser(std::string_view text) : text_(text), offsets_(text) {
    // This fails only if memory runs out, which stops the process elsewhere too.
    if (yaml_parser_initialize(&parser_) == 0) throw std::bad_alloc();
    yaml_parser_set_input_string(
        &parser_, static_cast<const unsigned char*>(static_cast<const void*>(text.data())),
        text.size());
  }
  ~SourceTreeParser() { yaml_parser_delete(&parser_); }
  SourceTreeParser(const SourceTreeParser&) = delete;
  SourceTreeParser& operator=(const SourceTreeParser&) = delete;

  absl::StatusOr<SourceTree> Run() {
    bool done = false;
    while (!done) {
      Event event;
      if (yaml_parser_parse(&parser_, event.get()) == 0) {
        return absl::InvalidArgumentError(
            fmt::format("{}:{}: {}", parser_.problem_mark.line + 1, parser_.problem_mark.column + 1,
                        parser_.problem == nullptr ? "not YAML" : parser_.problem));
      }
      done = event->type == YAML_DOCUMENT_END_EVENT || event->type == YAML_STREAM_END_EVENT;
      if (!done && !Take(*event)) {
        return absl::InvalidArgumentError(fmt::format(
            "{}:{}: unknown anchor", event->start_mark.line + 1, event->start_mark.column + 1));
      }
    }
    return std::move(tree_);
  }

 private:
  struct Open {
    SourceNode* node;
    std::string anchor;
  };

  // False for an alias without its anchor.
  bool Take(const yaml_event_t& event) {
    switch (event.type) {
      case YAML_SCALAR_EVENT:
        TakeScalar(event);
        return true;
      case YAML_ALIAS_EVENT:
        return TakeAlias(event);
      case YAML_SEQUENCE_START_EVENT:
        Begin(NodeKind::kSequence, event,
              event.data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE,
              event.data.sequence_start.anchor, event.data.sequence_start.tag);
        return true;
      case YAML_MAPPING_START_EVENT:
        Begin(NodeKind::kMapping, event, event.data.mapping_start.style == YAML_FLOW_MAPPING_STYLE,
              event.data.mapping_start.anchor, event.data.mapping_start.tag);
        return true;
      case YAML_SEQUENCE_END_EVENT:
      case YAML_MAPPING_END_EVENT:
        End(event);
        return true;
      default:
        return true;
    }
  }

  void TakeScalar(const yaml_event_t& event) {
    const auto& scalar = event.data.scalar;
    SourceNode& node = Make(event);
    node.form = FormOf(scalar.style);
    node.tag = TagOf(event);
    node.text = read::TextOf(scalar.value, scalar.length);
    node.has_properties = scalar.anchor != nullptr || scalar.tag != nullptr;
    node.end = offsets_.Of(event.end_mark.index);
    if (node.form == NodeForm::kText) {
      const size_t header_end = text_.find_first_of("\r\n", node.begin);
      if (text_.substr(node.begin, header_end - node.begin).find('+') != std::string_view::npos)
        node.kept_end = node.end;
      const size_t last = text_.substr(0, node.end).find_last_not_of(" \r\n");
      node.end = std::max(last == std::string_view::npos ? 0 : last + 1, node.begin);
    }
    if (scalar.anchor != nullptr) anchors_[read::TextOf(scalar.anchor)] = &node;
    Add(node);
  }

  bool TakeAlias(const yaml_event_t& event) {
    const auto found = anchors_.find(read::TextOf(event.data.alias.anchor));
    if (found == anchors_.end() || found->second == nullptr) return false;
    ++found->second->aliases;
    SourceNode& node = Make(event);
    node.kind = found->second->kind;
    node.alias_of = found->second;
    node.end = offsets_.Of(event.end_mark.index);
    Add(node);
    return true;
  }

  void Begin(NodeKind kind, const yaml_event_t& event, bool flow, const yaml_char_t* anchor,
             const yaml_char_t* tag) {
    SourceNode& node = Make(event);
    node.kind = kind;
    node.form = flow ? NodeForm::kFlow : NodeForm::kBlock;
    node.has_properties = anchor != nullptr || tag != nullptr;
    // The position at which libyaml's event ends: behind the bracket, at the first key, or at or
    // behind the first dash.
    node.open = offsets_.Of(event.end_mark.index);
    const bool at_dash = kind == NodeKind::kSequence && text_.substr(node.open).starts_with('-');
    if (node.open > node.begin && (flow || (kind == NodeKind::kSequence && !at_dash))) --node.open;
    Open open{.node = &node, .anchor = anchor == nullptr ? "" : read::TextOf(anchor)};
    if (!open.anchor.empty()) anchors_[open.anchor] = nullptr;
    open_.push_back(std::move(open));
  }

  void End(const yaml_event_t& event) {
    const Open open = std::move(open_.back());
    open_.pop_back();
    SourceNode& node = *open.node;
    node.end = std::max(node.open, offsets_.Of(event.end_mark.index));
    // libyaml reports the end of a collection without brackets at the next token, so the last child
    // says where it ends.
    if (event.start_mark.index == event.end_mark.index || node.form == NodeForm::kBlock) {
      node.end = node.children.empty() ? node.open : node.children.back()->end;
      node.kept_end = node.children.empty() ? 0 : node.children.back()->kept_end;
    }
    if (!open.anchor.empty()) anchors_[open.anchor] = &node;
    Add(node);
  }

  SourceNode& Make(const yaml_event_t& event) {
    SourceNode& node = tree_.Make();
    node.begin = offsets_.Of(event.start_mark.index);
    node.open = node.begin;
    return node;
  }

  void Add(const SourceNode& node) {
    if (open_.empty()) {
      tree_.root_ = &node;
    } else {
      open_.back().node->children.push_back(&node);
    }
  }

  const std::string_view text_;
  const ByteOffsets offsets_;
  yaml_parser_t parser_{};
  SourceTree tree_;
  // Null while its node is being read.
  absl::flat_hash_map<std::string, SourceNode*> anchors_;
  std::vector<Open> open_;
};

absl::StatusOr<SourceTree> ParseSource(std::string_view text) {
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    return absl::InvalidArgumentError("1:1: the text is UTF-16; write it as UTF-8");
  }
  return SourceTreeParser(text).Run();
}

}  // namespace headgate::rule::edit
