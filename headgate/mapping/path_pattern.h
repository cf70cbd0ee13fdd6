// A pattern for normalized paths:
//
//   /login      this path              /users/*/posts   any one segment in the middle
//   /api/*      every path below /api  *                every path
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace headgate::mapping {

class PathPattern {
 public:
  // Empty if the pattern could never match: it is not written as paths are (written_path.h), has a
  // query, or has a `*` beside other characters of a segment.
  static std::optional<PathPattern> Parse(std::string_view text);

  // The text of another pattern matches only if all paths of that pattern do.
  bool Matches(std::string_view normalized_path) const;
  // The pattern as a normalized path.
  const std::string& text() const { return text_; }

 private:
  explicit PathPattern(std::string text) : text_(std::move(text)) {}

  std::string text_;
};

}  // namespace headgate::mapping
