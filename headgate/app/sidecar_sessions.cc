#include "headgate/app/sidecar_sessions.h"

#include "headgate/front/mux/protocol_sniff.h"
#include "headgate/front/mux/refusal_text.h"

namespace headgate::app {

using front::mux::Protocol;

net::SessionChooser SidecarSessions::Chooser() {
  return [this](std::span<const char> bytes, const net::Peer& peer, net::Room room) {
    const auto protocol = front::mux::SniffProtocol(bytes);
    net::SessionChoice choice{.made = protocol.has_value()};
    if (!choice.made) return choice;
    if (room == net::Room::kNone) {
      choice.refusal = front::mux::FullHouseText(*protocol);
    } else if (*protocol == Protocol::kTls) {
      choice.refusal = front::mux::WrongProtocolText(*protocol);
    } else if (*protocol == Protocol::kHttp2) {
      choice.session = std::make_unique<http::http2::ServerSession>(application_, options_.http2,
                                                                    peer, http2_counters_);
    } else {
      choice.session =
          std::make_unique<http::http1::ServerSession>(application_, options_.http1, peer);
    }
    return choice;
  };
}

}  // namespace headgate::app
