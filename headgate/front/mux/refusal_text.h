// The refusal that a connection without a session gets before it closes, in the client's protocol.
#pragma once

#include <string_view>

#include "headgate/front/mux/protocol_sniff.h"

namespace headgate::front::mux {

// The address does not serve this protocol.
std::string_view WrongProtocolText(Protocol protocol);
// The server has no place or no descriptor for another connection. RESP clients get Redis's own
// message.
std::string_view FullHouseText(Protocol protocol);

}  // namespace headgate::front::mux
