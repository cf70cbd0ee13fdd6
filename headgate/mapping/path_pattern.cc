#include "headgate/mapping/path_pattern.h"

#include <algorithm>
#include <utility>

#include "headgate/mapping/written_path.h"

namespace headgate::mapping {
namespace {

// Removes the first segment of "/a/b" and returns it.
std::string_view TakeSegment(std::string_view& path) {
  path.remove_prefix(1);
  const std::string_view segment = path.substr(0, path.find('/'));
  path.remove_prefix(segment.size());
  return segment;
}

}  // namespace

std::optional<PathPattern> PathPattern::Parse(std::string_view text) {
  if (text == "*") return PathPattern("/*");
  // `?` and `#` more probably begin a query or a fragment than stand for their escapes.
  if (text.find_first_of("?#") != text.npos) return std::nullopt;
  std::optional<std::string> path = ReadPath(text);
  if (!path) return std::nullopt;
  for (std::string_view rest = *path; !rest.empty();) {
    const std::string_view segment = TakeSegment(rest);
    if (segment != "*" && segment.find('*') != segment.npos) return std::nullopt;
  }
  return PathPattern(*std::move(path));
}

bool PathPattern::Matches(std::string_view path) const {
  if (!path.starts_with('/')) return text_ == "/*";  // "*", of OPTIONS
  std::string_view pattern = text_;
  while (!pattern.empty()) {
    if (path.empty()) return false;
    const std::string_view wanted = TakeSegment(pattern);
    if (wanted == "*" && pattern.empty()) return true;
    const std::string_view segment = TakeSegment(path);
    if (wanted == "*" ? segment.empty() : segment != wanted) return false;
  }
  return path.empty();
}

}  // namespace headgate::mapping
