// DynamoDB as headgate/store/open knows it: the URL scheme, the check of the options, and the
// backend of a process.
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

namespace headgate::store::dynamodb {

inline constexpr std::array<std::string_view, 1> kSchemes = {"dynamodb"};

// Example URLs, for hints.
inline constexpr std::string_view kUrlExamples = "dynamodb://TABLE?region=eu-west-1 (DynamoDB)";

// DynamoDB refuses larger items.
inline constexpr size_t kItemBytesMax = 400 * 1024;

// A call takes some milliseconds in the region of the table, sometimes tens. A connection carries
// one call at a time.
inline constexpr CallOptions kDefaultCalls = {.timeout = std::chrono::milliseconds(250),
                                              .connect_timeout = std::chrono::seconds(1),
                                              .connections_per_server = 16};

// Everything that is wrong with the options.
std::vector<OptionProblem> CheckOptions(const BackendOptions& options);

// Connects at once, with connections for each of the loops. InvalidArgument if CheckOptions finds a
// problem.
absl::StatusOr<std::unique_ptr<Backend>> OpenBackend(const BackendOptions& options,
                                                     std::span<net::EventLoop* const> loops,
                                                     const BackendContext& context);

// The bytes of a bucket (bucket_codec.h) by its name; empty if there is none. Blocks for at most
// `timeout`, on a loop of its own.
absl::StatusOr<std::string> ReadBucket(const BackendOptions& options, std::string_view name,
                                       base::Duration timeout);

// Makes the table of the URL in `options`, if there is none, on a loop of its own. Blocks for at
// most `timeout`. Returns a sentence for people: the table was made, or was there. The error says
// why there is no usable table.
absl::StatusOr<std::string> CreateTable(const BackendOptions& options, base::Duration timeout);

}  // namespace headgate::store::dynamodb
