// The body of /v1/check and its kin:
//
//   {"domain": "edge", "cost": 1,
//    "descriptors": [{"entries": [{"key": "api_key", "value": "k1"}], "cost": 1,
//                     "limit": {"requests_per_unit": 10, "unit": "minute"}}]}
//
// One pass, nothing kept but views. Boost.JSON reads the text, CheckReader judges what it says.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "headgate/front/api/check_reader.h"

namespace headgate::front::api {

// Reused from body to body, so that its memory is. Not thread-safe.
class CheckParser {
 public:
  // Fills `request`, whose views are valid until the next call and as long as `body` is. A
  // descriptor without a cost of its own has that of the whole request, and none where that has
  // none either.
  std::optional<BodyError> Parse(std::string_view body, limiter::Request& request);

 private:
  CheckReader reader_;
  std::string text_;  // strings that had escapes
};

}  // namespace headgate::front::api
