// The sidecar's application: finds the client of each request, asks whether it passes, and passes
// it on to an upstream or refuses it with 429.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "headgate/http/exchange.h"
#include "headgate/proxy/admission.h"
#include "headgate/proxy/forwarded_fields.h"
#include "headgate/proxy/relay.h"
#include "headgate/wire/http_fields.h"

namespace headgate::proxy {

struct ApplicationOptions {
  // The field that names the client. Empty: the peer's address is the client.
  std::string client_field = "X-Client-Id";
  ForwardedOptions forwarded{};
  // The fields that describe the client's share, the name of the policy in them, and its cycle.
  wire::RateLimitDialect dialect = wire::RateLimitDialect::kDraft;
  std::string policy = "fair-share";
  base::Duration cycle{0};
  // Whether answers to admitted requests have these fields too.
  bool describes_admitted = true;
};

// One per loop; the loop writes, any thread reads.
struct ApplicationCounters {
  base::Counter admitted{};
  base::Counter refused{};
};

// One per loop.
class Application final : public http::Application {
 public:
  // Everything must outlive this object.
  Application(const ApplicationOptions& options, const RelayContext& relays,
              ApplicationCounters& counters)
      : options_(options), relays_(relays), counters_(counters) {}

  std::unique_ptr<http::RequestReceiver> OnRequest(http::RequestHead head, const net::Peer& peer,
                                                   http::ServerExchange& exchange,
                                                   base::Instant now) override;

 private:
  std::string_view ClientOf(const http::RequestHead& head, const net::Peer& peer);
  http::Fields Describe(const Verdict& verdict, base::Instant now);
  std::unique_ptr<http::RequestReceiver> Refuse(const http::RequestHead& head,
                                                const Verdict& verdict,
                                                http::ServerExchange& exchange, base::Instant now);

  const ApplicationOptions& options_;
  const RelayContext& relays_;
  ApplicationCounters& counters_;
  std::string address_;
  std::string scratch_;
};

}  // namespace headgate::proxy
