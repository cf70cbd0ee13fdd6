// The description of all paths, made of openapi.json when the tree is configured.
#pragma once

#include <string_view>

namespace headgate::front::admin {

extern const std::string_view kOpenApi;

}  // namespace headgate::front::admin
