// Checks the settings of rules in ZooKeeper.
#pragma once

#include "headgate/app/settings/configuration.h"

namespace headgate::app {

// Reads `watch_password_file` into `watch_password`. Checks whether each place of `watch` is a URL,
// and `watch_copy` a file that can be replaced, of one place. Problems go to the configuration.
void CheckWatch(Configuration& configuration);

}  // namespace headgate::app
