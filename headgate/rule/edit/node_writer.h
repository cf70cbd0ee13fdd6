// Writes nodes as YAML in the style of the text around them.
#pragma once

#include <string>
#include <string_view>

#include "headgate/rule/edit/source_tree.h"
#include "headgate/rule/edit/text_edits.h"

namespace headgate::rule::edit {

struct WriterStyle {
  std::string line_break = "\n";
  // Columns from a key to the keys below it, from a key to the dashes below it, and from a dash to
  // its item.
  size_t keys = 2;
  size_t dashes = 2;
  size_t item = 2;
  bool flow_limits = false;  // `rate_limit` and the items of `rate_limits` as {…}
};

enum class Quotes : uint8_t {
  kIfNeeded,
  kAlways,  // as in JSON: double quotes around keys and texts
};

// The style of the nodes in `from`. Parts of the style that they do not show come from the nodes in
// `whole`, or are the default.
WriterStyle StyleOf(const TextLines& lines, const SourceNode* from, const SourceNode& whole);

// Whether the mapping writes its first key in double quotes, as JSON does.
bool WritesJson(const SourceNode& mapping);

// On one line: a scalar, {…} or […].
std::string FlowText(const SourceNode& node, Quotes quotes);
// "key: value" on one line.
std::string FlowPair(const SourceNode& key, const SourceNode& value, Quotes quotes);

// Complete lines. `column` is that of the key or dash.
std::string BlockPair(const SourceNode& key, const SourceNode& value, size_t column,
                      const WriterStyle& style);
std::string BlockItem(const SourceNode& item, size_t column, const WriterStyle& style);
// The pairs of a mapping or the items of a sequence.
std::string BlockLines(const SourceNode& collection, size_t column, const WriterStyle& style);

// Whether, in this style, the node is written on lines of its own below its key.
bool IsWrittenAsBlock(const SourceNode& key, const SourceNode& value, const WriterStyle& style);
// The column of such lines.
size_t ColumnBelow(const SourceNode& value, size_t key_column, const WriterStyle& style);

}  // namespace headgate::rule::edit
