#include "headgate/app/settings/watch_settings.h"

#include <fmt/format.h>

#include "headgate/disk/files.h"
#include "headgate/rule/quote.h"
#include "headgate/watch/open_sources.h"

namespace headgate::app {

void CheckWatch(Configuration& configuration) {
  const Settings& settings = configuration.settings;
  for (const std::string& place : settings.watch) {
    const bool is_url = place.find("://") != std::string::npos;
    const absl::Status status = is_url ? watch::CheckPlace(place)
                                       : absl::InvalidArgumentError(fmt::format(
                                             "'{}' is not a zk:// URL", rule::Printable(place)));
    if (!status.ok())
      configuration.AddProblem("watch", status,
                               "--watch zk://HOST:PORT/rate-limiter; files belong to --rules");
  }
  if (settings.watch_copy.empty()) return;
  const absl::Status status = disk::CheckReplaceable(settings.watch_copy);
  if (!status.ok())
    configuration.AddProblem("watch_copy", status,
                             "name a file in a directory that this user may write");
}

}  // namespace headgate::app
