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
  // Hints name the fields of `kind`.
  std::optional<BodyError> Parse(std::string_view body, limiter::Request& request,
                                 BodyKind kind = BodyKind::kReserve);

  // The id of the last body, as it says; empty if it has none.
  std::string_view id() const { return reader_.id(); }
  // How long a reservation can be settled; absent if the last body does not say.
  const std::optional<base::Duration>& expires() const { return reader_.expires(); }
  // After which time a permit ends; absent if the last body does not say.
  const std::optional<base::Duration>& ttl() const { return reader_.ttl(); }

 private:
  CheckReader reader_;
  std::string text_;  // strings that contained escapes
};

// The error of a request that has a field which only another path takes.
std::optional<BodyError> Misplaced(limiter::Operation operation, const limiter::Request& request,
                                   const CheckParser& parser);

}  // namespace headgate::front::api
