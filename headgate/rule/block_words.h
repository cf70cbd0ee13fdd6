// The word `block` of a limit: one duration, or a list of them.
//
//   block: 10m        block: [1m, 10m, 1h]
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "headgate/algorithm/block.h"
#include "headgate/base/status.h"

namespace headgate::rule {

inline constexpr std::string_view kBlockHint =
    "a duration such as 10m, or up to 6 that do not get shorter: [1m, 10m, 1h]";

// InvalidArgument if it is neither, or a length is not one of whole seconds, from 1s to 365d.
absl::StatusOr<algorithm::BlockLengths> ParseBlock(std::span<const std::string_view> lengths);

// "10m", "[1m, 10m, 1h]".
std::string Describe(const algorithm::BlockLengths& lengths);

}  // namespace headgate::rule
