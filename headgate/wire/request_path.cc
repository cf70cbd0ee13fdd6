#include "headgate/wire/request_path.h"

#include <algorithm>
#include <array>

#include "headgate/base/percent.h"
#include "headgate/base/text.h"
#include "headgate/base/utf8.h"
#include "headgate/wire/readings.h"

namespace headgate::wire {
namespace {

constexpr char kParameter = ';';

constexpr std::string_view kWhyParameter =
    "some servers begin a parameter at ';' in the path (path_parameters says what yours do)";

// Decodes one character at the start of `rest` into `c`, and removes it. False if it is refused.
bool TakeCharacter(std::string_view& rest, PathParameters parameters, char& c, Why* why) {
  c = rest.front();
  if (c == '%') {
    const int byte = base::PercentByte(rest);
    if (byte < 0) return Refuse(why, "an escape in the path is broken");
    c = static_cast<char>(byte);
    if (Has(CharactersOf(Use::kRefusedInPathEscaped), c)) {
      return Refuse(why,
                    "an escape in the path stands for '/', '\\' or a control character, which only "
                    "some servers decode");
    }
    if (c == kParameter && parameters != PathParameters::kKeep) return Refuse(why, kWhyParameter);
    rest.remove_prefix(3);
    return true;
  }
  rest.remove_prefix(1);
  if (!Has(CharactersOf(Use::kRefusedInPath), c)) return true;
  return Refuse(why, "the path has a '\\', '#' or control character");
}

// 1 or 2 for a segment that is "." or ".." once it is decoded; otherwise 0.
size_t DotsOf(std::string_view segment) {
  size_t dots = 0;
  while (!segment.empty() && dots < 3) {
    const bool escaped = base::PercentByte(segment) == '.';
    if (!escaped && segment.front() != '.') return 0;
    segment.remove_prefix(escaped ? 3 : 1);
    ++dots;
  }
  return segment.empty() && dots < 3 ? dots : 0;
}

// Whether ASP.NET removes the segment, because it has the id of a session: "(S(abc))".
bool IsSession(std::string_view segment) {
  return segment.size() > 3 && segment[0] == '(' && base::IsLetter(segment[1]) && segment[2] == '(';
}

// Removes the segment at the start of `path` and appends it, decoded. False if it is refused.
bool AppendSegment(std::string_view& path, PathParameters parameters, std::string& out, Why* why) {
  const size_t begin = out.size();
  size_t end = std::string::npos;  // of the part in front of a parameter
  while (!path.empty() && path.front() != '/') {
    if (path.front() == kParameter && parameters == PathParameters::kRefuse)
      return Refuse(why, kWhyParameter);
    if (path.front() == kParameter && parameters == PathParameters::kStrip)
      end = std::min(end, out.size());
    char c = '\0';
    if (!TakeCharacter(path, parameters, c, why)) return false;
    out.push_back(c);
  }
  const std::string_view text = std::string_view(out).substr(begin);
  if (IsSession(text))
    return Refuse(why, "ASP.NET takes a segment such as (S(x)) for a session, and removes it");
  const std::string_view front = text.substr(0, text.find(kParameter));
  if (front.size() < text.size() && (front == "." || front == ".."))
    return Refuse(why, "some servers resolve a dot segment in front of a ';'");
  if (end == begin) return Refuse(why, "a segment of the path has nothing in front of its ';'");
  out.resize(std::min(end, out.size()));
  return true;
}

}  // namespace

bool NormalizePath(std::string_view path, std::string& out, PathOptions options, Why* why) {
  if (!path.starts_with('/')) return Refuse(why, "the path does not begin with '/'");
  const size_t begin = out.size();
  out.push_back('/');
  path.remove_prefix(1);
  bool slashes_merged = false;
  // The number of segments behind the last merged slashes, which `..` may remove.
  size_t removable = 0;
  while (true) {
    // `out` ends with '/'; append one segment.
    const size_t segment = out.size();
    if (!AppendSegment(path, options.parameters, out, why)) return false;
    const std::string_view text = std::string_view(out).substr(segment);
    const bool ends = path.empty();
    const bool at_root = segment - 1 == begin;
    if (text == "..") {
      if (at_root || (slashes_merged && removable == 0))
        return Refuse(why, "'..' in the path leads above the root, or removes an empty segment");
      removable = removable > 0 ? removable - 1 : 0;
    } else if (text.empty() && !ends) {
      if (at_root) return Refuse(why, "some servers read a host behind '//' at the beginning");
      slashes_merged = true;
      removable = 0;
    } else if (text != ".") {
      ++removable;
    }
    if (options.resolves_dots && text == "..") {
      out.resize(out.rfind('/', segment - 2) + 1);
    } else if (options.resolves_dots && text == ".") {
      out.resize(segment);
    } else if (!text.empty() && !ends) {
      out.push_back('/');
    }
    if (ends) {
      return base::IsUtf8(std::string_view(out).substr(begin)) ||
             Refuse(why, "escapes in the path stand for bytes that are not UTF-8");
    }
    path.remove_prefix(1);
  }
}

bool HasDotSegments(std::string_view path) {
  while (!path.empty()) {
    path.remove_prefix(1);  // the slash in front of the segment
    const std::string_view segment = path.substr(0, path.find('/'));
    if (DotsOf(segment) != 0) return true;
    path.remove_prefix(segment.size());
  }
  return false;
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
      // Cut back to the slash in front of the previous segment, if there is one.
      if (out.size() - begin > 1) out.resize(out.rfind('/', out.size() - 2) + 1);
      continue;
    }
    out.append(segment);
    if (!segment.empty() && !ends) out.push_back('/');
  }
}

bool IsScript(std::string_view path) {
  constexpr std::array<std::string_view, 10> kSuffixes = {
      ".php", ".php5", ".phtml", ".cgi", ".pl", ".py", ".asp", ".aspx", ".jsp", ".cfm"};
  return std::any_of(kSuffixes.begin(), kSuffixes.end(),
                     [&](std::string_view suffix) { return path.ends_with(suffix); });
}

bool HasScript(std::string_view path) {
  return FitsBehindScript(path, [](std::string_view) { return true; });
}

bool FitsBehindScript(std::string_view path, absl::FunctionRef<bool(std::string_view)> fits) {
  size_t begin = 0;  // of the segment, with the slash in front of it
  for (size_t end = path.find('/', 1); end != path.npos; end = path.find('/', end + 1)) {
    if (IsScript(path.substr(0, end))) {
      if (fits(path.substr(0, end))) return true;
      const std::string_view in_front = path.substr(0, begin);
      const std::string_view behind = path.substr(end);
      if (fits(std::string(in_front).append(behind))) return true;
    }
    begin = end;
  }
  return false;
}

bool IsPlainTarget(std::string_view target) {
  return std::all_of(target.begin(), target.end(),
                     [](char c) { return c > ' ' && c < '\x7f' && c != '#'; });
}

}  // namespace headgate::wire
