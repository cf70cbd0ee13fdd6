// ZooKeeper as headgate/store/open knows it: the URL scheme, the check of the options, and the
// backend of a process.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "headgate/base/status.h"
#include "headgate/client/zookeeper/client.h"
#include "headgate/net/event_loop.h"
#include "headgate/store/backend.h"
#include "headgate/store/backend_options.h"

namespace headgate::store::zookeeper {

inline constexpr std::array<std::string_view, 1> kSchemes = {"zk"};

// Example URLs, for hints.
inline constexpr std::string_view kUrlExamples =
    "zk://HOST:PORT,HOST:PORT/rate-limiter (ZooKeeper)";

// Two writes to disks by a majority, and the reads between them.
inline constexpr CallOptions kDefaultCalls = {.timeout = std::chrono::milliseconds(250)};

// A node, with its path.
inline constexpr size_t kNodeBytesMax = client::zookeeper::kRequestBytesMax;

// Everything that is wrong with the options.
std::vector<OptionProblem> CheckOptions(const BackendOptions& options);

// Connects at once, with a session for each of the loops. InvalidArgument if CheckOptions finds a
// problem.
absl::StatusOr<std::unique_ptr<Backend>> OpenBackend(const BackendOptions& options,
                                                     std::span<net::EventLoop* const> loops,
                                                     const BackendContext& context);

// The bytes of a bucket (bucket_codec.h) by its name; empty if there is none. Blocks for at most
// `timeout`, on a loop of its own.
absl::StatusOr<std::string> ReadBucket(const BackendOptions& options, std::string_view name,
                                       base::Duration timeout);

}  // namespace headgate::store::zookeeper
