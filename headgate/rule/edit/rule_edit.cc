#include "headgate/rule/edit/rule_edit.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "absl/container/flat_hash_set.h"
#include "headgate/base/utf8.h"
#include "headgate/rule/descriptor.h"
#include "headgate/rule/edit/node_edit.h"
#include "headgate/rule/edit/node_writer.h"
#include "headgate/rule/edit/rule_edit_check.h"
#include "headgate/rule/edit/source_tree.h"
#include "headgate/rule/edit/text_edits.h"
#include "headgate/rule/quote.h"
#include "headgate/rule/read/document.h"
#include "headgate/rule/read/file_loader.h"
#include "headgate/rule/read/scalar.h"

namespace headgate::rule::edit {

using read::Document;
using read::DocumentNode;
using read::IsNull;
using read::kDocumentDepthMax;
using read::kDocumentNodesMax;
using read::NodeKind;
using read::Tag;

namespace {

std::string Show(const RuleEntry& entry) {
  const std::string value = entry.value.value_or("");
  return value.empty() ? Quote(entry.key) : fmt::format("{}: {}", Quote(entry.key), Quote(value));
}

std::string Composite(std::string_view key, std::string_view value) {
  return value.empty() ? std::string(key) : fmt::format("{}_{}", key, value);
}

absl::Status CheckPath(std::span<const RuleEntry> path) {
  if (path.empty() || path.size() > kEntriesMax) {
    return absl::InvalidArgumentError(
        fmt::format("the path of a rule has 1 to {} entries, not {}", kEntriesMax, path.size()));
  }
  for (const RuleEntry& entry : path) {
    if (entry.key.empty()) return absl::InvalidArgumentError("an entry of the path has no key");
    if (std::max(entry.key.size(), entry.value.value_or("").size()) > kTextBytesMax) {
      return absl::InvalidArgumentError(
          fmt::format("an entry of the path is longer than {} bytes", kTextBytesMax));
    }
    if (!base::IsUtf8(entry.key) || !base::IsUtf8(entry.value.value_or("")))
      return absl::InvalidArgumentError("an entry of the path is not UTF-8");
  }
  return absl::OkStatus();
}

// The two trees of one text: as the loader reads it, and as it is written.
struct Trees {
  std::unique_ptr<const Document> document;
  SourceTree source;
};

// An error's message begins with "line:column: ".
absl::StatusOr<Trees> ParseBoth(std::string_view text) {
  Document::Parsed parsed = Document::Parse(text);
  if (parsed.error) {
    return absl::InvalidArgumentError(fmt::format(
        "{}:{}: {}", parsed.error->mark.line, parsed.error->mark.column, parsed.error->message));
  }
  HEADGATE_ASSIGN_OR_RETURN(SourceTree source, ParseSource(text));
  return Trees{.document = std::move(parsed.document), .source = std::move(source)};
}

absl::StatusOr<Trees> ParseDocument(std::string_view text) {
  auto trees = ParseBoth(text);
  if (!trees.ok()) {
    return absl::FailedPreconditionError(
        fmt::format("the document cannot be read: {}", std::string(trees.status().message())));
  }
  const DocumentNode* const root = trees->document->root();
  if (root == nullptr || root->kind != NodeKind::kMapping || root->children.empty())
    return absl::FailedPreconditionError(
        "the document is not a rule file; begin it with \"domain: NAME\"");
  return trees;
}

// A level of the tree of rules: the domain, or a rule.
struct Level {
  const DocumentNode* document = nullptr;  // with aliases and merges applied
  const SourceNode* source = nullptr;
  // The `descriptors` of the level; null if it has none. Both lists have the same items.
  const DocumentNode* list = nullptr;
  const SourceNode* source_list = nullptr;
};

absl::StatusOr<Level> LevelAt(const TextLines& lines, const DocumentNode& document,
                              const SourceNode& source) {
  Level level{.document = &document, .source = &source};
  for (size_t i = 0; i < source.pair_count(); ++i) {
    const SourceNode& key = source.key(i).target();
    if (IsMergeKey(key))
      return CannotEdit(lines, source.key(i).begin, "a rule uses a merge key (<<)");
    if (key.kind != NodeKind::kScalar || key.text != "descriptors") continue;
    if (level.source_list != nullptr)
      return CannotEdit(lines, source.key(i).begin, "'descriptors' occurs twice");
    level.source_list = &source.value(i);
  }
  const DocumentNode* const list = FieldOf(document, "descriptors");
  if (list == nullptr || list->kind != NodeKind::kSequence) {
    if (list != nullptr && !IsNull(*list))
      return CannotEdit(lines, level.source_list->begin, "'descriptors' is not a list");
    level.source_list = nullptr;
    return level;
  }
  level.list = list;
  return level;
}

// The place of the rule in the list of its level.
absl::StatusOr<std::optional<size_t>> Find(const TextLines& lines, const Level& level,
                                           const RuleEntry& entry) {
  std::optional<size_t> found;
  if (level.list == nullptr) return found;
  const std::string_view value = entry.value ? std::string_view(*entry.value) : std::string_view();
  const std::string composite = Composite(entry.key, value);
  const SourceNode& items = level.source_list->target();
  for (size_t i = 0; i < level.list->children.size(); ++i) {
    const DocumentNode& item = *level.list->children[i];
    if (item.kind != NodeKind::kMapping) continue;
    const std::string_view item_key = FieldText(item, "key");
    const std::string_view item_value = FieldText(item, "value");
    if (Composite(item_key, item_value) != composite) continue;
    if (found) {
      return CannotEdit(lines, items.children[i]->begin,
                        fmt::format("duplicate rule {}", Show(entry)));
    }
    if (item_key != entry.key) {
      return CannotEdit(lines, items.children[i]->begin,
                        fmt::format("this rule matches the same requests as {}", Show(entry)));
    }
    found = i;
  }
  return found;
}

// Looks for a rule that exists.
struct FoundRule {
  Level parent;
  size_t item;
};

absl::StatusOr<FoundRule> FindRule(const TextLines& lines, const Trees& trees,
                                   std::span<const RuleEntry> path) {
  const DocumentNode* document = trees.document->root();
  const SourceNode* source = trees.source.root();
  for (size_t depth = 0;; ++depth) {
    HEADGATE_ASSIGN_OR_RETURN(const Level level, LevelAt(lines, *document, source->target()));
    HEADGATE_ASSIGN_OR_RETURN(const std::optional<size_t> item, Find(lines, level, path[depth]));
    if (!item) {
      return absl::NotFoundError(
          fmt::format("the document has no rule {} at level {}", Show(path[depth]), depth + 1));
    }
    if (depth + 1 == path.size()) return FoundRule{.parent = level, .item = *item};
    document = level.list->children[*item];
    source = level.source_list->target().children[*item];
  }
}

// ---- The wanted tree. It consists of nodes of the document and of new ones.

class WantedTree {
 public:
  WantedTree(const TextLines& lines, std::span<const RuleEntry> path)
      : lines_(lines), path_(path) {}

