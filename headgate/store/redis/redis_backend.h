// Redis and Valkey as headgate/store/open knows them: the URL schemes, the check of the options,
// and the backend of a process.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "headgate/base/status.h"
#include "headgate/net/event_loop.h"
#include "headgate/store/backend.h"
#include "headgate/store/backend_options.h"

namespace headgate::store::redis {

// The schemes, without the kinds that follow a '+'.
inline constexpr std::array<std::string_view, 2> kSchemes = {"redis", "rediss"};

// Example URLs, for hints.
inline constexpr std::string_view kUrlExamples =
    "redis://127.0.0.1:6379, rediss://HOST:PORT (TLS) or redis+cluster://HOST:PORT,HOST:PORT";

// Everything that is wrong with the options; reads the files that they name.
std::vector<OptionProblem> CheckOptions(const BackendOptions& options);

// Connects at once, on each of the loops. InvalidArgument if CheckOptions finds a problem.
absl::StatusOr<std::unique_ptr<Backend>> OpenBackend(const BackendOptions& options,
                                                     std::span<net::EventLoop* const> loops,
                                                     const BackendContext& context);

// The bytes of a bucket (bucket_codec.h) by its name; empty if there is none. Blocks for at most
// `timeout`, on a loop of its own.
absl::StatusOr<std::string> ReadBucket(const BackendOptions& options, std::string_view name,
                                       base::Duration timeout);

}  // namespace headgate::store::redis
