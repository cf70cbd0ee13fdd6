#include "headgate/app/sidecar/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <system_error>
#include <utility>

#include "headgate/app/runtime/file_checks.h"
#include "headgate/app/settings/process_settings.h"
#include "headgate/app/settings/refusal_file.h"
#include "headgate/app/settings/setting_arguments.h"
#include "headgate/app/settings/tls_settings.h"
#include "headgate/app/settings/watch_settings.h"
#include "headgate/app/sidecar/share_settings.h"
#include "headgate/base/text.h"
#include "headgate/files/file_hint.h"
#include "headgate/handover/handover.h"
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

// The flags that are not settings.
struct PlanFlags {
  std::optional<std::string> log;
  std::optional<std::string> client;
};

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

class SidecarReader {
 public:
  explicit SidecarReader(Configuration& configuration)
      : configuration_(configuration), values_(configuration.settings) {}

  SidecarSettings Read(const PlanFlags& plan) {
    ReadPlan(plan);
    settings_.share = ReadShare(configuration_);
    settings_.fleet_pool = ReadFleet(configuration_, settings_.share);
    if (!settings_.plan) {
      ReadAddresses();
      ReadTls();
      ReadProxy();
      ReadHandover();
      ReadRules();
      ReadSizes();
    }
    return std::move(settings_);
  }

 private:
  void Refuse(std::string_view what, std::string_view hint) { configuration_.Refuse(what, hint); }

  void ReadPlan(const PlanFlags& plan) {
    if (!plan.log) {
      if (plan.client) Refuse("--plan-client without --plan", "--plan access.log --plan-client -1");
      return;
    }
    // The plan knows only the pool, so it would promise too much if rules refuse requests too.
    if (HasRules(values_) || !values_.auth.empty()) {
      Refuse("--plan with rules",
             "a plan knows the pool alone; remove --rules, --rule, --watch and --mappings");
    }
    if (values_.scope == "fleet") {
      Refuse("--plan with --scope fleet",
             "a plan knows one pool that sees all requests; remove --scope");
    }
    const auto client = replay::ClientPlace::Parse(plan.client.value_or("1"));
    if (client.ok()) {
      settings_.plan = {.log = *plan.log, .client = *client};
    } else {
      Refuse(fmt::format("--plan-client: {}", std::string(client.status().message())),
             "--plan-client -1");
    }
  }

  void ReadAddresses() {
    const auto read = [](const std::string& text) {
      return ParseListenAddress(text).value_or(ListenAddress{});
    };
    for (const std::string& text : values_.listen) {
      const ListenAddress& address = settings_.listen.emplace_back(read(text));
      if (address.fields || !address.refusal_file.empty()) {
        Refuse(fmt::format("--listen {}: an address has no fields or refusal_file here",
                           rule::Quote(text)),
               "--rate-limit-fields and --refusal-file are for all addresses");
      }
    }
    if (!values_.admin_listen.empty()) settings_.admin = read(values_.admin_listen);
    ReadCredential(configuration_);
    auto upstreams = proxy::upstream::ParseList(values_.upstream);
    if (upstreams.ok()) {
      settings_.upstream.list = *std::move(upstreams);
    } else {
      Refuse(fmt::format("--upstream: {}", std::string(upstreams.status().message())),
             "for example --upstream http://127.0.0.1:9000");
    }
  }

