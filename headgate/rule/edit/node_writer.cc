#include "headgate/rule/edit/node_writer.h"

#include <fmt/format.h>

#include "headgate/base/text.h"
#include "headgate/base/utf8.h"
#include "headgate/rule/read/scalar.h"

namespace headgate::rule::edit {

using read::NodeKind;
using read::Resolve;
using read::ScalarType;
using read::Tag;

namespace {

// The code point at the front of `text`, which has `bytes` bytes.
uint32_t CodePoint(std::string_view text, size_t bytes) {
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(text[i])); };
  if (bytes == 1) return byte(0);
  uint32_t point = byte(0) & (0xFFu >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) point = point << 6 | (byte(i) & 0x3F);
  return point;
}

// Whether the code point may appear unescaped: YAML accepts it, and it is visible and no line
// break.
bool IsPrintable(uint32_t point) {
  if (point < 0x20 || point == 0x7F) return false;
  if (point >= 0x80 && point < 0xA0) return false;
  return point != 0x2028 && point != 0x2029 && point != 0xFEFF && point != 0xFFFE &&
         point != 0xFFFF;
}

std::string DoubleQuoted(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const base::Utf8Prefix front = base::FirstUtf8(text);
    const uint32_t point = CodePoint(text, front.well_formed ? front.bytes : 1);
    if (point == '"' || point == '\\') {
      out += '\\';
      out += text[0];
    } else if (point == '\n') {
      out += "\\n";
    } else if (point == '\t') {
      out += "\\t";
    } else if (IsPrintable(point)) {
      out += text.substr(0, front.bytes);
    } else {
      out += fmt::format("\\u{:04x}", point);
    }
    text.remove_prefix(front.bytes);
  }
  return out += '"';
}

// Whether the text needs no quotes, not even in a flow collection. Refuses more than YAML does, so
// that plain text is obvious to readers.
bool IsPlain(std::string_view text) {
  constexpr std::string_view kNotFirst = "-?*&!|>=~%@<";
  constexpr std::string_view kNever = ":#,[]{}'\"`\\";
  if (text.empty() || kNotFirst.find(text[0]) != std::string_view::npos) return false;
  if (text.front() == ' ' || text.back() == ' ') return false;
  while (!text.empty()) {
    const base::Utf8Prefix front = base::FirstUtf8(text);
    if (!front.well_formed || !IsPrintable(CodePoint(text, front.bytes))) return false;
    if (kNever.find(text[0]) != std::string_view::npos) return false;
    text.remove_prefix(front.bytes);
  }
  return true;
}

ScalarType TypeOf(Tag tag, std::string_view text) {
  return Resolve({.kind = NodeKind::kScalar, .tag = tag, .mark = {}, .text = text}).type;
}

std::string ScalarText(const SourceNode& node, Quotes quotes) {
  switch (node.tag) {
    case Tag::kNull:
      return "!!null " + DoubleQuoted(node.text);
    case Tag::kBool:
      return "!!bool " + DoubleQuoted(node.text);
    case Tag::kInt:
      return "!!int " + DoubleQuoted(node.text);
    case Tag::kFloat:
      return "!!float " + DoubleQuoted(node.text);
    default:
      break;
  }
  if (TypeOf(node.tag, node.text) != ScalarType::kString)
    return node.text.empty() ? "null" : node.text;
  if (quotes == Quotes::kIfNeeded && IsPlain(node.text) &&
      TypeOf(Tag::kNone, node.text) == ScalarType::kString)
    return node.text;
  return DoubleQuoted(node.text);
}

void AppendFlow(const SourceNode& written, Quotes quotes, std::string& out) {
  const SourceNode& node = written.target();
  if (node.kind == NodeKind::kScalar) {
    out += ScalarText(node, quotes);
    return;
  }
  const bool is_map = node.kind == NodeKind::kMapping;
  out += is_map ? '{' : '[';
  for (size_t i = 0; i < node.children.size(); ++i) {
    if (i > 0) out += is_map && i % 2 == 1 ? ": " : ", ";
    AppendFlow(*node.children[i], quotes, out);
  }
  out += is_map ? '}' : ']';
}

bool IsLimit(const SourceNode& key) { return key.text == "rate_limit"; }

bool IsDescriptor(const SourceNode& mapping) {
  for (size_t i = 0; i < mapping.pair_count(); ++i) {
    if (mapping.key(i).text == "key") return true;
  }
  return false;
}

// The parts of a style that have been found.
struct Found {
  WriterStyle style;
  bool keys = false;
  bool dashes = false;
  bool item = false;
  bool limits = false;
  bool all() const { return keys && dashes && item && limits; }
};

class StyleReader {
 public:
  StyleReader(const TextLines& lines, Found& found) : lines_(lines), found_(found) {}

