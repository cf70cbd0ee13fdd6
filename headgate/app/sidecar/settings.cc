#include "headgate/app/sidecar/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "headgate/app/settings/file_hint.h"
#include "headgate/app/settings/flag_reader.h"
#include "headgate/app/settings/refusal_file.h"
#include "headgate/app/sidecar/flags.h"
#include "headgate/app/sidecar/handover.h"
#include "headgate/app/sidecar/rule_settings.h"
#include "headgate/app/sidecar/share_settings.h"
#include "headgate/base/text.h"
#include "headgate/files/files.h"
#include "headgate/http/known_hosts.h"
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
// The timers of the proxy tick each 100 ms, so a check could not keep a shorter one.
constexpr base::Duration kCheckIntervalMin = std::chrono::milliseconds(200);
// Each lookup needs a thread for a moment, and loads name servers that others run.
constexpr base::Duration kResolveMin = std::chrono::milliseconds(100);
constexpr base::Duration kResolveMax = std::chrono::hours(1);
constexpr uint64_t kThreadsMax = 256;
constexpr uint64_t kCountMax = 1'000'000;

void ReadAddresses(const SidecarFlags& flags, FlagReader& reader, SidecarSettings& settings) {
  std::vector<std::string> listen = flags.listen;
  if (listen.empty()) listen.emplace_back("127.0.0.1:8080");
  for (const std::string& text : listen) {
    const ListenAddress& address = settings.listen.emplace_back(reader.Address("--listen", text));
    if (address.fields || !address.refusal_file.empty()) {
      reader.Refuse(fmt::format("--listen {}: an address has no fields or refusal_file here",
                                rule::Quote(text)),
                    "--rate-limit-fields and --refusal-file are for all addresses");
    }
  }
  if (flags.admin_listen != "none")
    settings.admin = reader.Address("--admin-listen", flags.admin_listen);
  if (!flags.credential_file.empty()) {
    auto credential = files::ReadFirstLine(flags.credential_file);
    if (!credential.ok()) {
      reader.Refuse(std::string(credential.status().message()),
                    HintOnFile(flags.credential_file, "its first line is the credential"));
    } else {
      settings.credential = *std::move(credential);
    }
  }
  for (const std::string& name : flags.known_host) {
    if (const absl::Status status = http::KnownHosts::Check(name); !status.ok()) {
      reader.Refuse(fmt::format("--known-host: {}", std::string(status.message())),
                    "a name, *.example.com for all names below it, or * for any");
    }
  }
  settings.known_hosts = flags.known_host;
  auto upstreams = ParseUpstreams(flags.upstream);
  if (upstreams.ok()) {
    settings.upstreams = *std::move(upstreams);
  } else {
    reader.Refuse(fmt::format("--upstream: {}", std::string(upstreams.status().message())),
                  "for example --upstream http://127.0.0.1:9000");
  }
  settings.upstream_resolve = reader.Time("--upstream-resolve", flags.upstream_resolve);
  if (settings.upstream_resolve < kResolveMin || settings.upstream_resolve > kResolveMax) {
    reader.Refuse(fmt::format("--upstream-resolve {} is not from 100ms to 1h",
                              rule::Quote(flags.upstream_resolve)),
                  "names are looked up this often; 5s is right for most");
  }
}

std::vector<std::string> FilesOf(const SidecarTlsFlags& flags) {
  std::vector<std::string> files = {flags.client_ca_file, flags.upstream_ca_file,
                                    flags.upstream_certificate_file, flags.upstream_key_file};
  files.insert(files.end(), flags.certificate_file.begin(), flags.certificate_file.end());
  files.insert(files.end(), flags.key_file.begin(), flags.key_file.end());
  return files;
}

