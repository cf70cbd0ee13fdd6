// The late answers that lookups of names keep for a while (name_lookup.h).
#pragma once

#include <cstdint>
#include <string>

namespace headgate::net {

// The next lookup of this name asks the name servers. For callers that look the name up at
// intervals, and want to see a change. Callable from any thread.
void ForgetKeptAnswer(const std::string& host, uint16_t port);

}  // namespace headgate::net
