// load_problems_test.cc tests which documents are refused, and their messages.
#include "headgate/rule/read/document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

namespace headgate::rule::read {
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

// Otherwise the text behind the first document would be ignored.
TEST(Document, RefusesASecondOneAtItsMark) {
  for (const std::string_view text : {"a\n---\nb\n", "a\n---\n", "a\n--- [\n"}) {
    const Document::Parsed parsed = Document::Parse(text);
    ASSERT_TRUE(parsed.error) << text;
    EXPECT_EQ(parsed.error->message, "yaml: more than one document") << text;
    EXPECT_EQ(parsed.error->mark.line, 2u) << text;
    EXPECT_EQ(parsed.error->mark.column, 1u) << text;
  }
  const Document::Parsed behind = Document::Parse("a\n...\n[]");
  ASSERT_TRUE(behind.error);
  EXPECT_EQ(behind.error->mark.line, 3u);
  EXPECT_THAT(behind.error->hint, ::testing::HasSubstr("a file of its own"));
  EXPECT_EQ(ShowText("%YAML 1.1\n--- a\n...\n# the end\n"), "a@2:5");
}

TEST(Document, HintsAtWhatWasMeant) {
  const auto hint = [](std::string_view text) {
    const Document::Parsed parsed = Document::Parse(text);
    return parsed.error ? parsed.error->hint : "no error";
  };
  EXPECT_EQ(hint("[127.0.0.1, ::1]"), "a text that begins with : needs quotes: \"::1\"");
  EXPECT_EQ(hint("path: *"), "a text that begins with * needs quotes: \"*\"");
  EXPECT_EQ(hint("é:\n  path: [*, /a]"), "a text that begins with * needs quotes: \"*\"");
  EXPECT_EQ(hint("host: *.example.com"), "a text that begins with * needs quotes: \"*\"");
  EXPECT_EQ(hint("host: *example"), "a text that begins with * needs quotes: \"*\"");
  for (const std::string_view text :
       {"a:\n\t- b", "mappings:\n-\tpath: /a\n", "mappings:\n- name: a\n\tpath: /a\n"})
    EXPECT_EQ(hint(text), "YAML is indented with spaces: replace the tab");
  EXPECT_EQ(hint("a: @b"), "a text that begins with @ needs quotes: \"@…\"");
  EXPECT_EQ(
      hint("a: {client_address:}"),
      "write a space and a value behind the colon, {word: value}, or quotes around a text with "
      "a colon");
  EXPECT_EQ(hint("a: b: c"),
            "a text with a colon and a space needs quotes; or this line is indented too far");
  EXPECT_EQ(hint("a: ["), "the file is not valid YAML; check this line and the lines above it");
}

TEST(Document, AnEmptyTextHasNone) {
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
}  // namespace headgate::rule::read