void ReadTls(const SidecarFlags& flags, FlagReader& reader, SidecarSettings& settings) {
  if (!reader.ok()) return;
  const auto has_tls = [](const ListenAddress& address) { return address.tls; };
  const auto& listen = settings.listen;
  auto tls = ReadSidecarTls(flags.tls,
                            {.some_listen = std::any_of(listen.begin(), listen.end(), has_tls) ||
                                            (settings.admin && settings.admin->tls),
                             .all_listen = std::all_of(listen.begin(), listen.end(), has_tls),
                             .upstream = settings.upstreams.tls,
                             .upstream_http2 = settings.upstreams.http2});
  if (!tls.ok()) {
    std::string hint = "`headgate help sidecar` explains each flag";
    for (const std::string& file : FilesOf(flags.tls)) hint = HintOnFile(file, hint);
    return reader.Refuse(std::string(tls.status().message()), hint);
  }
  settings.tls = *std::move(tls);
  if (settings.tls.client_from_certificate && flags.client_header == "none")
    reader.Refuse("--client-from-certificate and --client-header none exclude each other",
                  "--client-header names the field that gets the name in the certificate");
}

void ReadPlan(const SidecarFlags& flags, FlagReader& reader, SidecarSettings& settings) {
  if (!flags.plan) {
    if (flags.plan_client)
      reader.Refuse("--plan-client without --plan", "--plan access.log --plan-client -1");
    return;
  }
  // The plan knows only the pool, so it would promise too much if rules refuse requests too.
  if (!flags.rules.empty() || !flags.rule.empty() || flags.watch.any() || !flags.mappings.empty()) {
    reader.Refuse("--plan with rules",
                  "a plan knows the pool alone; remove --rules, --rule, --watch and --mappings");
  }
  if (flags.scope == "fleet") {
    reader.Refuse("--plan with --scope fleet",
                  "a plan knows one pool that sees all requests; remove --scope");
  }
  const auto client = replay::ClientPlace::Parse(flags.plan_client.value_or("1"));
  if (client.ok()) {
    settings.plan = {.log = *flags.plan, .client = *client};
  } else {
    reader.Refuse(fmt::format("--plan-client: {}", std::string(client.status().message())),
                  "--plan-client -1");
  }
}

// Why this field cannot name clients; empty if it can.
std::string_view ProblemOfClientField(std::string_view name) {
  if (!http::IsToken(name)) return "is not the name of a field";
  const bool of_connection =
      std::any_of(std::begin(kFieldsOfConnections), std::end(kFieldsOfConnections),
                  [&](std::string_view field) { return base::EqualsIgnoreCase(name, field); });
  return of_connection ? "belongs to a connection and names no client" : "";
}

void ReadVia(std::string_view name, FlagReader& reader, proxy::ForwardedOptions& forwarded) {
  if (!proxy::IsViaName(name)) {
    reader.Refuse(
        fmt::format("--via {} is not a name: it has letters, digits and some signs such as '-' and "
                    "'.', at most {} of them",
                    rule::Quote(name), proxy::kViaNameBytesMax),
        "--via edge-1, or none: Via is passed on as it is");
  }
  forwarded.via = name == "none" ? "" : name;
}

// RFC 9209, 2: a token as in RFC 8941, 3.3.4, if the name is one, and otherwise a string.
std::string NameInProxyStatus(std::string_view via) {
  if (via == "none") return proxy::RelayOptions().name;
  const bool is_token = base::IsLetter(via.front()) || via.front() == '*';
  return is_token ? std::string(via) : fmt::format("\"{}\"", via);
}

void ReadHandover(const SidecarFlags& flags, FlagReader& reader, SidecarSettings& settings) {
  settings.handover = flags.handover.value_or("");
  if (!flags.handover || !reader.ok()) return;
  const auto refuse = [&](std::string_view why) {
    reader.Refuse(fmt::format("--handover {}", why),
                  "--handover /run/headgate/handover, or leave it out");
  };
  if (settings.handover.empty()) return refuse("needs a path");
  if (settings.handover.size() > kHandoverPathBytesMax) {
    return refuse(fmt::format("has a path of {} bytes; it may have {}", settings.handover.size(),
                              kHandoverPathBytesMax));
  }
  const auto full = [](const std::string& path) {
    std::error_code none;
    return std::filesystem::absolute(path, none).lexically_normal();
  };
  const auto is_the_same = [&](const ListenAddress& address) {
    return address.endpoint.is_unix() && full(address.endpoint.address) == full(settings.handover);
  };
  if (std::any_of(settings.listen.begin(), settings.listen.end(), is_the_same) ||
      (settings.admin && is_the_same(*settings.admin)))
    refuse("names a socket for clients: it must be a path of its own");
}

