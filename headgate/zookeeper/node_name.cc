#include "headgate/zookeeper/node_name.h"

#include <fmt/format.h>

#include <algorithm>

#include "headgate/base/percent.h"
#include "headgate/base/text.h"

namespace headgate::zookeeper {
namespace {

bool IsDots(std::string_view name) { return name == "." || name == ".."; }

}  // namespace

std::string NodeNameOf(std::string_view text) {
  if (text == ".") return "%2E";
  if (text == "..") return "%2E%2E";
  return base::PercentEncoded(text, "_-~.:@+=,*");
}

std::optional<std::string> TextOfNodeName(std::string_view name) {
  if (name.empty()) return std::nullopt;
  return base::PercentDecoded(name);
}

std::string Below(std::string_view root, std::string_view name) {
  return fmt::format("{}/{}", root == "/" ? "" : root, name);
}

bool IsNodePath(std::string_view path) {
  if (path == "/") return true;
  if (path.empty() || path.front() != '/' || path.back() == '/') return false;
  if (!std::all_of(path.begin(), path.end(), [](char c) { return c > ' ' && c < '\x7f'; }))
    return false;
  for (size_t at = 0; at < path.size();) {
    const size_t end = std::min(path.find('/', at + 1), path.size());
    const std::string_view name = path.substr(at + 1, end - at - 1);
    if (name.empty() || IsDots(name)) return false;
    at = end;
  }
  return true;
}

}  // namespace headgate::zookeeper
