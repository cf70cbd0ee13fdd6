// Foreign text in a message. It is never long enough to flood a log and has no control characters
// that could move a terminal's cursor or show other characters in another order.
#pragma once

#include <string>
#include <string_view>

namespace headgate::rule {

// `text` with everything below space, DEL, C1 controls, bidirectional controls and invalid UTF-8 as
// \xNN for each byte.
std::string Printable(std::string_view text);

// Printable() of each line. A last line without an end gets one.
std::string PrintableLines(std::string_view text);

// Printable(text) in double quotes, with `"` and `\` escaped and everything beyond 64 bytes cut
// ("…").
std::string Quote(std::string_view text);

}  // namespace headgate::rule