void ReadCors(const SidecarFlags& flags, FlagReader& reader, proxy::ProxyOptions& proxy) {
  for (const std::string& origin : flags.cors_origin) {
    if (auto problem = wire::CheckAllowedOrigin(origin)) {
      reader.Refuse(fmt::format("--cors-origin {} {}", rule::Quote(origin), problem->message),
                    problem->hint);
    }
  }
  proxy.relay.cors = {.origins = flags.cors_origin, .dialect = proxy.application.dialect};
  proxy.application.passes_preflights =
      reader.Choice("--preflights", flags.preflights, {"pass", "count"}) == 0;
}

void ReadProxy(const SidecarFlags& flags, FlagReader& reader, SidecarSettings& settings) {
  proxy::ProxyOptions& proxy = settings.proxy;
  if (const std::string_view why = ProblemOfClientField(flags.client_header); !why.empty()) {
    reader.Refuse(fmt::format("--client-header {} {}", rule::Quote(flags.client_header), why),
                  "--client-header X-Client-Id, or none: the client's address is its id");
  }
  if (!settings.upstreams.targets.empty()) {
    const net::StreamTarget& first = settings.upstreams.targets.front();
    proxy.application.default_authority = first.unix_path.empty() ? first.ToString() : "localhost";
  }
  proxy.application.cycle = settings.share.pool.cycle;
  proxy.application.client_field = flags.client_header == "none" ? "" : flags.client_header;
  const auto dialect = wire::DialectByName(flags.rate_limit_fields);
  if (!dialect) {
    reader.Refuse(fmt::format("--rate-limit-fields {} is not a dialect",
                              rule::Quote(flags.rate_limit_fields)),
                  base::DialectNames());
  }
  RefusalFile refusal = ReadRefusalFile(flags.refusal_file);
  for (const rule::Problem& problem : refusal.problems)
    reader.Refuse("--refusal-file: " + rule::PlaceAndMessage(problem), problem.hint);
  proxy.application.refusal = std::move(refusal.refusal);
  proxy.application.dialect = dialect.value_or(wire::RateLimitDialect::kDraft);
  proxy.application.describes_admitted = dialect != wire::RateLimitDialect::kNone;
  ReadCors(flags, reader, proxy);
  const auto forwarding = [&](std::string_view flag, std::string_view word) {
    return static_cast<proxy::Forwarding>(reader.Choice(flag, word, {"append", "replace", "off"}));
  };
  proxy.application.forwarded.x_forwarded = forwarding("--x-forwarded", flags.x_forwarded);
  proxy.application.forwarded.forwarded = forwarding("--forwarded", flags.forwarded);
  ReadVia(flags.via, reader, proxy.application.forwarded);
  if (!flags.no_reason && reader.ok()) proxy.relay.name = NameInProxyStatus(flags.via);
  proxy.relay.says_reason = !flags.no_reason;
  proxy.relay.answer_timeout = reader.Time("--answer-timeout", flags.answer_timeout);
  proxy.relay.idle_timeout = reader.Time("--idle-timeout", flags.idle_timeout);
  proxy.relay.tunnel_idle_timeout = reader.Time("--tunnel-idle-timeout", flags.tunnel_idle_timeout);
  proxy.relay.queue_timeout = reader.Time("--queue-timeout", flags.queue_timeout);
  if (!flags.check_path.empty() && !flags.check_path.starts_with('/')) {
    reader.Refuse(
        fmt::format("--check-path {} does not begin with '/'", rule::Quote(flags.check_path)),
        "--check-path /healthz");
  }
  proxy.checks.path = flags.check_path;
  proxy.checks.interval = reader.Time("--check-interval", flags.check_interval);
  if (proxy.checks.interval < kCheckIntervalMin) {
    reader.Refuse(
        fmt::format("--check-interval {} is shorter than 200ms", rule::Quote(flags.check_interval)),
        "each event loop asks each address once in this time");
  }
  settings.connect_timeout = reader.Time("--connect-timeout", flags.connect_timeout);
  settings.drain_timeout = reader.Time("--drain-timeout", flags.drain_timeout);
  settings.cancels_abandoned =
      reader.Choice("--abandoned", flags.abandoned, {"cancel", "finish"}) == 0;
  ReadHandover(flags, reader, settings);
}

