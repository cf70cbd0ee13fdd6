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

bool IsPlainTarget(std::string_view target) {
  return std::all_of(target.begin(), target.end(),
                     [](char c) { return c > ' ' && c < '\x7f' && c != '#'; });
}

}  // namespace headgate::wire