  void Read(const SourceNode& node) {
    if (found_.all() || node.is_alias()) return;
    if (node.kind == NodeKind::kMapping) {
      for (size_t i = 0; i < node.pair_count(); ++i) ReadPair(node.key(i), node.value(i));
    } else if (node.kind == NodeKind::kSequence) {
      if (node.form == NodeForm::kBlock) ReadItems(node);
      // The last item is tried first, because it is nearest to the added text.
      for (size_t i = node.children.size(); i > 0; --i) Read(*node.children[i - 1]);
    }
  }

 private:
  size_t Column(size_t offset) const { return lines_.Column(offset); }

  void ReadPair(const SourceNode& key, const SourceNode& value) {
    const size_t column = Column(key.begin);
    if (!value.is_alias() && value.form == NodeForm::kBlock && value.open > 0 &&
        Column(value.open) >= column) {
      const size_t below = Column(value.open) - column;
      if (value.kind == NodeKind::kMapping && !found_.keys && below > 0) {
        found_.style.keys = below;
        found_.keys = true;
      } else if (value.kind == NodeKind::kSequence && !found_.dashes) {
        found_.style.dashes = below;
        found_.dashes = true;
      }
    }
    if (IsLimit(key) && value.kind == NodeKind::kMapping && !found_.limits) {
      found_.style.flow_limits = value.form == NodeForm::kFlow && !WritesJson(value);
      found_.limits = true;
    }
    Read(value);
  }

  void ReadItems(const SourceNode& sequence) {
    if (sequence.children.empty() || found_.item) return;
    const SourceNode& first = *sequence.children[0];
    if (first.form != NodeForm::kBlock || Column(first.open) <= Column(sequence.open)) return;
    found_.style.item = Column(first.open) - Column(sequence.open);
    found_.item = true;
  }

  const TextLines& lines_;
  Found& found_;
};

}  // namespace

WriterStyle StyleOf(const TextLines& lines, const SourceNode* from, const SourceNode& whole) {
  Found found;
  found.style.line_break = lines.line_break();
  if (from != nullptr) StyleReader(lines, found).Read(*from);
  StyleReader(lines, found).Read(whole);
  return found.style;
}

bool WritesJson(const SourceNode& mapping) {
  return mapping.kind == NodeKind::kMapping && !mapping.children.empty() &&
         mapping.children[0]->form == NodeForm::kDoubleQuoted;
}

std::string FlowText(const SourceNode& node, Quotes quotes) {
  std::string out;
  AppendFlow(node, quotes, out);
  return out;
}

std::string FlowPair(const SourceNode& key, const SourceNode& value, Quotes quotes) {
  std::string out = FlowText(key, quotes) + ": ";
  AppendFlow(value, quotes, out);
  return out;
}

bool IsWrittenAsBlock(const SourceNode& key, const SourceNode& value, const WriterStyle& style) {
  const SourceNode& node = value.target();
  if (node.kind == NodeKind::kScalar || node.children.empty()) return false;
  return !(style.flow_limits && IsLimit(key) && node.kind == NodeKind::kMapping);
}

size_t ColumnBelow(const SourceNode& value, size_t key_column, const WriterStyle& style) {
  return key_column + (value.kind == NodeKind::kSequence ? style.dashes : style.keys);
}

std::string BlockPair(const SourceNode& key, const SourceNode& value, size_t column,
                      const WriterStyle& style) {
  std::string out(column, ' ');
  out += FlowText(key, Quotes::kIfNeeded) + ":";
  if (!IsWrittenAsBlock(key, value, style))
    return out + " " + FlowText(value, Quotes::kIfNeeded) + style.line_break;
  return out + style.line_break +
         BlockLines(value.target(), ColumnBelow(value, column, style), style);
}

std::string BlockItem(const SourceNode& item, size_t column, const WriterStyle& style) {
  const SourceNode& node = item.target();
  std::string out(column, ' ');
  out += '-';
  out.append(style.item - 1, ' ');
  const bool is_block = node.kind == NodeKind::kMapping && !node.children.empty() &&
                        (!style.flow_limits || IsDescriptor(node));
  if (!is_block) return out + FlowText(node, Quotes::kIfNeeded) + style.line_break;
  return out + BlockLines(node, column + style.item, style).substr(column + style.item);
}

std::string BlockLines(const SourceNode& collection, size_t column, const WriterStyle& style) {
  std::string out;
  if (collection.kind == NodeKind::kMapping) {
    for (size_t i = 0; i < collection.pair_count(); ++i)
      out += BlockPair(collection.key(i), collection.value(i), column, style);
  } else {
    for (const SourceNode* item : collection.children) out += BlockItem(*item, column, style);
  }
  return out;
}

}  // namespace headgate::rule::edit
