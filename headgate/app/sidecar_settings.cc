#include "headgate/app/sidecar_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <thread>
#include <utility>

#include "headgate/app/arguments.h"
#include "headgate/base/random_secret.h"
#include "headgate/base/text.h"
#include "headgate/disk/files.h"
#include "headgate/http/token.h"
#include "headgate/net/server_list.h"
#include "headgate/rule/duration.h"
#include "headgate/rule/quote.h"

namespace headgate::app {
namespace {

struct Scheme {
  std::string_view prefix;
  bool http2;
  bool tls;
};
constexpr std::array<Scheme, 4> kSchemes = {{{"http://", false, false},
                                             {"h2c://", true, false},
                                             {"https://", false, true},
                                             {"h2://", true, true}}};
constexpr std::string_view kUnix = "unix:";
constexpr uint16_t kDefaultPort = 80;
constexpr uint16_t kDefaultTlsPort = 443;
constexpr size_t kUpstreamsMax = 256;
// Streams that an upstream with HTTP/2 is expected to take on a connection (RFC 9113, 6.5.2
// recommends at least this many).
constexpr size_t kHttp2Streams = 100;
// They are taken out of each request, or say how it is read.
constexpr std::string_view kFieldsOfConnections[] = {
    "Connection", "Content-Length",    "Expect", "Host", "Keep-Alive", "Proxy-Connection", "TE",
    "Trailer",    "Transfer-Encoding", "Upgrade"};
constexpr uint64_t kThreadsMax = 256;
constexpr uint64_t kCountMax = 1'000'000;
constexpr uint64_t kBucketsMax = uint64_t{1} << 36;

struct Flags {
  std::vector<std::string> listen;
  SidecarTlsFlags tls;
  std::string admin_listen = "127.0.0.1:8081";
  std::string credential_file;
  std::string upstream;
  std::string capacity;
  std::string cycle = "10s";
  std::string reservation = "10%";
  std::string on_new_client = "redivide";
  std::string reclaim = "next_cycle";
  std::string client_header = "X-Client-Id";
  std::optional<std::string> anonymous;
  uint64_t clients = 1024;
  std::string mode = "enforce";
  std::vector<std::string> rules;
  std::vector<std::string> rule;
  std::string mappings;
  uint64_t max_buckets = Settings{}.max_buckets;
  std::string store;
  std::string store_password_file;
  std::optional<std::string> store_timeout;
  std::optional<std::string> on_store_failure;
  std::string rate_limit_fields = "draft";
  std::string x_forwarded = "append";
  std::string forwarded = "off";
  bool no_reason = false;
  std::string connect_timeout = "5s";
  std::string answer_timeout = "1m";
  std::string idle_timeout = "5m";
  std::string tunnel_idle_timeout = "1h";
  std::string queue_timeout = "5s";
  std::string drain_timeout = "10s";
  std::string handover;
  std::string check_path;
  std::string check_interval = "5s";
  uint64_t upstream_connections = 512;
  uint64_t queue = 1024;
  uint64_t max_connections = 10'000;
  uint64_t max_connections_per_address = 0;
  uint64_t threads = 0;
  std::string log_level = "info";
  std::string log_format = "text";
  std::optional<std::string> plan;
  std::optional<std::string> plan_client;
};

ArgumentSpec SpecOf(Flags& flags) {
  ArgumentSpec spec{.command = "sidecar",
                    .flags = {{"--listen", &flags.listen},
                              {"--admin-listen", &flags.admin_listen},
                              {"--credential-file", &flags.credential_file},
                              {"--upstream", &flags.upstream},
                              {"--capacity", &flags.capacity},
                              {"--cycle", &flags.cycle},
                              {"--reservation", &flags.reservation},
                              {"--on-new-client", &flags.on_new_client},
                              {"--reclaim", &flags.reclaim},
                              {"--client-header", &flags.client_header},
                              {"--anonymous", &flags.anonymous},
                              {"--clients", &flags.clients},
                              {"--mode", &flags.mode},
                              {"--rules", &flags.rules},
                              {"--rule", &flags.rule},
                              {"--mappings", &flags.mappings},
                              {"--max-buckets", &flags.max_buckets},
                              {"--store", &flags.store},
                              {"--store-password-file", &flags.store_password_file},
                              {"--store-timeout", &flags.store_timeout},
                              {"--on-store-failure", &flags.on_store_failure},
                              {"--rate-limit-fields", &flags.rate_limit_fields},
                              {"--x-forwarded", &flags.x_forwarded},
                              {"--forwarded", &flags.forwarded},
                              {"--no-reason", &flags.no_reason},
                              {"--connect-timeout", &flags.connect_timeout},
                              {"--answer-timeout", &flags.answer_timeout},
                              {"--idle-timeout", &flags.idle_timeout},
                              {"--tunnel-idle-timeout", &flags.tunnel_idle_timeout},
                              {"--queue-timeout", &flags.queue_timeout},
                              {"--drain-timeout", &flags.drain_timeout},
                              {"--handover", &flags.handover},
                              {"--check-path", &flags.check_path},
                              {"--check-interval", &flags.check_interval},
                              {"--upstream-connections", &flags.upstream_connections},
                              {"--queue", &flags.queue},
                              {"--max-connections", &flags.max_connections},
                              {"--max-connections-per-address", &flags.max_connections_per_address},
                              {"--threads", &flags.threads},
                              {"--log-level", &flags.log_level},
                              {"--log-format", &flags.log_format},
                              {"--plan", &flags.plan},
                              {"--plan-client", &flags.plan_client}}};
  flags.tls.AddTo(spec.flags);
  return spec;
}

// Reads flags into settings. The first problem is on the console; then ok() is false, and the rest
// of the settings have no meaning.
class Reader {
 public:
  explicit Reader(const Console& console) : console_(console) {}

