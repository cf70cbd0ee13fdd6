// Opens the sources named in the settings. Only this file knows all kinds of sources.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "headgate/base/status.h"
#include "headgate/net/event_loop.h"
#include "headgate/rule/source.h"

namespace headgate::watch {

// A place is the path of a rule file or of a directory of rule files, or a URL whose scheme names
// another kind of source. All paths together form one source, which comes first. InvalidArgument:
// unknown scheme. The sources run on `loop`.
absl::StatusOr<std::vector<std::unique_ptr<rule::Source>>> OpenSources(
    std::span<const std::string> places, net::EventLoop& loop);

}  // namespace headgate::watch
