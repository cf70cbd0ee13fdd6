// Changes of a text by byte ranges, and its lines as YAML sees them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/status.h"

namespace headgate::rule::edit {

// May begin a text in UTF-8. It is not a part of the first line.
inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

class TextLines {
 public:
  // `text` must outlive this object.
  explicit TextLines(std::string_view text);

  std::string_view text() const { return text_; }
  // The line break that the text uses: that of its first line, or "\n".
  std::string_view line_break() const { return line_break_; }
  // The beginning of the line that contains this byte.
  size_t Begin(size_t offset) const;
  // The end of this line: before its line break, and after it.
  size_t End(size_t offset) const;
  size_t Next(size_t offset) const;
  // The bytes before `offset` on its line.
  size_t Column(size_t offset) const { return offset - Begin(offset); }
  // Whether only spaces are before `offset` on its line.
  bool IsFirst(size_t offset) const;
  // Whether only spaces, tabs and a comment follow `offset` on its line.
  bool IsLast(size_t offset) const;
  // The first byte at or behind `offset` that is not a space, a tab, or part of a line break or
  // comment.
  size_t Skip(size_t offset) const;
  // The beginning of this line, or of the comment lines directly above it in the column of
  // `offset`; not before `floor`.
  size_t CommentsAbove(size_t offset, size_t floor) const;
  // The end of the comment lines that begin at this line and are indented deeper than `column`.
  size_t CommentsBelow(size_t line_begin, size_t column) const;

 private:
  // The column of the comment, if the line that begins here has nothing else; otherwise npos.
  size_t CommentColumn(size_t line_begin) const;

  std::string_view text_;
  std::string line_break_ = "\n";
  std::vector<size_t> begins_;  // of lines
};

// Collects changes of one text, in any order.
class TextEdits {
 public:
  void Replace(size_t begin, size_t end, std::string text) {
    edits_.push_back({.begin = begin, .end = end, .text = std::move(text)});
  }
  void Insert(size_t at, std::string text) { Replace(at, at, std::move(text)); }
  void Delete(size_t begin, size_t end) { Replace(begin, end, {}); }

  // Several insertions at one place keep their order, and precede a deletion that begins there.
  // Internal if two changes overlap.
  absl::StatusOr<std::string> Apply(std::string_view text) &&;

 private:
  struct Edit {
    size_t begin;
    size_t end;
    std::string text;
  };
  std::vector<Edit> edits_;
};

}  // namespace headgate::rule::edit