  bool ok() const { return ok_; }
  void Refuse(std::string_view what, std::string_view hint) {
    if (std::exchange(ok_, false)) console_.Error(what, hint);
  }

  base::Duration Time(std::string_view flag, std::string_view text) {
    const auto time = rule::ParseDuration(text);
    if (time.ok() && *time >= std::chrono::milliseconds(1) && *time <= std::chrono::hours(24 * 365))
      return *time;
    Refuse(fmt::format("{} {} is not a duration from 1ms to 365d", flag, rule::Quote(text)),
           fmt::format("for example {} 10s", flag));
    return {};
  }
  uint64_t Number(std::string_view flag, uint64_t number, uint64_t max) {
    if (number < 1 || number > max)
      Refuse(fmt::format("{} must be from 1 to {}", flag, max), fmt::format("{} 100", flag));
    return number;
  }
  // The position of a word in "a|b|c".
  size_t Choice(std::string_view flag, std::string_view word,
                std::initializer_list<std::string_view> words) {
    const auto found = std::find(words.begin(), words.end(), word);
    if (found != words.end()) return static_cast<size_t>(found - words.begin());
    Refuse(fmt::format("{} {} is not one of: {}", flag, rule::Quote(word), fmt::join(words, ", ")),
           fmt::format("{} {}", flag, *words.begin()));
    return 0;
  }
  ListenAddress Address(std::string_view flag, std::string_view text) {
    auto address = ParseListenAddress(text);
    if (!address.ok()) {
      Refuse(fmt::format("{}: {}", flag, std::string(address.status().message())),
             fmt::format("for example {} 127.0.0.1:8080, :8080 or unix:PATH", flag));
      return {};
    }
    return *std::move(address);
  }

