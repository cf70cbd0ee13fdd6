// The variables of the environment, as AWS's tools read them. Tests pass their own.
#pragma once

#include <functional>
#include <string>

namespace headgate::store::dynamodb {

// The value of a variable; empty if it is not set.
using Environment = std::function<std::string(const char* name)>;

Environment SystemEnvironment();

}  // namespace headgate::store::dynamodb
