#include "headgate/app/settings/watch_settings.h"

#include <fmt/format.h>

#include "headgate/files/files.h"
#include "headgate/rule/quote.h"
#include "headgate/watch/open_sources.h"

namespace headgate::app {

void CheckWatch(Configuration& configuration) {
  Settings& settings = configuration.settings;
  configuration.ReadSecret("watch_password_file", settings.watch_password_file,
                           settings.watch_password);
  // The places without parts that may be a password.
  const std::vector<std::string> shown = ShowValue(*FindSetting("watch"), settings);
  for (size_t i = 0; i < settings.watch.size(); ++i) {
    const std::string& place = settings.watch[i];
    const absl::Status status = place.starts_with("zk://")
                                    ? watch::CheckPlace(place, settings.watch_password)
                                    : absl::InvalidArgumentError(fmt::format(
                                          "'{}' is not a zk:// URL", rule::Printable(shown[i])));
    if (!status.ok())
      configuration.AddProblem("watch", status,
                               "--watch zk://HOST:PORT/rate-limiter; files belong to --rules");
  }
  if (settings.watch_copy.empty()) return;
  if (settings.watch.size() > 1) {
    configuration.AddProblem(
        "watch_copy",
        fmt::format("holds the rules of one place, and watch has {}", settings.watch.size()),
        "give one --watch, or leave out --watch-copy");
  }
  const absl::Status status = files::CheckReplaceable(settings.watch_copy);
  if (!status.ok())
    configuration.AddProblem("watch_copy", status,
                             "name a file in a directory that this user may write");
}

}  // namespace headgate::app