 private:
  const Console& console_;
  bool ok_ = true;
};

void ReadAddresses(const Flags& flags, Reader& reader, SidecarSettings& settings) {
  std::vector<std::string> listen = flags.listen;
  if (listen.empty()) listen.emplace_back("127.0.0.1:8080");
  for (const std::string& text : listen)
    settings.listen.push_back(reader.Address("--listen", text));
  if (flags.admin_listen != "none")
    settings.admin = reader.Address("--admin-listen", flags.admin_listen);
  if (!flags.credential_file.empty()) {
    auto credential = disk::ReadFirstLine(flags.credential_file);
    if (!credential.ok()) {
      reader.Refuse(std::string(credential.status().message()), "its first line is the credential");
    } else {
      settings.credential = *std::move(credential);
    }
  }
  auto upstreams = ParseUpstreams(flags.upstream);
  if (upstreams.ok()) {
    settings.upstreams = *std::move(upstreams);
  } else {
    reader.Refuse(fmt::format("--upstream: {}", std::string(upstreams.status().message())),
                  "for example --upstream http://127.0.0.1:9000");
  }
}

void ReadTls(const Flags& flags, Reader& reader, SidecarSettings& settings) {
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
    return reader.Refuse(std::string(tls.status().message()),
                         "`headgate help sidecar` explains each flag");
  }
  settings.tls = *std::move(tls);
  if (settings.tls.client_from_certificate && flags.client_header == "none")
    reader.Refuse("--client-from-certificate and --client-header none exclude each other",
                  "--client-header names the field that gets the name in the certificate");
}

void ReadCapacity(const std::string& text, Reader& reader, share::ShareOptions& share) {
  if (text == "auto") {
    share.find_capacity.emplace();
    return;
  }
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), share.pool.capacity);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
    reader.Refuse(text.empty()
                      ? "--capacity is not given"
                      : fmt::format("--capacity {} is not a whole number", rule::Quote(text)),
                  "--capacity 40 lets 40 requests through in each --cycle; --capacity auto finds "
                  "how many the upstream can take");
  }
}

void ReadShare(const Flags& flags, Reader& reader, SidecarSettings& settings) {
  share::ShareOptions& share = settings.share;
  algorithm::FairShareOptions& pool = share.pool;
  ReadCapacity(flags.capacity, reader, share);
  pool.cycle = reader.Time("--cycle", flags.cycle);
  const auto reservation = ParsePercentage(flags.reservation);
  if (!reservation) {
    reader.Refuse(
        fmt::format("--reservation {} is not a percentage", rule::Quote(flags.reservation)),
        "--reservation 10%");
  }
  pool.reservation = reservation.value_or(algorithm::Ratio{});
  pool.on_new_client =
      reader.Choice("--on-new-client", flags.on_new_client, {"redivide", "restart"}) == 0
          ? algorithm::OnNewClient::kRedivide
          : algorithm::OnNewClient::kRestart;
  pool.reclaim = reader.Choice("--reclaim", flags.reclaim, {"next_cycle", "at_once"}) == 0
                     ? algorithm::Reclaim::kNextCycle
                     : algorithm::Reclaim::kAtOnce;
  pool.clients_max =
      static_cast<uint32_t>(reader.Number("--clients", flags.clients, algorithm::kFairClientsMax));
  share.mode = reader.Choice("--mode", flags.mode, {"enforce", "passthrough"}) == 0
                   ? share::Mode::kEnforce
                   : share::Mode::kPassthrough;
  if (flags.anonymous) {
    share.without_id = share::WithoutId::kShareOne;
    share.anonymous = *flags.anonymous;
  }
  share.secret = base::RandomHashSecret();
  if (!reader.ok()) return;
  if (const absl::Status status = share.Validate(); !status.ok())
    reader.Refuse(std::string(status.message()), "`headgate help sidecar` explains each flag");
}

