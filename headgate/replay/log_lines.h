// The lines of a log, from a file or a pipe.
#pragma once

#include <istream>
#include <string_view>

#include "absl/functional/function_ref.h"

namespace headgate::replay {

// Calls `take` with each line, without its end and without a byte order mark. A line that is too
// long to be read is passed cut off; it is then still longer than the readers accept. If the log is
// compressed, no line is passed, and the result is the program that unpacks it; else it is empty.
std::string_view ForEachLine(std::istream& in, absl::FunctionRef<void(std::string_view)> take);

}  // namespace headgate::replay
