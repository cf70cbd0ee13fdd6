// Opens the shared store of a URL. Only this file knows all kinds of stores.
#pragma once

#include <memory>
#include <span>
#include <string>
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

// The most hits of a sliding_window_log that a bucket in the store of this URL can hold. Requests
// beyond them fail, and are not counted.
uint64_t LogRequestsMax(std::string_view url);

// How calls to the store of this URL are sent unless the operator says something else.
CallOptions DefaultCalls(std::string_view url);

// Returns all problems of the options, for the kind of store in their URL. Reads the files that
// they name, but does not connect to anything.
std::vector<OptionProblem> CheckOptions(const BackendOptions& options);

// Makes a backend on these event loops, which must not run yet. InvalidArgument if CheckOptions
// finds a problem. An unreachable store is not an error: the backend keeps trying to connect.
absl::StatusOr<std::unique_ptr<Backend>> OpenBackend(const BackendOptions& options,
                                                     std::span<net::EventLoop* const> loops,
                                                     const BackendContext& context);

// The bytes of a bucket (bucket_codec.h) in the store of the URL, by its name
// (docs/reference/redis-state.md); empty if there is none. Blocks for at most `timeout`. DataLoss
// if its value is damaged. InvalidArgument if CheckOptions finds a problem.
absl::StatusOr<std::string> ReadBucket(const BackendOptions& options, std::string_view name,
                                       base::Duration timeout);

// Creates the table that the store of the URL needs, unless it exists. Blocks for at most
// `timeout`. Returns a sentence about the result. InvalidArgument if this kind of store needs no
// table, or CheckOptions finds a problem.
absl::StatusOr<std::string> CreateTable(const BackendOptions& options, base::Duration timeout);

}  // namespace headgate::store::open