void ReadPlan(const Flags& flags, Reader& reader, SidecarSettings& settings) {
  if (!flags.plan) {
    if (flags.plan_client)
      reader.Refuse("--plan-client without --plan", "--plan access.log --plan-client -1");
    return;
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

void ReadProxy(const Flags& flags, Reader& reader, SidecarSettings& settings) {
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
                  "all, draft, draft-7, draft-6, draft-3, github, twitter or none");
  }
  proxy.application.dialect = dialect.value_or(wire::RateLimitDialect::kDraft);
  proxy.application.describes_admitted = dialect != wire::RateLimitDialect::kNone;
  const auto forwarding = [&](std::string_view flag, std::string_view word) {
    return static_cast<proxy::Forwarding>(reader.Choice(flag, word, {"append", "replace", "off"}));
  };
  proxy.application.forwarded.x_forwarded = forwarding("--x-forwarded", flags.x_forwarded);
  proxy.application.forwarded.forwarded = forwarding("--forwarded", flags.forwarded);
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
  settings.connect_timeout = reader.Time("--connect-timeout", flags.connect_timeout);
  settings.drain_timeout = reader.Time("--drain-timeout", flags.drain_timeout);
  settings.handover = flags.handover;
}

// As the settings of a server, which the shared store is made for.
void ReadStore(const Flags& flags, Reader& reader, SidecarSettings& settings) {
  if (flags.store.empty()) return;
  Configuration server;
  server.settings = settings.engine;
  Settings& engine = server.settings;
  engine.store = flags.store;
  server.origins["store"] = {.place = "--store"};
  engine.store_password_file = flags.store_password_file;
  server.origins["store_password_file"] = {.place = "--store-password-file"};
  if (flags.store_timeout) {
    engine.store_timeout = reader.Time("--store-timeout", *flags.store_timeout);
    server.origins["store_timeout"] = {.place = "--store-timeout"};
  }
  if (flags.on_store_failure) {
    reader.Choice("--on-store-failure", *flags.on_store_failure, {"local", "allow", "deny"});
    engine.on_store_failure = *flags.on_store_failure;
    server.origins["on_store_failure"] = {.place = "--on-store-failure"};
  }
  UseDefaultsOfStore(server);
  settings.store = ReadStoreSettings(server);
  if (!server.problems.empty()) {
    const ConfigurationProblem& problem = server.problems.front();
    const std::string& place = problem.where.place;
    reader.Refuse(place.empty() ? problem.what : fmt::format("{}: {}", place, problem.what),
                  problem.hint);
  }
  settings.engine = std::move(engine);
}

void ReadRules(const Flags& flags, Reader& reader, SidecarSettings& settings) {
  Settings& engine = settings.engine;
  engine.rules = flags.rules;
  engine.rule = flags.rule;
  engine.auth = flags.mappings;
  engine.max_buckets = reader.Number("--max-buckets", flags.max_buckets, kBucketsMax);
  if (settings.has_rules()) return ReadStore(flags, reader, settings);
  engine.max_buckets = engine.max_limits = 1;  // nothing is counted
  if (!flags.mappings.empty()) {
    reader.Refuse("--mappings without rules",
                  "add --rules PATH, or --rule TEXT; mappings say which rule a request meets");
  }
  if (!flags.store.empty()) {
    reader.Refuse("--store without rules",
                  "add --rules PATH, or --rule TEXT; the shares of clients are counted in this "
                  "process");
  }
}

void ReadSizes(const Flags& flags, Reader& reader, SidecarSettings& settings) {
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
  upstreams.queue_max = per_loop("--queue", flags.queue);
  upstreams.exchanges_per_connection = settings.upstreams.http2 ? kHttp2Streams : 1;
  settings.log_level = static_cast<observe::Level>(
      reader.Choice("--log-level", flags.log_level, {"debug", "info", "warning", "error"}));
  settings.log_format = reader.Choice("--log-format", flags.log_format, {"text", "json"}) == 0
                            ? observe::LogFormat::kText
                            : observe::LogFormat::kJson;
}

}  // namespace

