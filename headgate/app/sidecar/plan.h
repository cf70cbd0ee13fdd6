// `headgate sidecar --plan`: what fair share would have done with the requests of an access log.
#pragma once

#include <string>

#include "headgate/app/settings/console.h"
#include "headgate/replay/access_log.h"
#include "headgate/share/share_options.h"

namespace headgate::app {

// `file` is a path, or "-" for stdin. Returns the exit status.
int SidecarPlan(const std::string& file, const replay::ClientPlace& client,
                const share::ShareOptions& options, const Console& console);

}  // namespace headgate::app
