// The requests of one kind of connection, with the facts that the connection knows about them: its
// scheme, and the name in its client's certificate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "headgate/base/clock.h"
#include "headgate/base/counter.h"
#include "headgate/http/exchange.h"

namespace headgate::proxy {

// Long enough for SPIFFE, whose ids have at most 2048 bytes.
inline constexpr size_t kCertificateNameBytesMax = 2048;

class ConnectionApplication final : public http::Application {
 public:
  // If `certificate_field` is not empty, this field gets the name in the client's certificate,
  // whatever the client has sent in it. If the certificate has a name that cannot be the value of a
  // field, or one of more than kCertificateNameBytesMax, its requests are refused with 403.
  // `clock` is for Date; null: the time of decisions. All must outlive this object.
  ConnectionApplication(http::Application& next, std::string_view scheme,
                        const std::string& certificate_field, const base::Clock* clock)
      : next_(next), scheme_(scheme), certificate_field_(certificate_field), clock_(clock) {}

  std::unique_ptr<http::RequestReceiver> OnRequest(http::RequestHead&& head, const net::Peer& peer,
                                                   http::ServerExchange& exchange,
                                                   base::Instant now) override;

  // Requests refused because of the name in the client's certificate. From any thread.
  uint64_t misnamed() const { return misnamed_.value(); }

 private:
  http::Application& next_;
  const std::string_view scheme_;
  const std::string certificate_field_;  // empty: none
  const base::Clock* const clock_;
  base::Counter misnamed_;
};

}  // namespace headgate::proxy
