#include "headgate/rule/read/document.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <yaml.h>

#include "absl/container/flat_hash_map.h"
#include "headgate/rule/read/libyaml_event.h"

namespace headgate::rule::read {
namespace {

Mark MarkOf(const yaml_mark_t& mark) {
  return {.line = static_cast<uint32_t>(mark.line) + 1,
          .column = static_cast<uint32_t>(mark.column) + 1};
}

}  // namespace

class DocumentParser {
 public:
  explicit DocumentParser(std::string_view text)
      : text_(text), document_(std::make_unique<Document>()) {
    // This fails only if memory runs out, which stops the process elsewhere too.
    if (yaml_parser_initialize(&parser_) == 0) throw std::bad_alloc();
    yaml_parser_set_input_string(
        &parser_, static_cast<const unsigned char*>(static_cast<const void*>(text.data())),
        text.size());
  }
  ~DocumentParser() { yaml_parser_delete(&parser_); }
  DocumentParser(const DocumentParser&) = delete;
  DocumentParser& operator=(const DocumentParser&) = delete;

  Document::Parsed Run() {
    while (!done_ && !error_) {
      Event event;
      if (yaml_parser_parse(&parser_, event.get()) == 0) {
        FailSyntax();
      } else {
        Take(*event);
      }
    }
    if (error_) return {.document = nullptr, .error = std::move(error_)};
    return {.document = std::move(document_), .error = std::nullopt};
  }

 private:
  static constexpr const char* kOneDocument =
      "move the text from here on into a file of its own, or remove the line `---`";
  static constexpr std::string_view kHint =
      "the file is not valid YAML; check this line and the lines above it";

  // A sequence or mapping whose end has not been read yet.
  struct Open {
    DocumentNode* node;
    std::string anchor;
    size_t children_begin;  // index into children_
  };

  void Take(const yaml_event_t& event) {
    switch (event.type) {
      case YAML_SCALAR_EVENT:
        return TakeScalar(event);
      case YAML_ALIAS_EVENT:
        return TakeAlias(event);
      case YAML_SEQUENCE_START_EVENT:
        return Begin(NodeKind::kSequence, event, event.data.sequence_start.anchor);
      case YAML_MAPPING_START_EVENT:
        return Begin(NodeKind::kMapping, event, event.data.mapping_start.anchor);
      case YAML_SEQUENCE_END_EVENT:
      case YAML_MAPPING_END_EVENT:
        return End();
      case YAML_DOCUMENT_START_EVENT:
        if (++documents_ > 1) {
          Fail(MarkOf(event.start_mark), "yaml: more than one document", kOneDocument);
        }
        return;
      case YAML_STREAM_END_EVENT:
        done_ = true;
        return;
      default:
        return;
    }
  }

  void TakeScalar(const yaml_event_t& event) {
    DocumentNode* node = Make(NodeKind::kScalar, event);
    const std::string_view text = TextOf(event.data.scalar.value, event.data.scalar.length);
    if (!text.empty()) {
      auto* copy = static_cast<char*>(document_->memory_.allocate(text.size(), 1));
      text.copy(copy, text.size());
      node->text = {copy, text.size()};
    }
    node->tag = TagOf(event);
    node->size = 1 + static_cast<uint32_t>(text.size() / 32);
    if (event.data.scalar.anchor != nullptr) anchors_[TextOf(event.data.scalar.anchor)] = node;
    Add(node);
  }

  void TakeAlias(const yaml_event_t& event) {
    const std::string name = TextOf(event.data.alias.anchor);
    const auto found = anchors_.find(name);
    if (found == anchors_.end()) {
      return Fail(MarkOf(event.start_mark),
                  fmt::format("yaml: unknown anchor '{}' referenced", name),
                  "a text that begins with * needs quotes: \"*\"");
    }
    if (found->second == nullptr) {
      return Fail(MarkOf(event.start_mark),
                  fmt::format("yaml: anchor '{}' value contains itself", name));
    }
    Add(found->second);
  }

