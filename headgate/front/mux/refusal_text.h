// The refusal that a connection without a session gets before it closes, in its own protocol.
#pragma once

#include <string_view>

#include "headgate/front/mux/protocol_sniff.h"

namespace headgate::front::mux {

// The address does not speak this protocol.
std::string_view WrongProtocolText(Protocol protocol);
// The server has no place or no descriptor for another connection. RESP clients hear Redis's own
// words.
std::string_view FullHouseText(Protocol protocol);

}  // namespace headgate::front::mux
