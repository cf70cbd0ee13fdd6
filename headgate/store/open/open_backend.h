// Opens the shared store that a URL names: the one place that knows which stores there are.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "headgate/base/status.h"
#include "headgate/net/event_loop.h"
#include "headgate/store/backend.h"
#include "headgate/store/backend_options.h"

namespace headgate::store::open {

// Everything that is wrong with the options, for the store that their URL names; reads the files
// that they name, and connects to nothing.
std::vector<OptionProblem> CheckOptions(const BackendOptions& options);

// A backend on these event loops, which do not run yet. InvalidArgument if CheckOptions finds a
// problem. A store that does not answer is no error: the backend goes on trying to reach it.
absl::StatusOr<std::unique_ptr<Backend>> OpenBackend(const BackendOptions& options,
                                                     std::span<net::EventLoop* const> loops,
                                                     const BackendContext& context);

}  // namespace headgate::store::open
