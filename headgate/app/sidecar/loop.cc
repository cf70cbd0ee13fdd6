#include "headgate/app/sidecar/loop.h"

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "headgate/http/http1/client_session.h"
#include "headgate/http/http2/client_session.h"

namespace headgate::app {
namespace {

const http::http2::ClientOptions kHttp2Client;

void LogUnannouncedEnd(observe::Log& log, std::string_view reason) {
  log.Warning("upstream.end_unannounced",
              {{"reason", reason},
               {"effect", std::string_view("an answer without a length breaks off at its client")},
               {"hint", std::string_view("let the service send Content-Length or close_notify")}});
}

void LogTlsFailure(observe::Log& log, proxy::UpstreamConnection::End end, std::string_view reason) {
  const bool untrusted = end == proxy::UpstreamConnection::End::kUntrusted;
  log.Warning("upstream.handshake_failed",
              {{"reason", reason},
               {"effect", std::string_view("the service gets no request over this connection")},
               {"hint", untrusted ? std::string_view("see --upstream-ca-file and "
                                                     "--upstream-tls-name, and the certificate of "
                                                     "the service")
                                  : std::string_view("does the service speak TLS on this port, "
                                                     "and does it ask for a certificate?")}});
}

// The addresses for one loop, which counts in `counters`.
std::vector<proxy::StreamConnectionOptions> ConnectionsTo(
    const std::vector<proxy::upstream::Address>& upstreams,
    const std::shared_ptr<net::TlsContext>& tls, const ProxySettings& settings,
    http::http2::Counters& counters, observe::Log& log, proxy::upstream::FailureWatch& watch) {
  const bool http2 = settings.upstream.list.http2;
  const auto make_session = [http2, &counters]() -> std::unique_ptr<http::ClientSession> {
    if (http2) return std::make_unique<http::http2::ClientSession>(kHttp2Client, counters);
    return std::make_unique<http::http1::ClientSession>();
  };
  std::vector<proxy::StreamConnectionOptions> addresses;
  for (const proxy::upstream::Address& upstream : upstreams) {
    addresses.push_back(
        {.target = upstream.target,
         .name = upstream.name,
         .stream = {.tls = tls,
                    .server_name = upstream.tls_name,
                    .connect_timeout = settings.connect_timeout},
         .make_session = make_session,
         .http2 = http2,
         .on_unannounced_end = [&log](std::string_view reason) { LogUnannouncedEnd(log, reason); },
         .on_connect_failure = [&watch](std::string_view reason) { watch.OnConnectFailed(reason); },
         .on_tls_failure = [&log](proxy::UpstreamConnection::End end,
                                  std::string_view reason) { LogTlsFailure(log, end, reason); }});
  }
  return addresses;
}

proxy::ProxyOptions ProxyOptionsOf(const ProxySettings& settings,
                                   const std::vector<proxy::upstream::Address>& upstreams,
                                   const base::Clock& clock, http::http2::Counters& counters,
                                   observe::Log& log, proxy::upstream::FailureWatch& watch) {
  proxy::ProxyOptions options = settings.proxy;
  options.application.clock = &clock;
  options.relay.clock = &clock;
  options.relay.adds_date = true;
  options.addresses =
      ConnectionsTo(upstreams, settings.upstream.tls, settings, counters, log, watch);
  return options;
}

}  // namespace

SidecarLoop::SidecarLoop(const ProxySettings& settings,
                         const std::vector<proxy::upstream::Address>& upstreams,
                         const SidecarSessionOptions& session_options, proxy::Admission& admission,
                         net::EventLoop& loop, const base::DisciplinedClock& clock,
                         observe::Log& log, proxy::upstream::FailureWatch& upstream_watch)
    : settings_(settings),
      log_(log),
      upstream_watch_(upstream_watch),
      options_(ProxyOptionsOf(settings, upstreams, clock.source(), upstream_http2_, log,
                              upstream_watch)),
      proxy_(options_, admission, loop, clock),
      sessions_(proxy_.application(), session_options) {}

void SidecarLoop::SetUpstreams(const std::vector<proxy::upstream::Address>& upstreams,
                               const std::shared_ptr<net::TlsContext>& tls) {
  proxy_.SetAddresses(
      ConnectionsTo(upstreams, tls, settings_, upstream_http2_, log_, upstream_watch_));
}

SidecarSessionOptions SessionOptionsOf(const ProxySettings& settings, const base::Clock& clock) {
  SidecarSessionOptions options;
  options.clock = options.http1.clock = &clock;
  options.http1.cancels_abandoned = settings.cancels_abandoned;
  const std::string& client_field = settings.proxy.application.client_field;
  if (!client_field.empty()) {
    options.http1.never_nominated.push_back(client_field);
    options.http2.never_in_trailers.push_back(client_field);
  }
  if (settings.client_from_certificate) options.certificate_field = client_field;
  return options;
}

}  // namespace headgate::app
