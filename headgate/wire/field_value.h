// The one form of a header field's value that is used for matching and for keys.
#pragma once

#include <string>
#include <string_view>

#include "headgate/wire/why.h"

namespace headgate::wire {

// Sets `read` to the value of the field, or to a part of `text` if another spelling stands for it
// (credentials.h). False if readers would read different values: it has a control character or a
// byte above 0x7f, some of which Java and Python remove at the ends, or its credentials are
// ambiguous.
bool ReadFieldValue(std::string_view name, std::string_view value, std::string& text,
                    std::string_view& read, Why* why = nullptr);

}  // namespace headgate::wire
