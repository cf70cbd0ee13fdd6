#include "headgate/wire/request_path.h"

#include <algorithm>

#include "headgate/base/text.h"
#include "headgate/wire/percent.h"

namespace headgate::wire {
namespace {

// Decodes one character at the start of `rest` and removes it. Returns '\0' if it is refused.
char TakeCharacter(std::string_view& rest) {
  char c = rest.front();
  if (c == '%') {
    const int byte = PercentByte(rest);
    if (byte < 0) return '\0';
    c = static_cast<char>(byte);
    if (c == '/' || c == '\\' || base::IsControl(c)) return '\0';
    rest.remove_prefix(3);
    return c;
  }
  rest.remove_prefix(1);
  return c == '\\' || c == '#' || base::IsControl(c) ? '\0' : c;
}

// 1 or 2 for a segment that is "." or ".." once it is decoded; otherwise 0.
size_t DotsOf(std::string_view segment) {
  size_t dots = 0;
  while (!segment.empty() && dots < 3) {
    const bool escaped = PercentByte(segment) == '.';
    if (!escaped && segment.front() != '.') return 0;
    segment.remove_prefix(escaped ? 3 : 1);
    ++dots;
  }
  return segment.empty() && dots < 3 ? dots : 0;
}

}  // namespace

bool NormalizePath(std::string_view path, std::string& out) {
  if (!path.starts_with('/')) return false;
  const size_t begin = out.size();
  out.push_back('/');
  path.remove_prefix(1);
  bool slashes_merged = false;  // before the present segment
  while (true) {
    // `out` ends with '/'; append one segment.
    const size_t segment = out.size();
    while (!path.empty() && path.front() != '/') {
      const char c = TakeCharacter(path);
      if (c == '\0') return false;
      out.push_back(c);
    }
    const std::string_view text = std::string_view(out).substr(segment);
    const bool ends = path.empty();
    if (text == "..") {
      if (slashes_merged || segment - 1 == begin) return false;
      out.resize(out.rfind('/', segment - 2) + 1);
    } else if (text == ".") {
      out.resize(segment);
    } else if (!text.empty() && !ends) {
      out.push_back('/');
    }
    if (ends) return true;
    slashes_merged = text.empty();
    path.remove_prefix(1);
  }
}

void AppendMergedPath(std::string_view path, std::string& out) {
  const size_t begin = out.size();
  out.push_back('/');
  for (bool ends = false; !ends;) {
    path.remove_prefix(1);  // the slash in front of the segment
    const std::string_view segment = path.substr(0, path.find('/'));
    path.remove_prefix(segment.size());
    ends = path.empty();
    const size_t dots = DotsOf(segment);
    if (dots == 1) continue;
    if (dots == 2) {
      // To the slash in front of the segment before, if there is one.
      if (out.size() - begin > 1) out.resize(out.rfind('/', out.size() - 2) + 1);
      continue;
    }
    out.append(segment);
    if (!segment.empty() && !ends) out.push_back('/');
  }
}

bool IsPlainTarget(std::string_view target) {
  return std::all_of(target.begin(), target.end(),
                     [](char c) { return c > ' ' && c < '\x7f' && c != '#'; });
}

}  // namespace headgate::wire
