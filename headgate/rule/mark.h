// A position in a text.
#pragma once

#include <cstdint>

namespace headgate::rule {

// Both numbers count from 1; columns count characters.
struct Mark {
  uint32_t line = 1;
  uint32_t column = 1;
};

}  // namespace headgate::rule
