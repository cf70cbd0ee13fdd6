// The description of an address's operations (OpenAPI 3.1), made from the table of its routes. So
// each address describes exactly the operations that it serves.
//
// openapi/*.json describe every operation of any address, and the components that these refer to.
// Each part has the members `paths` and `components` of a document, with these differences:
//
//   - An operation whose method is `any` stands for all methods that OpenAPI knows.
//   - It has only the responses that are its own. Those that the table of routes or HTTP itself
//     imply are added: 401 where a right is needed, 408 everywhere. A response of its own wins.
//   - It has no `security`. The right that its route needs becomes a role there (OpenAPI 3.1,
//     4.8.30).
//
// A template such as /v1/documents/{name} belongs to the route of the prefix /v1/documents/.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/http/routing/router.h"

namespace headgate::front::admin {

inline constexpr size_t kOpenApiPartCount = 6;
// The files, made into a source when the tree is configured.
extern const std::array<std::string_view, kOpenApiPartCount> kOpenApiParts;

// The document of an address with these routes, and the list that GET / returns.
std::string DescribeRoutes(std::vector<http::routing::Route> routes);

}  // namespace headgate::front::admin
