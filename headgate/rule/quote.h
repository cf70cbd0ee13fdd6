// Foreign text in a message: never so long that it floods a log, never a control character that
// moves a terminal's cursor.
#pragma once

#include <string>
#include <string_view>

namespace headgate::rule {

// `text` with everything below space, DEL and what is no UTF-8 as \xNN.
std::string Printable(std::string_view text);

// The same between double quotes, with `"` and `\` escaped and all beyond 64 bytes left out ("…").
std::string Quote(std::string_view text);

}  // namespace headgate::rule
