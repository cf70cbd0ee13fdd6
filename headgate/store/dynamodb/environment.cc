#include "headgate/store/dynamodb/environment.h"

#include <cstdlib>

namespace headgate::store::dynamodb {

Environment SystemEnvironment() {
  return [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
}

}  // namespace headgate::store::dynamodb