namespace {

absl::StatusOr<net::StreamTarget> ParseTarget(std::string_view text, bool tls) {
  if (text.starts_with(kUnix)) {
    if (tls) return absl::InvalidArgumentError("TLS needs HOST:PORT, not a Unix socket");
    return net::StreamTarget{.unix_path = std::string(text.substr(kUnix.size()))};
  }
  if (text.ends_with('/')) text.remove_suffix(1);
  HEADGATE_ASSIGN_OR_RETURN(const std::vector<net::StreamTarget> target,
                            net::ParseServerList(text, tls ? kDefaultTlsPort : kDefaultPort));
  return target.front();
}

const Scheme* SchemeOf(std::string_view text) {
  const auto found = std::find_if(kSchemes.begin(), kSchemes.end(), [&](const Scheme& scheme) {
    return text.starts_with(scheme.prefix);
  });
  return found == kSchemes.end() ? nullptr : &*found;
}

}  // namespace

absl::StatusOr<UpstreamList> ParseUpstreams(std::string_view text) {
  UpstreamList list;
  if (text.empty()) return absl::InvalidArgumentError("no upstream is given");
  bool first = true;
  for (bool last = false; !last;) {
    std::string_view item = text.substr(0, text.find(','));
    last = item.size() == text.size();
    text.remove_prefix(std::min(item.size() + 1, text.size()));
    const Scheme* const scheme = SchemeOf(item);
    if (first && scheme == nullptr)
      return absl::InvalidArgumentError(fmt::format(
          "{} does not begin with http://, h2c://, https:// or h2://", rule::Quote(item)));
    if (!first && scheme != nullptr && (scheme->http2 != list.http2 || scheme->tls != list.tls))
      return absl::InvalidArgumentError("all upstreams must have the same scheme");
    if (first) {
      list.http2 = scheme->http2;
      list.tls = scheme->tls;
    }
    first = false;
    if (scheme != nullptr) item.remove_prefix(scheme->prefix.size());
    if (list.targets.size() == kUpstreamsMax)
      return absl::InvalidArgumentError(fmt::format("more than {} upstreams", kUpstreamsMax));
    HEADGATE_ASSIGN_OR_RETURN(const net::StreamTarget target, ParseTarget(item, list.tls));
    if (std::find(list.targets.begin(), list.targets.end(), target) != list.targets.end())
      return absl::InvalidArgumentError(fmt::format("{} is named twice", target.ToString()));
    list.targets.push_back(target);
  }
  return list;
}

std::optional<algorithm::Ratio> ParsePercentage(std::string_view text) {
  if (!text.ends_with('%')) return std::nullopt;
  text.remove_suffix(1);
  uint32_t whole = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), whole);
  if (error != std::errc() || whole > 100) return std::nullopt;
  const std::string_view rest = text.substr(static_cast<size_t>(end - text.data()));
  uint32_t tenths = 0;
  if (!rest.empty()) {
    if (rest.size() != 2 || rest[0] != '.' || !base::IsDigit(rest[1])) return std::nullopt;
    tenths = static_cast<uint32_t>(rest[1] - '0');
  }
  const uint32_t numerator = whole * 10 + tenths;
  if (numerator > 1000) return std::nullopt;
  return algorithm::Ratio{.numerator = numerator, .denominator = 1000};
}

std::optional<SidecarSettings> ReadSidecarFlags(const std::vector<std::string>& arguments,
                                                const Console& console) {
  Flags flags;
  if (!ParseArguments(SpecOf(flags), arguments, console)) return std::nullopt;
  SidecarSettings settings;
  Reader reader(console);
  ReadPlan(flags, reader, settings);
  ReadShare(flags, reader, settings);
  if (settings.plan && reader.ok()) return settings;
  ReadAddresses(flags, reader, settings);
  ReadTls(flags, reader, settings);
  ReadProxy(flags, reader, settings);
  ReadRules(flags, reader, settings);
  ReadSizes(flags, reader, settings);
  if (!reader.ok()) return std::nullopt;
  return settings;
}

}  // namespace headgate::app
