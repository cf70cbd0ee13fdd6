#include "headgate/watch/open_sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
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

absl::StatusOr<client::zookeeper::Place> ParseUrl(const std::string& url,
                                                  const base::Secret& password) {
  const std::string_view scheme = SchemeOf(url);
  if (scheme != "zk") {
    return absl::InvalidArgumentError(fmt::format(
        "rules cannot be read from {}://; name a file, a directory, or zk://HOST:PORT/path",
        scheme));
  }
  const auto place = client::zookeeper::ParsePlace(url, client::zookeeper::kDefaultPath, password);
  if (place.ok()) return place;
  return absl::InvalidArgumentError(
      fmt::format("the zk:// URL is not valid: {}", std::string(place.status().message())));
}

// Its password may be in a file, and does not matter here.
std::string StoreWithoutLogin(const std::string& url) {
  const size_t begin = url.find("://");
  const size_t login_end = url.substr(0, url.find('/', begin + 3)).rfind('@');
  if (begin == std::string::npos || login_end == std::string::npos) return url;
  return url.substr(0, begin + 3) + url.substr(login_end + 1);
}

}  // namespace

absl::Status CheckPlace(const std::string& place, const base::Secret& password) {
  return SchemeOf(place).empty() ? absl::OkStatus() : ParseUrl(place, password).status();
}

absl::StatusOr<Sources> OpenSources(std::span<const std::string> places,
                                    const SourceSettings& settings, net::EventLoop& loop) {
  Sources sources;
  std::vector<std::string> paths;
  std::set<std::string> roots;
  // The places that show this instance.
  std::vector<client::zookeeper::Place> shown;
  if (auto store = client::zookeeper::ParsePlace(StoreWithoutLogin(settings.store),
                                                 client::zookeeper::kDefaultPath);
      store.ok()) {
    shown.push_back(*std::move(store));
  }
  for (const std::string& place : places) {
    if (SchemeOf(place).empty()) {
      paths.push_back(place);
      continue;
    }
    HEADGATE_ASSIGN_OR_RETURN(client::zookeeper::Place parsed, ParseUrl(place, settings.password));
    // Documents are told apart by their paths.
    if (!roots.insert(parsed.path).second) {
      return absl::InvalidArgumentError(fmt::format(
          "two sources of rules have the path {}; give one of them another path", parsed.path));
    }
    const bool is_shown = std::any_of(shown.begin(), shown.end(),
                                      [&](const auto& other) { return SamePlace(parsed, other); });
    if (!is_shown) shown.push_back(parsed);
    sources.push_back(std::make_unique<zookeeper::ZooKeeperSource>(
        zookeeper::SourceOptions{
            .place = std::move(parsed),
            .session_timeout = settings.session_timeout,
            .copy = settings.copy,
            .instance = is_shown ? "" : settings.instance,
            .info = {.version = settings.version, .started = settings.started}},
        loop));
  }
  if (!paths.empty())
    sources.insert(sources.begin(), std::make_unique<file::FileSource>(std::move(paths), loop));
  return sources;
}

}  // namespace headgate::watch