  void Begin(NodeKind kind, const yaml_event_t& event, const yaml_char_t* anchor) {
    if (open_.size() >= kDocumentDepthMax) return FailDepth(MarkOf(event.start_mark));
    DocumentNode* node = Make(kind, event);
    Open open{.node = node,
              .anchor = anchor == nullptr ? "" : TextOf(anchor),
              .children_begin = children_.size()};
    if (!open.anchor.empty())
      anchors_[open.anchor] = nullptr;  // an anchor cannot be used before its end
    open_.push_back(std::move(open));
  }

  void End() {
    const Open open = std::move(open_.back());
    open_.pop_back();
    if (open.node->kind == NodeKind::kMapping && !ExpandMerges(open.children_begin)) return;
    const std::span<const DocumentNode* const> own =
        std::span(children_).subspan(open.children_begin);
    uint64_t size = 1;
    uint32_t height = 0;
    for (const DocumentNode* child : own) {
      size += child->size;
      height = std::max(height, child->height);
    }
    if (size > kDocumentNodesMax) return FailSize(open.node->mark);
    if (height + 1 > kDocumentDepthMax) return FailDepth(open.node->mark);
    open.node->size = static_cast<uint32_t>(size);
    open.node->height = height + 1;
    // Count the copies of merge keys at once, not only when the whole document is measured.
    placed_ += own.size();
    if (placed_ > kDocumentNodesMax) return FailSize(open.node->mark);
    if (!own.empty()) {
      void* const memory =
          document_->memory_.allocate(own.size_bytes(), alignof(const DocumentNode*));
      auto* const copy = static_cast<const DocumentNode**>(memory);
      std::copy(own.begin(), own.end(), copy);
      open.node->children = {copy, own.size()};
    }
    children_.resize(open.children_begin);
    if (!open.anchor.empty()) anchors_[open.anchor] = open.node;
    Add(open.node);
  }

  // Replaces each pair `<<: {…}` or `<<: [{…}, …]` by the pairs of its mappings. In a sequence the
  // first mapping must win, so its pairs come last.
  bool ExpandMerges(size_t begin) {
    const auto is_merge = [](const DocumentNode* key) {
      return key->kind == NodeKind::kScalar && key->tag == Tag::kNone && key->text == "<<";
    };
    bool any = false;
    for (size_t i = begin; i < children_.size(); i += 2) any = any || is_merge(children_[i]);
    if (!any) return true;

    std::vector<const DocumentNode*> expanded;
    uint64_t size = 0;
    const auto append = [&](const DocumentNode* from) {
      if (from->kind != NodeKind::kMapping) {
        Fail(from->mark, "yaml: map merge requires map or sequence of maps as the value");
        return;
      }
      size += from->size;
      if (size > kDocumentNodesMax) return FailSize(from->mark);
      expanded.insert(expanded.end(), from->children.begin(), from->children.end());
    };
    for (size_t i = begin; i < children_.size() && !error_; i += 2) {
      const DocumentNode* value = children_[i + 1];
      if (!is_merge(children_[i])) {
        expanded.push_back(children_[i]);
        expanded.push_back(value);
      } else if (value->kind == NodeKind::kSequence) {
        for (size_t k = value->children.size(); k > 0 && !error_; --k)
          append(value->children[k - 1]);
      } else {
        append(value);
      }
    }
    children_.resize(begin);
    children_.insert(children_.end(), expanded.begin(), expanded.end());
    return !error_;
  }

  DocumentNode* Make(NodeKind kind, const yaml_event_t& event) {
    void* const memory = document_->memory_.allocate(sizeof(DocumentNode), alignof(DocumentNode));
    auto* node = new (memory) DocumentNode;
    node->kind = kind;
    node->mark = MarkOf(event.start_mark);
    if (++made_ > kDocumentNodesMax) FailSize(node->mark);
    return node;
  }

  void Add(const DocumentNode* node) {
    if (open_.empty()) {
      document_->root_ = node;
    } else {
      children_.push_back(node);
      // An alias makes no node, but takes a slot in children_.
      if (children_.size() > kDocumentNodesMax) FailSize(node->mark);
    }
  }

  void Fail(Mark mark, std::string message, std::string hint = std::string(kHint)) {
    if (error_) return;
    error_ = Document::Error{.mark = mark, .message = std::move(message), .hint = std::move(hint)};
  }

  void FailSize(Mark mark) {
    Fail(mark, fmt::format("yaml: document contains excessive aliasing or more than {} values",
                           kDocumentNodesMax));
  }

