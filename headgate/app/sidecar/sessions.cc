#include "headgate/app/sidecar/sessions.h"

#include <algorithm>
#include <utility>

#include "headgate/base/time_of_day.h"
#include "headgate/front/mux/protocol_sniff.h"
#include "headgate/front/mux/refusal_text.h"
#include "headgate/proxy/own_answer.h"

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

// Whether it can be the value of a field as it is (RFC 9110, 5.5). A receiver removes spaces at
// both ends, and would see the name of somebody else.
bool CanBeValue(std::string_view name) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; };
  return name.size() <= kCertificateNameBytesMax && name.front() != ' ' && name.back() != ' ' &&
         std::none_of(name.begin(), name.end(), is_control);
}

}  // namespace

std::unique_ptr<http::RequestReceiver> ConnectionApplication::OnRequest(
    http::RequestHead head, const net::Peer& peer, http::ServerExchange& exchange,
    base::Instant now) {
  head.scheme = scheme_;
  if (!certificate_field_.empty()) {
    head.fields.Remove(certificate_field_);
    const std::string& name = peer.certificate_name;
    if (!name.empty() && !CanBeValue(name)) {
      misnamed_.Add();
      proxy::SendOwnAnswer(head,
                           {.status = 403,
                            .detail = "the name in the client's certificate cannot be a client's "
                                      "id: it has a control character or a space at an end, or is "
                                      "too long",
                            .hint = "a certificate with another first name of the kinds DNS, URI "
                                    "and email, or without them another common name"},
                           exchange, base::TimeOfDay(clock_, now));
      return proxy::DropRest(exchange);
    }
    if (!name.empty()) head.fields.Add(certificate_field_, name);
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
