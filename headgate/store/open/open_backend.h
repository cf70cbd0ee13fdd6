// Opens the shared store of a URL. Only this file knows all kinds of stores.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "headgate/base/status.h"
#include "headgate/net/event_loop.h"
#include "headgate/store/backend.h"
#include "headgate/store/backend_options.h"

namespace headgate::store::open {

// Whether the store of this URL is strict: each decision is linearizable, by compare-and-set. Such
// a store is slower, and rules that rely on it must not be decided without it.
bool IsStrict(std::string_view url);

// Returns all problems of the options, for the kind of store in their URL. Reads the files that
// they name, but does not connect to anything.
std::vector<OptionProblem> CheckOptions(const BackendOptions& options);

// Makes a backend on these event loops, which must not run yet. InvalidArgument if CheckOptions
// finds a problem. An unreachable store is not an error: the backend keeps trying to connect.
absl::StatusOr<std::unique_ptr<Backend>> OpenBackend(const BackendOptions& options,
                                                     std::span<net::EventLoop* const> loops,
                                                     const BackendContext& context);

}  // namespace headgate::store::open
