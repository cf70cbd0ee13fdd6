#include "headgate/front/mux/mux.h"

#include <optional>
#include <utility>

#include "headgate/front/mux/protocol_sniff.h"
#include "headgate/front/mux/refusal_text.h"

namespace headgate::front::mux {
namespace {

// The protocol of an address that serves only one.
std::optional<Protocol> OnlyProtocol(const Sessions& sessions) {
  if (sessions.resp && sessions.http) return std::nullopt;
  return sessions.resp ? Protocol::kResp : Protocol::kHttp1;
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
    if (*protocol == Protocol::kResp && sessions.resp) {
      counters.resp.Add();
      return {.made = true, .session = sessions.resp(peer), .meter = sessions.resp_meter};
    }
    if (*protocol == Protocol::kHttp1 && sessions.http) {
      counters.http.Add();
      return {.made = true, .session = sessions.http(peer), .meter = sessions.http_meter};
    }
    return {.made = true, .refusal = WrongProtocolText(*protocol)};
  };
}

}  // namespace headgate::front::mux
