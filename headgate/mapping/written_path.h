// Paths in a mapping file. They are written in normalized form, thus decoded: `/50%` is the path of
// `GET /50%25`. `%25` stands for `%` too, as in a URL. Before two hexadecimal digits, `%` must be
// written as `%25`: `/a%2541` is the path of `GET /a%2541`, while `/a%41` is refused, because it
// more probably means `/aA`. A `#` stands for itself.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace headgate::mapping {

// The normalized path that `text` stands for; empty if `text` is not a path in this notation.
std::optional<std::string> ReadPath(std::string_view text);

// Suggests the spelling of a path that ReadPath refuses: normalized, and with the escapes that
// ReadPath accepts. Empty if no request has such a path.
std::optional<std::string> SpellingOfPath(std::string_view text);

}  // namespace headgate::mapping
