// The body of /v1/check and its relatives:
//
//   {"domain": "edge", "cost": 1,
//    "descriptors": [{"entries": [{"key": "api_key", "value": "k1"}], "cost": 1,
//                     "limit": {"requests_per_unit": 10, "unit": "minute"}}]}
//
// Parsed in one pass that keeps only views. Boost.JSON parses the text, CheckReader checks the
// content.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "headgate/front/api/check_reader.h"

namespace headgate::front::api {

// Reused for all bodies, together with its memory. Not thread-safe.
class CheckParser {
 public:
  // Fills `request`. Its views are valid until the next call and only as long as `body` exists. A
  // descriptor without a cost gets the cost of the whole request, if that has one.
  std::optional<BodyError> Parse(std::string_view body, limiter::Request& request);

 private:
  CheckReader reader_;
  std::string text_;  // strings that contained escapes
};

}  // namespace headgate::front::api
