// The ids of permits as clients write them, in every protocol that gives out permits.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "headgate/base/hash.h"

namespace headgate::wire {

// A client's own id has at least one byte, and at most this many.
inline constexpr size_t kPermitIdBytesMax = 128;

// 128 random bits as hex digits: a client that has one id cannot guess the id of another client's
// permit.
std::string MakePermitId();

// The same on all instances and in all protocols, so that any of them can release a permit that
// another one has granted.
base::Hash128 HashOfPermitId(std::string_view id);

}  // namespace headgate::wire
