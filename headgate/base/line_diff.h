// The changes between two texts, line by line, as `diff -u` shows them.
#pragma once

#include <string>
#include <string_view>

namespace headgate::base {

// Lines that are gone begin with "-", new ones with "+", and up to three unchanged ones around them
// with " ". Parts are headed by "@@ -10,3 +10,4 @@": the first line and the number of lines in each
// text. Empty if the texts are equal. A last line without a line end counts as if it had one.
std::string LineDiff(std::string_view before, std::string_view after);

}  // namespace headgate::base
