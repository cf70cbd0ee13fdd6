// Opens the sources named in the settings. Only this file knows all kinds of sources.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/secret.h"
#include "headgate/base/status.h"
#include "headgate/base/time.h"
#include "headgate/net/event_loop.h"
#include "headgate/rule/source.h"

namespace headgate::watch {

struct SourceSettings {
  // The file of the last good documents of a source that is not files; empty: none.
  std::string copy{};
  // Replaces the password in the URL of each place in ZooKeeper, which then needs only a user.
  // Empty: the URLs have passwords of their own, or none.
  base::Secret password{};
  base::Duration session_timeout = std::chrono::seconds(10);
  // The name of this instance, unique among processes. Sources that can do so show it to the other
  // instances, and count them. Empty: this instance is not shown.
  std::string instance{};
  std::string version{};
  base::WallTime started{};
  // The URL of the shared store. If it is in the same place as a source, the store shows this
  // instance there, and the source does not: an instance is shown once in a place.
  std::string store{};
};

// A place is the path of a rule file or of a directory of rule files, or a URL whose scheme names
// another kind of source: "zk://HOST:PORT,…/path" is ZooKeeper, with /rate-limiter as the default
// path. All paths together form one source, which comes first. InvalidArgument: a URL that is not
// understood. The sources run on `loop`.
absl::StatusOr<std::vector<std::unique_ptr<rule::Source>>> OpenSources(
    std::span<const std::string> places, const SourceSettings& settings, net::EventLoop& loop);

// Why OpenSources refuses this place, with this SourceSettings::password; OK if it does not.
absl::Status CheckPlace(const std::string& place, const base::Secret& password = {});

}  // namespace headgate::watch
