#include "headgate/watch/open_sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "headgate/base/text.h"
#include "headgate/watch/file/file_source.h"
#include "headgate/watch/zookeeper/zookeeper_source.h"

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

absl::StatusOr<headgate::zookeeper::Place> ParseUrl(const std::string& url) {
  const std::string_view scheme = SchemeOf(url);
  if (scheme != "zk") {
    return absl::InvalidArgumentError(fmt::format(
        "rules cannot be read from {}://; name a file, a directory, or zk://HOST:PORT/path",
        scheme));
  }
  const auto place = headgate::zookeeper::ParsePlace(url, headgate::zookeeper::kDefaultPath);
  if (place.ok()) return place;
  return absl::InvalidArgumentError(
      fmt::format("the zk:// URL is not valid: {}", std::string(place.status().message())));
}

}  // namespace

absl::Status CheckPlace(const std::string& place) {
  return SchemeOf(place).empty() ? absl::OkStatus() : ParseUrl(place).status();
}

absl::StatusOr<Sources> OpenSources(std::span<const std::string> places,
                                    const SourceSettings& settings, net::EventLoop& loop) {
  Sources sources;
  std::vector<std::string> paths;
  for (const std::string& place : places) {
    if (SchemeOf(place).empty()) {
      paths.push_back(place);
      continue;
    }
    HEADGATE_ASSIGN_OR_RETURN(headgate::zookeeper::Place parsed, ParseUrl(place));
    sources.push_back(std::make_unique<zookeeper::ZooKeeperSource>(
        zookeeper::SourceOptions{.place = std::move(parsed),
                                 .session_timeout = settings.session_timeout,
                                 .copy = settings.copy},
        loop));
  }
  if (!paths.empty())
    sources.insert(sources.begin(), std::make_unique<file::FileSource>(std::move(paths), loop));
  return sources;
}

}  // namespace headgate::watch
