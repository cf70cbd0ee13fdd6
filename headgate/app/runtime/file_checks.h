// Checks files that settings name, before anything starts.
#pragma once

#include "headgate/app/settings/configuration.h"

namespace headgate::app {

// Problems go to the configuration. Both do nothing without a file.
void CheckAuditLog(Configuration& configuration);
void CheckUsers(Configuration& configuration);

}  // namespace headgate::app
