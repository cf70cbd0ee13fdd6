#include "headgate/app/sidecar/sessions.h"

#include <algorithm>
#include <utility>

#include "headgate/base/time_of_day.h"
#include "headgate/proxy/own_answer.h"

namespace headgate::app {
namespace {

// Whether it can be the value of a field as it is (RFC 9110, 5.5). A receiver removes spaces at
// both ends, and would see the name of somebody else.
bool CanBeValue(std::string_view name) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; };
  return name.size() <= kCertificateNameBytesMax && name.front() != ' ' && name.back() != ' ' &&
         std::none_of(name.begin(), name.end(), is_control);
}

}  // namespace

std::unique_ptr<http::RequestReceiver> ConnectionApplication::OnRequest(
    http::RequestHead&& head, const net::Peer& peer, http::ServerExchange& exchange,
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
  ConnectionApplication& application = tls ? over_tls_ : plain_;
  const auto http1 = [this, &application](const net::Peer& peer) {
    return std::make_unique<http::http1::ServerSession>(application, options_.http1, peer);
  };
  const auto http2 = [this, &application](const net::Peer& peer) {
    return std::make_unique<http::http2::ServerSession>(application, options_.http2, peer,
                                                        http2_counters_);
  };
  // Bytes of no known protocol are answered in HTTP/1.
  return front::mux::Mux({.resp = http1, .http1 = http1, .http2 = http2}, counters_);
}

}  // namespace headgate::app
