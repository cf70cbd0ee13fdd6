#include "headgate/app/sidecar_sessions.h"

#include <algorithm>
#include <utility>

#include "headgate/front/mux/protocol_sniff.h"
#include "headgate/front/mux/refusal_text.h"

namespace headgate::app {
namespace {

using front::mux::Protocol;

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

// Whether it can be the value of a field as it is.
bool IsVisible(std::string_view name) {
  return std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c < '\x7f'; });
}

}  // namespace

std::unique_ptr<http::RequestReceiver> ConnectionApplication::OnRequest(
    http::RequestHead head, const net::Peer& peer, http::ServerExchange& exchange,
    base::Instant now) {
  head.scheme = scheme_;
  if (!certificate_field_.empty()) {
    head.fields.Remove(certificate_field_);
    const std::string& name = peer.certificate_name;
    if (!name.empty() && IsVisible(name)) head.fields.Add(certificate_field_, name);
  }
  return next_.OnRequest(std::move(head), peer, exchange, now);
}

net::SessionChooser SidecarSessions::Chooser(bool tls) {
  return [this, tls](std::span<const char> bytes, const net::Peer& peer, net::Room room) {
    const auto protocol = front::mux::SniffProtocol(bytes);
    net::SessionChoice choice{.made = protocol.has_value()};
    if (!choice.made) return choice;
    ConnectionApplication& application = tls ? over_tls_ : plain_;
    if (room == net::Room::kNone) {
      choice.refusal = front::mux::FullHouseText(*protocol);
    } else if (*protocol == Protocol::kTls || !MayUse(peer.alpn, *protocol)) {
      choice.refusal = front::mux::WrongProtocolText(*protocol);
    } else if (*protocol == Protocol::kHttp2) {
      choice.session = std::make_unique<http::http2::ServerSession>(application, options_.http2,
                                                                    peer, http2_counters_);
    } else {
      choice.session = std::make_unique<http::http1::ServerSession>(
          application, tls ? options_.http1_over_tls : options_.http1, peer);
    }
    return choice;
  };
}

}  // namespace headgate::app