  void ReadTls() {
    CheckCertificates(configuration_);
    if (values_.client_from_certificate == "yes") {
      // On an address without TLS, a client could name itself.
      const bool all = std::ranges::all_of(settings_.listen, &ListenAddress::tls);
      if (!all || values_.tls_client_ca_file.empty()) {
        Refuse(
            "--client-from-certificate needs --tls-client-ca-file, and tls: before each --listen",
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
    proxy.checks.path = values_.check_path;
    proxy.checks.interval = values_.check_interval;
  }

  void ReadHandover() {
    const std::string& path = values_.handover;
    const auto refuse = [&](std::string_view why) {
      Refuse(fmt::format("--handover {}", why),
             "--handover /run/headgate/handover, or leave it out");
    };
    if (path.empty()) {
      // A settings file may say that there is none; a flag without a path is a mistake.
      const auto given = configuration_.origins.find("handover");
      if (given != configuration_.origins.end() && given->second.mark.line == 0)
        refuse("needs a path");
      return;
    }
    if (path.size() > handover::kPathBytesMax) {
      return refuse(fmt::format("has a path of {} bytes; it may have {}", path.size(),
                                handover::kPathBytesMax));
    }
    const auto full = [](const std::string& name) {
      std::error_code none;
      return std::filesystem::absolute(name, none).lexically_normal();
    };
    const auto is_the_same = [&](const ListenAddress& address) {
      return address.endpoint.is_unix() && full(address.endpoint.address) == full(path);
    };
    if (std::ranges::any_of(settings_.listen, is_the_same) ||
        (settings_.admin && is_the_same(*settings_.admin)))
      refuse("names a socket for clients: it must be a path of its own");
  }

  // Settings that have no effect without the setting `main` are refused without it.
  void CheckUnused(bool (*is_of_main)(const Setting&), std::string_view main,
                   std::string_view example) {
    const std::string unused = ChangedSettings(configuration_, is_of_main);
    if (unused.empty()) return;
    const std::string_view first = std::string_view(unused).substr(0, unused.find(','));
    Refuse(fmt::format("{} without --{}", FlagOf(*FindSetting(first, Command::kSidecar)), main),
           fmt::format("add {}, or remove it", example));
  }

  void ReadRules() {
    CheckAuditLog(configuration_);
    CheckUsers(configuration_);
    if (values_.watch.empty()) {
      CheckUnused(IsOfWatch, "watch", "--watch zk://HOST:PORT/path");
    } else {
      CheckWatch(configuration_);
    }
    const bool is_fleet = values_.scope == "fleet";
    const bool has_store = !values_.store.empty();
    if (!has_store) CheckUnused(IsOfStore, "store", "--store URL");
    if (is_fleet && !has_store)
      Refuse("--scope fleet without --store", "add --store redis://HOST:PORT");
    if (has_store && (HasRules(values_) || is_fleet))
      settings_.store = ReadStoreSettings(configuration_);
    if (HasRules(values_)) return;
    values_.max_buckets = values_.max_limits = 1;  // nothing is counted
    if (!values_.auth.empty()) {
      Refuse("--mappings without rules",
             "add --rules PATH, --rule TEXT or --watch URL; mappings say which rule a request "
             "meets");
    }
    if (has_store && !is_fleet) {
      Refuse("--store without rules",
             "add --rules PATH, --rule TEXT or --watch URL, or --scope fleet: replicas share the "
             "pool");
    }
  }

  void ReadSizes() {
    settings_.threads = ThreadsOf(values_);
    // The clients may all come through one proxy.
    if (values_.max_connections_per_address == 0)
      values_.max_connections_per_address = values_.max_connections;
    const auto per_loop = [&](uint64_t count) {
      return std::max<uint64_t>(1, count / settings_.threads);
    };
    proxy::UpstreamsOptions& upstreams = settings_.proxy.upstreams;
    upstreams.connections_max = per_loop(values_.upstream_connections);
    settings_.proxy.application.preflights_max = std::max<size_t>(1, upstreams.connections_max / 2);
    upstreams.queue_max = per_loop(values_.queue);
    upstreams.exchanges_per_connection = settings_.upstream.list.http2 ? kHttp2Streams : 1;
  }

  Configuration& configuration_;
  Settings& values_;
  SidecarSettings settings_;
};

}  // namespace

std::optional<SidecarSettings> ReadSidecarSettings(const std::vector<std::string>& arguments,
                                                   const Environment& environment,
                                                   const Console& console) {
  PlanFlags plan;
  const auto parsed =
      ParseSettingArguments(Command::kSidecar, arguments, console,
                            {{"--plan", &plan.log}, {"--plan-client", &plan.client}});
  if (!parsed) return std::nullopt;
  Configuration configuration = Configure(*parsed, environment);
  UseDefaultsOfStore(configuration);
  if (parsed->json && !parsed->print_config)
    configuration.Refuse("--json without --print-config", "--print-config --json");
  SidecarSettings settings;
  if (parsed->print_config) {
    settings.printed =
        parsed->json ? PrintConfigurationJson(configuration) : PrintConfiguration(configuration);
  } else {
    settings = SidecarReader(configuration).Read(plan);
  }
  if (SayProblems(configuration, console)) return std::nullopt;
  settings.configuration = std::move(configuration);
  return settings;
}

}  // namespace headgate::app
