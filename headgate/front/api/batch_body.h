// The body of /v1/checks: {"checks": [CHECK, …]}, in which each CHECK is a body of /v1/check.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "headgate/front/api/check_reader.h"

namespace headgate::front::api {

inline constexpr size_t kChecksMax = 1000;
// All checks together have at most this many. They are decided in one go, and other connections
// wait meanwhile.
inline constexpr size_t kBatchDescriptorsMax = 4096;

// The place of one check in the body.
struct CheckText {
  size_t begin = 0;
  size_t size = 0;
};

// Fills `checks` with the texts of the checks. Finds only where each text ends. A CheckParser then
// checks its content, and refuses a text that is not one JSON value.
std::optional<BodyError> SplitChecks(std::string_view body, std::vector<CheckText>& checks);

}  // namespace headgate::front::api