  absl::StatusOr<const SourceNode*> WithRule(const Trees& trees, const SourceNode& rule) {
    return PutInto(trees.document->root(), trees.source.root(), 0, rule);
  }

  absl::StatusOr<const SourceNode*> WithoutRule(const Trees& trees) {
    return RemoveFrom(*trees.document->root(), *trees.source.root(), 0);
  }

  // The deepest list of rules on the path that exists; null if there is none.
  const SourceNode* nearest() const { return nearest_; }

 private:
  absl::Status CheckOnPath(const SourceNode& node) const {
    if (node.is_alias()) return CannotEdit(lines_, node.begin, "this is an alias of another part");
    if (node.aliases > 0) {
      return CannotEdit(lines_, node.begin,
                        "other parts are aliases of this one and would change too");
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Level> Enter(const DocumentNode& document, const SourceNode& source) {
    HEADGATE_RETURN_IF_ERROR(CheckOnPath(source));
    HEADGATE_ASSIGN_OR_RETURN(const Level level, LevelAt(lines_, document, source));
    if (level.source_list != nullptr) {
      HEADGATE_RETURN_IF_ERROR(CheckOnPath(*level.source_list));
      if (!level.source_list->children.empty()) nearest_ = level.source_list;
    }
    return level;
  }

  // For a parent that is added, both nodes are null.
  absl::StatusOr<const SourceNode*> PutInto(const DocumentNode* document, const SourceNode* source,
                                            size_t depth, const SourceNode& rule) {
    Level level;
    if (source != nullptr) {
      HEADGATE_ASSIGN_OR_RETURN(level, Enter(*document, *source));
    }
    const RuleEntry& entry = path_[depth];
    HEADGATE_ASSIGN_OR_RETURN(const std::optional<size_t> found, Find(lines_, level, entry));
    const DocumentNode* const old_document = found ? level.list->children[*found] : nullptr;
    const SourceNode* const old = found ? level.source_list->children[*found] : nullptr;
    const SourceNode* item = nullptr;
    if (depth + 1 == path_.size()) {
      if (old != nullptr) {
        HEADGATE_RETURN_IF_ERROR(Enter(*old_document, *old).status());
      }
      item = old == nullptr ? &NewRule(entry, rule) : &ChangedRule(*old, rule);
    } else {
      HEADGATE_ASSIGN_OR_RETURN(const SourceNode* const inner,
                                PutInto(old_document, old, depth + 1, rule));
      item = old == nullptr ? &NewRule(entry, *inner) : inner;
    }
    SourceNode& list = Make(NodeKind::kSequence);
    if (level.list != nullptr) list.children = level.source_list->children;
    if (found) {
      list.children[*found] = item;
    } else {
      list.children.push_back(item);
    }
    return &WithList(source, list);
  }

  absl::StatusOr<const SourceNode*> RemoveFrom(const DocumentNode& document,
                                               const SourceNode& source, size_t depth) {
    HEADGATE_ASSIGN_OR_RETURN(const Level level, Enter(document, source));
    const RuleEntry& entry = path_[depth];
    HEADGATE_ASSIGN_OR_RETURN(const std::optional<size_t> found, Find(lines_, level, entry));
    if (!found) {
      return absl::NotFoundError(
          fmt::format("the document has no rule {} at level {}", Show(entry), depth + 1));
    }
    const DocumentNode& item_document = *level.list->children[*found];
    const SourceNode& item = *level.source_list->children[*found];
    SourceNode& list = Make(NodeKind::kSequence);
    list.children = level.source_list->children;
    if (depth + 1 < path_.size()) {
      HEADGATE_ASSIGN_OR_RETURN(list.children[*found], RemoveFrom(item_document, item, depth + 1));
    } else if (DescriptorsOf(item_document).empty()) {
      list.children.erase(list.children.begin() + static_cast<ptrdiff_t>(*found));
    } else {
      HEADGATE_RETURN_IF_ERROR(Enter(item_document, item).status());
      SourceNode& rest = Make(NodeKind::kMapping);
      for (size_t i = 0; i < item.pair_count(); ++i) {
        if (!IsOfLimit(item.key(i).target().text)) Add(rest, item.key(i), item.value(i));
      }
      if (rest.pair_count() == item.pair_count())
        return absl::NotFoundError(
            fmt::format("{} has no limit, only rules below it", Show(entry)));
      list.children[*found] = &rest;
    }
    return &WithList(&source, list);
  }

  // Makes a copy of the mapping `source` with this list as its `descriptors`. If `source` is null,
  // the result has only this list.
  const SourceNode& WithList(const SourceNode* source, const SourceNode& list) {
    SourceNode& mapping = Make(NodeKind::kMapping);
    bool has_list = false;
    for (size_t i = 0; source != nullptr && i < source->pair_count(); ++i) {
      const bool is_list = source->key(i).target().text == "descriptors";
      has_list = has_list || is_list;
      Add(mapping, source->key(i), is_list ? list : source->value(i));
    }
    if (!has_list) Add(mapping, Text("descriptors"), list);
    return mapping;
  }

  const SourceNode& NewRule(const RuleEntry& entry, const SourceNode& fields) {
    SourceNode& mapping = Make(NodeKind::kMapping);
    Add(mapping, Text("key"), Text(entry.key));
    if (!entry.value.value_or("").empty()) Add(mapping, Text("value"), Text(*entry.value));
    AddFields(mapping, fields);
    return mapping;
  }

  const SourceNode& ChangedRule(const SourceNode& old, const SourceNode& fields) {
    SourceNode& mapping = Make(NodeKind::kMapping);
    bool has_list = false;
    for (size_t i = 0; i < fields.pair_count(); ++i)
      has_list = has_list || fields.key(i).text == "descriptors";
    for (size_t i = 0; i < old.pair_count(); ++i) {
      const std::string_view field = old.key(i).target().text;
      if (field == "key" || field == "value" || (field == "descriptors" && !has_list))
        Add(mapping, old.key(i), old.value(i));
    }
    AddFields(mapping, fields);
    return mapping;
  }

  static void AddFields(SourceNode& mapping, const SourceNode& fields) {
    for (size_t i = 0; i < fields.pair_count(); ++i) {
      if (fields.key(i).text != "key" && fields.key(i).text != "value")
        Add(mapping, fields.key(i), fields.value(i));
    }
  }

  static void Add(SourceNode& mapping, const SourceNode& key, const SourceNode& value) {
    mapping.children.push_back(&key);
    mapping.children.push_back(&value);
  }

  SourceNode& Make(NodeKind kind) {
    SourceNode& node = made_.Make();
    node.kind = kind;
    return node;
  }

  const SourceNode& Text(std::string_view text) {
    SourceNode& node = Make(NodeKind::kScalar);
    node.tag = Tag::kString;
    node.text = text;
    return node;
  }

  const TextLines& lines_;
  std::span<const RuleEntry> path_;
  const SourceNode* nearest_ = nullptr;
  SourceTree made_;
};

// ---- The new rule.

class RuleFragment {
 public:
  static absl::StatusOr<RuleFragment> Parse(std::string_view text, const RuleEntry& entry) {
    if (text.size() > kRuleBytesMax) {
      return absl::InvalidArgumentError(
          fmt::format("1:1: the rule has {} bytes, more than {}", text.size(), kRuleBytesMax));
    }
    HEADGATE_ASSIGN_OR_RETURN(Trees trees, ParseBoth(text));
    RuleFragment fragment(text, std::move(trees));
    const SourceNode* const root = fragment.trees_.source.root();
    if (root == nullptr)
      return fragment.Wrong(0, "the rule is empty; write {} for a rule without fields");
    HEADGATE_RETURN_IF_ERROR(fragment.Check(*root));
    if (root->kind != NodeKind::kMapping)
      return fragment.Wrong(root->begin,
                            "a rule is a mapping of fields, such as {\"rate_limit\": …}");
    if (const DocumentNode* const list = FieldOf(fragment.document(), "descriptors");
        list != nullptr && list->kind != NodeKind::kSequence && !IsNull(*list)) {
      return absl::InvalidArgumentError(fmt::format("{}:{}: 'descriptors' is a list of rules",
                                                    list->mark.line, list->mark.column));
    }
    HEADGATE_RETURN_IF_ERROR(fragment.CheckName("key", entry.key));
    HEADGATE_RETURN_IF_ERROR(fragment.CheckName("value", entry.value.value_or("")));
    return fragment;
  }

  const SourceNode& source() const { return *trees_.source.root(); }
  const DocumentNode& document() const { return *trees_.document->root(); }

 private:
  RuleFragment(std::string_view text, Trees trees) : text_(text), trees_(std::move(trees)) {}

  absl::Status Wrong(size_t offset, std::string_view message) const {
    size_t line = 1;
    size_t column = 1;
    for (const char c : text_.substr(0, offset)) {
      if (c == '\n') {
        ++line;
        column = 1;
      } else if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) {
        ++column;
      }
    }
    return absl::InvalidArgumentError(fmt::format("{}:{}: {}", line, column, message));
  }

  absl::Status Check(const SourceNode& node) const {
    // YAML reads a longer key as something else.
    constexpr size_t kKeyBytesMax = 1000;
    if (node.is_alias()) return Wrong(node.begin, "write the value itself, not an alias");
    absl::flat_hash_set<std::string_view> keys;
    for (size_t i = 0; node.kind == NodeKind::kMapping && i < node.pair_count(); ++i) {
      const SourceNode& key = node.key(i);
      if (key.kind != NodeKind::kScalar) return Wrong(key.begin, "a key is not a text");
      if (IsMergeKey(key)) return Wrong(key.begin, "write the fields themselves, not a merge (<<)");
      if (!keys.insert(key.text).second)
        return Wrong(key.begin, fmt::format("{} occurs twice", Quote(key.text)));
      if (FlowText(key, Quotes::kAlways).size() > kKeyBytesMax)
        return Wrong(key.begin, fmt::format("a key is longer than {} bytes", kKeyBytesMax));
    }
    for (const SourceNode* child : node.children) HEADGATE_RETURN_IF_ERROR(Check(*child));
    return absl::OkStatus();
  }

  absl::Status CheckName(std::string_view field, std::string_view expected) const {
    const DocumentNode* const value = FieldOf(document(), field);
    if (value == nullptr || FieldText(document(), field) == expected) return absl::OkStatus();
    return absl::InvalidArgumentError(fmt::format(
        "{}:{}: the rule has {} {}, but its path says {}", value->mark.line, value->mark.column,
        field, Quote(FieldText(document(), field)), Quote(expected)));
  }

  std::string_view text_;
  Trees trees_;
};

// Whether the document with this rule is within the bounds of documents.
absl::Status CheckBounds(const DocumentNode& document, std::span<const RuleEntry> path,
                         const DocumentNode& rule) {
  // Each level above the rule is a mapping and a list.
  if (2 * path.size() + rule.height > kDocumentDepthMax) {
    return absl::InvalidArgumentError(fmt::format(
        "1:1: with this rule the document is nested deeper than {} levels", kDocumentDepthMax));
  }
  constexpr uint64_t kNodesOfParent = 600;  // a parent that is added, with texts of 4096 bytes
  if (document.size + rule.size + path.size() * kNodesOfParent > kDocumentNodesMax) {
    return absl::InvalidArgumentError(
        fmt::format("1:1: with this rule the document has more than {} values", kDocumentNodesMax));
  }
  return absl::OkStatus();
}

// Changes the text so that its tree is the wanted one.
absl::StatusOr<std::string> Rewrite(const TextLines& lines, const Trees& trees,
                                    const WantedTree& tree, const SourceNode& wanted) {
  const WriterStyle style = StyleOf(lines, tree.nearest(), *trees.source.root());
  TextEdits edits;
  HEADGATE_RETURN_IF_ERROR(
      NodeEdit(lines, style, edits).ChangeMapping(*trees.source.root(), wanted));
  return std::move(edits).Apply(lines.text());
}

absl::StatusOr<std::string> Edit(std::string_view document, std::span<const RuleEntry> path,
                                 const RuleFragment* rule) {
  // Every line ends with a line break while the text is edited.
  const bool ends = document.empty() || document.ends_with('\n') || document.ends_with('\r');
  const std::string line_break = ends ? "" : std::string(TextLines(document).line_break());
  const std::string text = fmt::format("{}{}", document, line_break);
  const TextLines lines(text);
  HEADGATE_ASSIGN_OR_RETURN(const Trees trees, ParseDocument(text));
  if (rule != nullptr)
    HEADGATE_RETURN_IF_ERROR(CheckBounds(*trees.document->root(), path, rule->document()));
  WantedTree tree(lines, path);
  HEADGATE_ASSIGN_OR_RETURN(
      const SourceNode* const wanted,
      rule == nullptr ? tree.WithoutRule(trees) : tree.WithRule(trees, rule->source()));
  HEADGATE_ASSIGN_OR_RETURN(std::string edited, Rewrite(lines, trees, tree, *wanted));
  if (!line_break.empty() && edited.ends_with(line_break))
    edited.resize(edited.size() - line_break.size());

  const Document::Parsed before = Document::Parse(document);
  const Document::Parsed after = Document::Parse(edited);
  if (before.error || after.error) {
    const Document::Error& error = before.error ? *before.error : *after.error;
    return absl::InternalError(fmt::format("the edited document cannot be read: {}:{}: {}",
                                           error.mark.line, error.mark.column, error.message));
  }
  if (after.document->root() == nullptr) return absl::InternalError("the edited document is empty");
  HEADGATE_RETURN_IF_ERROR(CheckEdit(*before.document->root(), *after.document->root(), path,
                                     rule == nullptr ? nullptr : &rule->document()));
  return edited;
}

// Appends the lines from `begin` to `end`, each without up to `indent` spaces at its front.
void AppendLines(const TextLines& lines, size_t begin, size_t end, size_t indent,
                 std::string& out) {
  while (begin < end) {
    const size_t next = std::min(lines.Next(begin), end);
    const std::string_view line =
        lines.text().substr(begin, std::min(lines.End(begin), end) - begin);
    const size_t spaces = std::min(line.find_first_not_of(' '), line.size());
    out += line.substr(std::min(spaces, indent));
    out += '\n';
    begin = next;
  }
}

}  // namespace

absl::StatusOr<std::string> RuleText(std::string_view document, std::span<const RuleEntry> path) {
  HEADGATE_RETURN_IF_ERROR(CheckPath(path));
  const TextLines lines(document);
  HEADGATE_ASSIGN_OR_RETURN(const Trees trees, ParseDocument(document));
  HEADGATE_ASSIGN_OR_RETURN(const FoundRule found, FindRule(lines, trees, path));
  const SourceNode& list = found.parent.source_list->target();
  const SourceNode& item = list.children[found.item]->target();
  std::string out;
  if (list.form != NodeForm::kBlock || item.form != NodeForm::kBlock ||
      list.children[found.item]->is_alias()) {
    const size_t line = lines.Begin(item.open);
    AppendLines(lines, item.open, item.end, document.find_first_not_of(' ', line) - line, out);
    return out;
  }
  HEADGATE_ASSIGN_OR_RETURN(const size_t dash, DashOf(lines, list, found.item));
  const size_t floor = found.item == 0 ? 0 : lines.Next(list.children[found.item - 1]->end);
  const size_t indent = lines.Column(item.open);
  AppendLines(lines, lines.CommentsAbove(dash, floor), lines.Begin(dash), indent, out);
  // A dash on a line of its own, and comments behind it.
  if (lines.Begin(dash) != lines.Begin(item.open) && lines.Skip(lines.End(dash)) == item.open) {
    const size_t comment = document.find_first_not_of(' ', dash + 1);
    if (document[comment] == '#') AppendLines(lines, comment, lines.Next(dash), 0, out);
    AppendLines(lines, lines.Next(dash), lines.Begin(item.open), indent, out);
  }
  AppendLines(lines, item.open, LineBehind(lines, item, lines.Column(dash)), indent, out);
  return out;
}

absl::StatusOr<std::string> PutRule(std::string_view document, std::span<const RuleEntry> path,
                                    std::string_view rule) {
  HEADGATE_RETURN_IF_ERROR(CheckPath(path));
  HEADGATE_ASSIGN_OR_RETURN(const RuleFragment fragment, RuleFragment::Parse(rule, path.back()));
  return Edit(document, path, &fragment);
}

absl::StatusOr<std::string> RemoveRule(std::string_view document, std::span<const RuleEntry> path) {
  HEADGATE_RETURN_IF_ERROR(CheckPath(path));
  return Edit(document, path, nullptr);
}

}  // namespace headgate::rule::edit
