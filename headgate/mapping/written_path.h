// Paths in a mapping file. They are written as requests have them once they are normalized, thus
// decoded: `/50%` is the path of `GET /50%25`.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace headgate::mapping {

// The normalized path that `text` probably means; another text is not normalized. A `%` that begins
// no escape, and a `#`, stand for themselves. An escape is decoded, because nobody who writes
// `/%61` means the path of `GET /%2561`. Empty if no request has such a path.
std::optional<std::string> WrittenPath(std::string_view text);

}  // namespace headgate::mapping
