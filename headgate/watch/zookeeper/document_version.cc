#include "headgate/watch/zookeeper/document_version.h"

#include <fmt/format.h>

#include <charconv>

namespace headgate::watch::zookeeper {

std::string VersionText(int64_t zxid, int32_t version) {
  return fmt::format("{}.{}", zxid, version);
}

std::optional<DocumentVersion> ParseVersion(std::string_view text) {
  DocumentVersion parsed;
  const char* const end = text.data() + text.size();
  const auto [dot, error] = std::from_chars(text.data(), end, parsed.zxid);
  if (error != std::errc() || dot == end || *dot != '.') return std::nullopt;
  const auto [rest, version_error] = std::from_chars(dot + 1, end, parsed.version);
  if (version_error != std::errc() || rest != end) return std::nullopt;
  return parsed;
}

}  // namespace headgate::watch::zookeeper
