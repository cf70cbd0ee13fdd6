#include "headgate/watch/open_sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "headgate/base/text.h"
#include "headgate/watch/file/file_source.h"

namespace headgate::watch {
namespace {

using Sources = std::vector<std::unique_ptr<rule::Source>>;

// "zk" for "zk://host/path"; empty if the place is a path.
std::string_view SchemeOf(std::string_view place) {
  const size_t end = place.find("://");
  if (end == std::string_view::npos || end == 0) return {};
  const std::string_view scheme = place.substr(0, end);
  const bool is_name = std::all_of(scheme.begin(), scheme.end(), [](char c) {
    return base::IsLower(c) || base::IsDigit(c) || c == '+' || c == '-';
  });
  return is_name ? scheme : std::string_view{};
}

}  // namespace

absl::StatusOr<Sources> OpenSources(std::span<const std::string> places, net::EventLoop& loop) {
  Sources sources;
  std::vector<std::string> paths;
  for (const std::string& place : places) {
    const std::string_view scheme = SchemeOf(place);
    if (scheme.empty()) {
      paths.push_back(place);
      continue;
    }
    return absl::InvalidArgumentError(
        fmt::format("rules cannot be read from {}://; name a file or a directory", scheme));
  }
  if (!paths.empty())
    sources.insert(sources.begin(), std::make_unique<file::FileSource>(std::move(paths), loop));
  return sources;
}

}  // namespace headgate::watch
