// load_problems_test.cc tests which documents are refused, and with what message.
#include "headgate/rule/document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

namespace headgate::rule {
namespace document_test {

// Prints a tree: scalars as written (quoted ones in quotes), with line:column.
std::string Show(const DocumentNode& node) {
  const std::string place = fmt::format("@{}:{}", node.mark.line, node.mark.column);
  if (node.kind == NodeKind::kScalar) {
    const std::string_view quote = node.tag == Tag::kString ? "'" : "";
    return fmt::format("{}{}{}{}", quote, node.text, quote, place);
  }
  std::string out = node.kind == NodeKind::kSequence ? "[" : "{";
  for (size_t i = 0; i < node.children.size(); ++i) {
    if (i > 0) out += node.kind == NodeKind::kMapping && i % 2 == 1 ? ": " : ", ";
    out += Show(*node.children[i]);
  }
  return out + (node.kind == NodeKind::kSequence ? "]" : "}") + place;
}

std::string ShowText(std::string_view text) {
  const Document::Parsed parsed = Document::Parse(text);
  if (parsed.error) return parsed.error->message;
  return parsed.document->root() == nullptr ? "(empty)" : Show(*parsed.document->root());
}

TEST(Document, KeepsScalarsAsTheyWereWrittenWithTheirPlaces) {
  EXPECT_EQ(ShowText("a: 010\nb:\n  - yes\n  - 'yes'\n  - \"x\\ty\"\n  - 1_000\n"),
            "{a@1:1: 010@1:4, b@2:1: [yes@3:5, 'yes'@4:5, 'x\ty'@5:5, 1_000@6:5]@3:3}@1:1");
}

TEST(Document, CountsColumnsInCharacters) {
  EXPECT_EQ(ShowText("é: [ü, x]\n"), "{é@1:1: [ü@1:5, x@1:8]@1:4}@1:1");
}

TEST(Document, SharesTheNodesOfAnAnchor) {
  EXPECT_EQ(ShowText("a: &x [1]\nb: *x\n"), "{a@1:1: [1@1:8]@1:4, b@2:1: [1@1:8]@1:4}@1:1");
}

TEST(Document, TakesTheLatestOfAnchorsOfOneName) {
  EXPECT_EQ(ShowText("[&x 1, &x 2, *x]"), "[1@1:2, 2@1:8, 2@1:8]@1:1");
}

TEST(Document, ExpandsMergeKeysInTheirPlaceTheFirstOfAListLast) {
  EXPECT_EQ(ShowText("{a: 1, <<: {b: 2}, c: 3}"),
            "{a@1:2: 1@1:5, b@1:13: 2@1:16, c@1:20: 3@1:23}@1:1");
  EXPECT_EQ(ShowText("{<<: [{a: 1}, {a: 2}]}"), "{a@1:16: 2@1:19, a@1:8: 1@1:11}@1:1");
  EXPECT_EQ(ShowText("{'<<': 1}"), "{'<<'@1:2: 1@1:8}@1:1");
}

TEST(Document, KeepsBothPairsOfADoubledKey) {
  EXPECT_EQ(ShowText("{a: 1, a: 2}"), "{a@1:2: 1@1:5, a@1:8: 2@1:11}@1:1");
}

TEST(Document, ReadsTheFirstDocumentAlone) {
  EXPECT_EQ(ShowText("a\n---\nb\n"), "a@1:1");
  EXPECT_EQ(ShowText("--- a\n...\n["), "a@1:5");
  EXPECT_EQ(ShowText(""), "(empty)");
  EXPECT_EQ(ShowText("# nothing"), "(empty)");
}

TEST(Document, ReadsUtf16AndAByteOrderMark) {
  EXPECT_EQ(ShowText("\xEF\xBB\xBF"
                     "a"),
            "a@1:1");
  EXPECT_EQ(ShowText(std::string_view("\xFF\xFE"
                                      "a\0",
                                      4)),
            "a@1:1");
}

TEST(Document, MeasuresWhatItHoldsWithAliasesExpanded) {
  const Document::Parsed parsed = Document::Parse("a: &x [1, [2]]\nb: [*x, *x]\n");
  ASSERT_FALSE(parsed.error.has_value());
  // x has 4 nodes: itself, 1, [2], 2. The whole has itself, two keys, x, the list, and x twice.
  EXPECT_EQ(parsed.document->root()->size, 1u + 2 + 4 + 1 + 2 * 4);
  EXPECT_EQ(parsed.document->root()->height, 5u);
}

TEST(Document, CountsLongTextsByTheirLength) {
  const Document::Parsed parsed = Document::Parse(std::string(320, 'x'));
  EXPECT_EQ(parsed.document->root()->size, 11u);
}

}  // namespace document_test
}  // namespace headgate::rule
