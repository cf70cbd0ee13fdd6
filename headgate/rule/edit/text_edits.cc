#include "headgate/rule/edit/text_edits.h"

#include <algorithm>
#include <tuple>

namespace headgate::rule::edit {
namespace {

// The size of the line break at `offset`, or 0. YAML 1.1 has breaks beyond ASCII: U+0085, U+2028
// and U+2029.
size_t BreakSize(std::string_view text, size_t offset) {
  const std::string_view rest = text.substr(offset);
  if (rest.starts_with("\r\n")) return 2;
  if (rest.starts_with('\r') || rest.starts_with('\n')) return 1;
  if (rest.starts_with("\xC2\x85")) return 2;
  if (rest.starts_with("\xE2\x80\xA8") || rest.starts_with("\xE2\x80\xA9")) return 3;
  return 0;
}

}  // namespace

TextLines::TextLines(std::string_view text) : text_(text) {
  begins_.push_back(text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0);
  for (size_t i = 0; i < text.size();) {
    const size_t size = BreakSize(text, i);
    if (size > 0) {
      if (begins_.size() == 1) line_break_ = text.substr(i, size);
      begins_.push_back(i + size);
    }
    i += std::max<size_t>(size, 1);
  }
}

size_t TextLines::Begin(size_t offset) const {
  const auto after = std::upper_bound(begins_.begin(), begins_.end(), offset);
  return after == begins_.begin() ? begins_.front() : *(after - 1);
}

size_t TextLines::Next(size_t offset) const {
  const auto after = std::upper_bound(begins_.begin(), begins_.end(), offset);
  return after == begins_.end() ? text_.size() : *after;
}

size_t TextLines::End(size_t offset) const {
  const size_t next = Next(offset);
  for (const size_t size : {3u, 2u, 1u}) {
    if (next >= offset + size && BreakSize(text_, next - size) == size) return next - size;
  }
  return next;
}

bool TextLines::IsFirst(size_t offset) const {
  const size_t begin = Begin(offset);
  return text_.substr(begin, offset - begin).find_first_not_of(' ') == std::string_view::npos;
}

bool TextLines::IsLast(size_t offset) const {
  const std::string_view rest = text_.substr(offset, End(offset) - offset);
  const size_t first = rest.find_first_not_of(" \t");
  return first == std::string_view::npos || rest[first] == '#';
}

size_t TextLines::Skip(size_t offset) const {
  while (offset < text_.size()) {
    if (text_[offset] == ' ' || text_[offset] == '\t') {
      ++offset;
    } else if (const size_t size = BreakSize(text_, offset); size > 0) {
      offset += size;
    } else if (text_[offset] == '#') {
      offset = End(offset);
    } else {
      break;
    }
  }
  return offset;
}

size_t TextLines::CommentsAbove(size_t offset, size_t floor) const {
  const size_t column = Column(offset);
  size_t at = Begin(offset);
  while (at > floor && at > begins_.front()) {
    const size_t above = Begin(at - 1);
    if (above < floor || CommentColumn(above) != column) break;
    at = above;
  }
  return at;
}

size_t TextLines::CommentsBelow(size_t line_begin, size_t column) const {
  while (line_begin < text_.size()) {
    const size_t comment = CommentColumn(line_begin);
    if (comment == std::string_view::npos || comment <= column) break;
    line_begin = Next(line_begin);
  }
  return line_begin;
}

size_t TextLines::CommentColumn(size_t line_begin) const {
  const std::string_view line = text_.substr(line_begin, End(line_begin) - line_begin);
  const size_t first = line.find_first_not_of(" \t");
  return first != std::string_view::npos && line[first] == '#' ? first : std::string_view::npos;
}

absl::StatusOr<std::string> TextEdits::Apply(std::string_view text) && {
  std::stable_sort(edits_.begin(), edits_.end(), [](const Edit& a, const Edit& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  std::string out;
  size_t at = 0;
  for (const Edit& edit : edits_) {
    if (edit.begin < at || edit.end < edit.begin || edit.end > text.size())
      return absl::InternalError("two changes of the text overlap");
    out += text.substr(at, edit.begin - at);
    out += edit.text;
    at = edit.end;
  }
  return out += text.substr(at);
}

}  // namespace headgate::rule::edit
