// Why a part of a request is refused: how readers could differ, as a clause for people.
#pragma once

#include <string_view>

namespace headgate::wire {

// Functions that refuse take a pointer to one, which may be null. The text has static lifetime.
using Why = std::string_view;

// Returns false, for `return Refuse(why, "…")`.
inline bool Refuse(Why* why, std::string_view reason) {
  if (why != nullptr) *why = reason;
  return false;
}

}  // namespace headgate::wire
