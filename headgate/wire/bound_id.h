// The ids that clients give requests, to repeat them safely.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace headgate::wire {

// An id has at least one byte, and at most this many.
inline constexpr size_t kRequestIdBytesMax = 128;

// Appends the id under which a request is remembered. It is made from `id` and the request's
// `content`, so that one id with two contents counts as two. `kind` keeps requests of different
// kinds apart.
void AppendBoundId(std::string_view kind, std::string_view id, std::string_view content,
                   std::string& out);

}  // namespace headgate::wire