void ReadSizes(const SidecarFlags& flags, FlagReader& reader, SidecarSettings& settings) {
  settings.threads =
      flags.threads == 0
          ? std::max(1u, std::thread::hardware_concurrency())
          : static_cast<uint32_t>(reader.Number("--threads", flags.threads, kThreadsMax));
  settings.connections_max = reader.Number("--max-connections", flags.max_connections, kCountMax);
  settings.connections_per_address_max =
      flags.max_connections_per_address == 0
          ? settings.connections_max
          : reader.Number("--max-connections-per-address", flags.max_connections_per_address,
                          kCountMax);
  const auto per_loop = [&](std::string_view flag, uint64_t count) {
    return std::max<uint64_t>(1, reader.Number(flag, count, kCountMax) / settings.threads);
  };
  proxy::UpstreamsOptions& upstreams = settings.proxy.upstreams;
  upstreams.connections_max = per_loop("--upstream-connections", flags.upstream_connections);
  settings.proxy.application.preflights_max = std::max<size_t>(1, upstreams.connections_max / 2);
  upstreams.queue_max = per_loop("--queue", flags.queue);
  upstreams.exchanges_per_connection = settings.upstreams.http2 ? kHttp2Streams : 1;
  settings.log_level = static_cast<observe::Level>(
      reader.Choice("--log-level", flags.log_level, {"debug", "info", "warning", "error"}));
  settings.log_format = reader.Choice("--log-format", flags.log_format, {"text", "json"}) == 0
                            ? observe::LogFormat::kText
                            : observe::LogFormat::kJson;
}

}  // namespace

std::optional<SidecarSettings> ReadSidecarFlags(const std::vector<std::string>& arguments,
                                                const Environment& environment,
                                                const Console& console) {
  SidecarFlags named;  // read first, because they name the settings file
  if (!ParseArguments(SpecOf(named), arguments, console)) return std::nullopt;
  SidecarFlags flags;
  FlagSources sources;
  const ArgumentSpec spec = SpecOf(flags);
  if (!sources.Read(spec, OnlyFlagsOfSidecar(), named.sources, environment, console) ||
      !ParseArguments(spec, arguments, console))
    return std::nullopt;
  sources.NoteGiven(arguments);
  SidecarSettings settings;
  if (flags.sources.print_config) settings.printed = sources.Print(spec, flags.sources.json);
  FlagReader reader(console, &sources);
  if (flags.sources.json && !flags.sources.print_config)
    reader.Refuse("--json without --print-config", "--print-config --json");
  ReadPlan(flags, reader, settings);
  settings.share = ReadShare(flags, reader);
  settings.fleet_pool = ReadFleet(flags, reader, settings.share);
  if (settings.plan && reader.ok()) return settings;
  ReadAddresses(flags, reader, settings);
  ReadTls(flags, reader, settings);
  ReadProxy(flags, reader, settings);
  SidecarRuleSettings rules = ReadRules(flags, reader);
  settings.engine = std::move(rules.engine);
  settings.store = std::move(rules.store);
  ReadSizes(flags, reader, settings);
  if (!reader.ok()) return std::nullopt;
  return settings;
}

}  // namespace headgate::app
