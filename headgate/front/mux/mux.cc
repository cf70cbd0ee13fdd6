#include "headgate/front/mux/mux.h"

#include <optional>
#include <utility>

#include "headgate/front/mux/protocol_sniff.h"
#include "headgate/front/mux/refusal_text.h"

namespace headgate::front::mux {
namespace {

// The protocol of an address that serves only one.
std::optional<Protocol> OnlyProtocol(const Sessions& sessions) {
  if (sessions.resp && sessions.http1) return std::nullopt;
  return sessions.resp ? Protocol::kResp : Protocol::kHttp1;
}

bool MayUse(net::Alpn agreed, Protocol protocol) {
  switch (agreed) {
    case net::Alpn::kNone:
      break;
    case net::Alpn::kHttp11:
      return protocol != Protocol::kHttp2;
    case net::Alpn::kHttp2:
      return protocol == Protocol::kHttp2;
  }
  return true;
}

const Sessions::Factory& FactoryOf(Protocol protocol, const Sessions& sessions) {
  static const Sessions::Factory none;
  switch (protocol) {
    case Protocol::kResp:
      return sessions.resp;
    case Protocol::kHttp1:
      return sessions.http1;
    case Protocol::kHttp2:
      return sessions.http2;
    case Protocol::kTls:
      break;
  }
  return none;
}

}  // namespace

net::SessionChooser Mux(Sessions sessions, Counters& counters) {
  return [sessions = std::move(sessions), &counters](std::span<const char> first_bytes,
                                                     const net::Peer& peer,
                                                     net::Room room) -> net::SessionChoice {
    if (room == net::Room::kNone) {
      std::optional<Protocol> protocol = OnlyProtocol(sessions);
      if (!protocol) protocol = SniffProtocol(first_bytes);
      if (!protocol) return {};
      return {.made = true, .refusal = FullHouseText(*protocol)};
    }
    const std::optional<Protocol> protocol = SniffProtocol(first_bytes);
    if (!protocol) return {};
    const Sessions::Factory& factory = FactoryOf(*protocol, sessions);
    if (!factory || !MayUse(peer.alpn, *protocol))
      return {.made = true, .refusal = WrongProtocolText(*protocol)};
    const bool is_resp = *protocol == Protocol::kResp;
    (is_resp ? counters.resp : counters.http).Add();
    return {.made = true,
            .session = factory(peer),
            .meter = is_resp ? sessions.resp_meter : sessions.http_meter};
  };
}

}  // namespace headgate::front::mux
