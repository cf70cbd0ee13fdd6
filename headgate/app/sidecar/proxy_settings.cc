#include "headgate/app/sidecar/proxy_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "headgate/app/settings/process_settings.h"
#include "headgate/app/settings/refusal_file.h"
#include "headgate/app/sidecar/share_settings.h"
#include "headgate/base/text.h"
#include "headgate/files/file_hint.h"
#include "headgate/http/token.h"
#include "headgate/rule/quote.h"
#include "headgate/wire/origin.h"

namespace headgate::app {
namespace {

// Streams that an upstream with HTTP/2 is expected to take on a connection (RFC 9113, 6.5.2
// recommends at least this many).
constexpr size_t kHttp2Streams = 100;
// A proxy removes these fields from each request, or they say how it is read.
constexpr std::string_view kFieldsOfConnections[] = {
    "Connection", "Content-Length",    "Expect", "Host", "Keep-Alive", "Proxy-Connection", "TE",
    "Trailer",    "Transfer-Encoding", "Upgrade"};

// Why this field cannot name clients; empty if it can.
std::string_view ProblemOfClientField(std::string_view name) {
  if (!http::IsToken(name)) return "is not the name of a field";
  const bool of_connection =
      std::any_of(std::begin(kFieldsOfConnections), std::end(kFieldsOfConnections),
                  [&](std::string_view field) { return base::EqualsIgnoreCase(name, field); });
  return of_connection ? "belongs to a connection and names no client" : "";
}

// RFC 9209, 2: a token as in RFC 8941, 3.3.4, if the name is one, and otherwise a string.
std::string NameInProxyStatus(std::string_view via) {
  if (via == "none") return proxy::RelayOptions().name;
  const bool is_token = base::IsLetter(via.front()) || via.front() == '*';
  return is_token ? std::string(via) : fmt::format("\"{}\"", via);
}

proxy::Forwarding ForwardingOf(std::string_view word) {
  if (word == "append") return proxy::Forwarding::kAppend;
  return word == "replace" ? proxy::Forwarding::kReplace : proxy::Forwarding::kOff;
}

class ProxyReader {
 public:
  explicit ProxyReader(Configuration& configuration)
      : configuration_(configuration),
        values_(configuration.settings),
        listen_flag_(configuration.command == Command::kSidecar ? "--listen" : "--listen-proxy") {}

  ProxySettings Read() {
    settings_.share = ReadShare(configuration_);
    settings_.fleet_pool = ReadFleet(configuration_, settings_.share);
    ReadAddresses();
    ReadTls();
    ReadProxy();
    ReadRules();
    ReadSizes();
    return std::move(settings_);
  }

 private:
  void Refuse(std::string_view what, std::string_view hint) { configuration_.Refuse(what, hint); }

  void ReadAddresses() {
    for (const std::string& text : values_.listen_proxy) {
      const ListenAddress& address =
          settings_.listen.emplace_back(ParseListenAddress(text).value_or(ListenAddress{}));
      if (address.fields || !address.refusal_file.empty()) {
        Refuse(fmt::format("{} {}: an address has no fields or refusal_file here", listen_flag_,
                           rule::Quote(text)),
               "--rate-limit-fields and --refusal-file are for all addresses");
      }
    }
    auto upstreams = proxy::upstream::ParseList(values_.upstream);
    if (upstreams.ok()) {
      settings_.upstream.list = *std::move(upstreams);
    } else {
      Refuse(fmt::format("--upstream: {}", std::string(upstreams.status().message())),
             "for example --upstream http://127.0.0.1:9000");
    }
  }

  void ReadTls() {
    settings_.client_from_certificate = values_.client_from_certificate == "yes";
    if (settings_.client_from_certificate) {
      // On an address without TLS, a client could name itself.
      const bool all = std::ranges::all_of(settings_.listen, &ListenAddress::tls);
      if (!all || values_.tls_client_ca_file.empty()) {
        Refuse(fmt::format("--client-from-certificate needs --tls-client-ca-file, and tls: before "
                           "each {}",
                           listen_flag_),
               "the name in a certificate counts if an authority vouches for it");
      }
      if (values_.client_header == "none")
        Refuse("--client-from-certificate and --client-header none exclude each other",
               "--client-header names the field that gets the name in the certificate");
    }
    ReadUpstreamTls();
  }

  void ReadUpstreamTls() {
    settings_.upstream.resolve = values_.upstream_resolve;
    settings_.upstream.tls_name = values_.upstream_tls_name;
    const std::string* const files[] = {
        &values_.upstream_ca_file, &values_.upstream_certificate_file, &values_.upstream_key_file};
    if (!settings_.upstream.list.tls) {
      const bool has_file =
          std::ranges::any_of(files, [](const auto* file) { return *file != ""; });
      if (has_file || !values_.upstream_tls_name.empty())
        Refuse("TLS to the upstream needs an --upstream with https:// or h2://",
               "remove the settings of the upstream's TLS, or write https:// or h2://");
      return;
    }
    settings_.upstream.tls_files = {.ca_file = *files[0],
                                    .certificate_file = *files[1],
                                    .key_file = *files[2],
                                    .http2 = settings_.upstream.list.http2};
    auto context = net::TlsContext::Load(settings_.upstream.tls_files);
    if (context.ok()) {
      settings_.upstream.tls = *std::move(context);
      return;
    }
    std::string hint = "`headgate help sidecar --all` explains each setting";
    for (const std::string* const file : files) hint = files::HintOnFile(*file, hint);
    Refuse(std::string(context.status().message()), hint);
  }

