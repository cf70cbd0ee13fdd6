// Opens the sources that people name: the one place that knows which kinds there are.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "headgate/base/status.h"
#include "headgate/net/event_loop.h"
#include "headgate/rule/source.h"

namespace headgate::watch {

// A place is a path of a rule file or of a directory of them, or a URL whose scheme names another
// kind of source. All paths are one source, which comes first. InvalidArgument: nothing is known by
// that scheme. The sources live on `loop`.
absl::StatusOr<std::vector<std::unique_ptr<rule::Source>>> OpenSources(
    std::span<const std::string> places, net::EventLoop& loop);

}  // namespace headgate::watch