  void FailDepth(Mark mark) {
    Fail(mark, fmt::format("yaml: document is nested deeper than {} levels", kDocumentDepthMax));
  }

  void FailSyntax() {
    const std::string problem =
        parser_.problem == nullptr ? "unknown problem parsing YAML content" : parser_.problem;
    if (parser_.error == YAML_READER_ERROR) {
      const bool is_octet = problem.find("octet") != problem.npos;
      return Fail(MarkAt(parser_.problem_offset), fmt::format("yaml: {}", problem),
                  is_octet ? "save the file in the encoding UTF-8" : "remove this character");
    }
    const Mark mark = MarkOf(parser_.problem_mark);
    Fail(mark, fmt::format("yaml: {}", problem), HintFor(problem, mark));
  }

  // The hint for a syntax error: the correct spelling of the probable intention.
  std::string HintFor(std::string_view problem, Mark mark) const {
    const char at = CharAt(mark);
    const char before = mark.column > 1 ? CharAt({mark.line, mark.column - 1}) : '\n';
    if (at == '\t' || IsIndentedWithTab(mark.line) || IsIndentedWithTab(mark.line - 1))
      return "YAML is indented with spaces: replace the tab";
    if (problem.find("cannot start any token") != problem.npos)
      return fmt::format("a text that begins with {} needs quotes: \"{}…\"", at, at);
    if (problem.find("alphabetic or numeric") != problem.npos && (before == '*' || before == '&'))
      return fmt::format("a text that begins with {} needs quotes: \"{}\"", before, before);
    if (problem.find("expected node content") != problem.npos && (at == ':' || before == ':'))
      return "a text that begins with : needs quotes: \"::1\"";
    if (problem.find("<document start>") != problem.npos) return kOneDocument;
    if (problem.find("unexpected ':'") != problem.npos)
      return "write a space and a value behind the colon, {word: value}, or quotes around a text "
             "with a colon";
    if (problem.find("mapping values are not allowed") != problem.npos)
      return "a text with a colon and a space needs quotes; or this line is indented too far";
    return std::string(kHint);
  }

  bool IsIndentedWithTab(uint32_t line) const {
    for (uint32_t column = 1; line > 0; ++column) {
      const char c = CharAt({line, column});
      if (c == '\t') return true;
      if (c != ' ' && c != '-') return false;
    }
    return false;
  }

  // The first byte of the character; '\n' at the end of a line, or of the text.
  char CharAt(Mark mark) const {
    std::string_view rest = text_;
    for (uint32_t line = 1; line < mark.line; ++line) {
      const size_t end = rest.find('\n');
      if (end == rest.npos) return '\n';
      rest.remove_prefix(end + 1);
    }
    uint32_t column = 0;
    for (const char c : rest) {
      if (c == '\n') break;
      if ((static_cast<unsigned char>(c) & 0xC0) != 0x80 && ++column == mark.column) return c;
    }
    return '\n';
  }

  Mark MarkAt(size_t offset) const {
    Mark mark;
    for (const char c : text_.substr(0, offset)) {
      if (c == '\n') {
        ++mark.line;
        mark.column = 1;
      } else if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) {
        ++mark.column;
      }
    }
    return mark;
  }

  const std::string_view text_;
  yaml_parser_t parser_{};
  std::unique_ptr<Document> document_;
  // Null while its node is being read.
  absl::flat_hash_map<std::string, const DocumentNode*> anchors_;
  std::vector<Open> open_;
  std::vector<const DocumentNode*> children_;  // of all open nodes, concatenated
  uint64_t made_ = 0;                          // number of nodes
  uint64_t placed_ = 0;                        // children of finished nodes
  uint32_t documents_ = 0;
  bool done_ = false;
  std::optional<Document::Error> error_;
};

Document::Parsed Document::Parse(std::string_view text) {
  if (text.size() > kDocumentBytesMax) {
    return {.document = nullptr,
            .error = Error{.mark = {},
                           .message = fmt::format("yaml: {} bytes are more than {}", text.size(),
                                                  kDocumentBytesMax),
                           .hint = "split the file"}};
  }
  return DocumentParser(text).Run();
}

}  // namespace headgate::rule::read
