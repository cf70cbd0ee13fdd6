#include "headgate/client/zookeeper/node_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "headgate/base/percent.h"
#include "headgate/base/text.h"
#include "headgate/base/utf8.h"

namespace headgate::client::zookeeper {
namespace {

bool IsDots(std::string_view name) { return name == "." || name == ".."; }

// The number of a well-formed character of up to three bytes.
uint32_t CodePointOf(std::string_view character) {
  const auto bits = [&](size_t at, unsigned mask) {
    return static_cast<unsigned char>(character[at]) & mask;
  };
  if (character.size() == 1) return bits(0, 0x7f);
  if (character.size() == 2) return bits(0, 0x1f) << 6 | bits(1, 0x3f);
  return bits(0, 0x0f) << 12 | bits(1, 0x3f) << 6 | bits(2, 0x3f);
}

// The server refuses control characters, surrogates of UTF-16 (so all characters with four bytes of
// UTF-8), private characters, and the last ones before U+10000.
bool IsOfTakenCharacters(std::string_view path) {
  while (!path.empty()) {
    const base::Utf8Prefix first = base::FirstUtf8(path);
    if (!first.well_formed || first.bytes > 3) return false;
    const uint32_t point = CodePointOf(path.substr(0, first.bytes));
    if (point < 0x20 || (point >= 0x7f && point < 0xa0)) return false;
    if ((point >= 0xd800 && point < 0xf900) || point >= 0xfff0) return false;
    path.remove_prefix(first.bytes);
  }
  return true;
}

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
  if (!IsOfTakenCharacters(path)) return false;
  for (size_t at = 0; at < path.size();) {
    const size_t end = std::min(path.find('/', at + 1), path.size());
    const std::string_view name = path.substr(at + 1, end - at - 1);
    if (name.empty() || IsDots(name)) return false;
    at = end;
  }
  return true;
}

}  // namespace headgate::client::zookeeper