  void ReadCors() {
    for (const std::string& origin : values_.cors_origin) {
      if (auto problem = wire::CheckAllowedOrigin(origin)) {
        Refuse(fmt::format("--cors-origin {} {}", rule::Quote(origin), problem->message),
               problem->hint);
      }
    }
    proxy::ProxyOptions& proxy = settings_.proxy;
    proxy.relay.cors = {.origins = values_.cors_origin, .dialect = proxy.application.dialect};
    proxy.application.passes_preflights = values_.preflights == "pass";
  }

  void ReadVia() {
    proxy::ProxyOptions& proxy = settings_.proxy;
    const std::string& via = values_.via;
    if (!proxy::IsViaName(via)) {
      return Refuse(
          fmt::format("--via {} is not a name: it has letters, digits and some signs such as '-' "
                      "and '.', at most {} of them",
                      rule::Quote(via), proxy::kViaNameBytesMax),
          "--via edge-1, or none: Via is passed on as it is");
    }
    proxy.application.forwarded.via = via == "none" ? "" : via;
    proxy.relay.says_reason = values_.no_reason == "no";
    if (proxy.relay.says_reason) proxy.relay.name = NameInProxyStatus(via);
  }

  void ReadProxy() {
    proxy::ProxyOptions& proxy = settings_.proxy;
    const std::string& client_header = values_.client_header;
    if (const std::string_view why = ProblemOfClientField(client_header); !why.empty()) {
      Refuse(fmt::format("--client-header {} {}", rule::Quote(client_header), why),
             "--client-header X-Client-Id, or none: the client's address is its id");
    }
    if (!settings_.upstream.list.targets.empty()) {
      const net::StreamTarget& first = settings_.upstream.list.targets.front();
      proxy.application.default_authority =
          first.unix_path.empty() ? first.ToString() : "localhost";
    }
    proxy.application.cycle = settings_.share.pool.cycle;
    proxy.application.client_field = client_header == "none" ? "" : client_header;
    RefusalFile refusal = ReadRefusalFile(values_.refusal_file);
    for (const rule::Problem& problem : refusal.problems)
      configuration_.AddProblem("refusal_file", rule::PlaceAndMessage(problem), problem.hint);
    proxy.application.refusal = std::move(refusal.refusal);
    proxy.application.dialect = *wire::DialectByName(values_.rate_limit_fields);
    proxy.application.describes_admitted =
        proxy.application.dialect != wire::RateLimitDialect::kNone;
    ReadCors();
    proxy.application.forwarded.x_forwarded = ForwardingOf(values_.x_forwarded);
    proxy.application.forwarded.forwarded = ForwardingOf(values_.forwarded);
    ReadVia();
    proxy.relay.answer_timeout = values_.answer_timeout;
    proxy.relay.idle_timeout = values_.idle_timeout;
    proxy.relay.tunnel_idle_timeout = values_.tunnel_idle_timeout;
    proxy.relay.queue_timeout = values_.queue_timeout;
    if (!values_.check_path.empty() && !values_.check_path.starts_with('/')) {
      Refuse(
          fmt::format("--check-path {} does not begin with '/'", rule::Quote(values_.check_path)),
          "--check-path /healthz");
    }
    settings_.connect_timeout = values_.connect_timeout;
    settings_.cancels_abandoned = values_.abandoned == "cancel";
    proxy.checks.path = values_.check_path;
    proxy.checks.interval = values_.check_interval;
  }

  void ReadRules() {
    if (values_.scope == "fleet" && values_.store.empty())
      Refuse("--scope fleet without --store", "add --store redis://HOST:PORT");
    if (!values_.mappings.empty() && !HasRules(values_)) {
      Refuse("--mappings without rules",
             "add --rules PATH, --rule TEXT or --watch URL; mappings say which rule a request "
             "meets");
    }
  }

  void ReadSizes() {
    const uint32_t threads = ThreadsOf(values_);
    const auto per_loop = [&](uint64_t count) { return std::max<uint64_t>(1, count / threads); };
    proxy::UpstreamsOptions& upstreams = settings_.proxy.upstreams;
    upstreams.connections_max = per_loop(values_.upstream_connections);
    settings_.proxy.application.preflights_max = std::max<size_t>(1, upstreams.connections_max / 2);
    upstreams.queue_max = per_loop(values_.queue);
    upstreams.exchanges_per_connection = settings_.upstream.list.http2 ? kHttp2Streams : 1;
  }

  Configuration& configuration_;
  const Settings& values_;
  const std::string_view listen_flag_;
  ProxySettings settings_;
};

}  // namespace

ProxySettings ReadProxySettings(Configuration& configuration) {
  return ProxyReader(configuration).Read();
}

}  // namespace headgate::app
