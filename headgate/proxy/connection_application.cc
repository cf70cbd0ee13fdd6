#include "headgate/proxy/connection_application.h"

#include <algorithm>
#include <utility>

#include "headgate/base/time_of_day.h"
#include "headgate/proxy/own_answer.h"

namespace headgate::proxy {
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
      SendOwnAnswer(head,
                    {.status = 403,
                     .detail = "the name in the client's certificate cannot be a client's "
                               "id: it has a control character or a space at an end, or is "
                               "too long",
                     .hint = "a certificate with another first name of the kinds DNS, URI "
                             "and email, or without them another common name"},
                    exchange, base::TimeOfDay(clock_, now));
      return DropRest(exchange);
    }
    if (!name.empty()) head.fields.Add(certificate_field_, name);
  }
  return next_.OnRequest(std::move(head), peer, exchange, now);
}

}  // namespace headgate::proxy
