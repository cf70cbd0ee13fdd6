// The table of all settings; what a value means is in settings.cc.
#include <algorithm>
#include <array>

#include "headgate/app/settings.h"
#include "headgate/rule/problem.h"
#include "headgate/store/limit_table.h"

namespace headgate::app {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;
constexpr uint64_t kSecond = 1000 * kMillisecond;
constexpr uint64_t kYear = 365 * 24 * 3600 * kSecond;

constexpr std::string_view kWhere = "Where it listens";
constexpr std::string_view kRules = "Rules";
constexpr std::string_view kMemory = "Memory";
constexpr std::string_view kStore = "The store that instances share";
constexpr std::string_view kAccess = "Access";
constexpr std::string_view kConnections = "Connections";
constexpr std::string_view kLog = "Log";

const std::array kSettings = {
    Setting{.name = "listen",
            .group = kWhere,
            .target = &Settings::listen,
            .help = "An address for every protocol: HOST:PORT, :PORT (all interfaces), [v6]:PORT "
                    "or unix:PATH.",
            .advice = "Give several for several addresses; \"none\" for none. Beyond loopback, set "
                      "a credential too.",
            .paths = Paths::kUnixAddresses},
    Setting{.name = "listen_resp",
            .group = kWhere,
            .target = &Settings::listen_resp,
            .help = "An address that speaks the Redis protocol only.",
            .advice = "Alone it opens nothing else: name listen and admin_listen too for HTTP, "
                      "metrics and health.",
            .paths = Paths::kUnixAddresses},
    Setting{.name = "listen_http",
            .group = kWhere,
            .target = &Settings::listen_http,
            .help = "An address that speaks HTTP only, metrics and health included.",
            .advice =
                "Alone it opens nothing else: use it if the Redis protocol must not be reachable.",
            .paths = Paths::kUnixAddresses},
    Setting{.name = "admin_listen",
            .group = kWhere,
            .target = &Settings::admin_listen,
            .help = "The address of rules, metrics and health; \"none\" turns it off.",
            .advice = "Keep it on loopback, or set a credential.",
            .paths = Paths::kUnixAddresses},

    Setting{.name = "rules",
            .group = kRules,
            .target = &Settings::rules,
            .help = "A rule file, or a directory of them; followed while running.",
            .advice = "Give several for several files.",
            .paths = Paths::kAll},
    Setting{.name = "rule",
            .group = kRules,
            .target = &Settings::rule,
            .help = "One rule as text: 'api_key: 100/minute burst 20', in the domain \"default\".",
            .advice = "For first steps and small set-ups; files say more."},
    Setting{
        .name = "merge_domains",
        .group = kRules,
        .target = &Settings::merge_domains,
        .help = "Whether several rule files may have one domain.",
        .advice = "Set it to yes where each team keeps its part of a domain in a file of its own.",
        .choices = kNoOrYes},

    Setting{.name = "max_buckets",
            .group = kMemory,
            .target = &Settings::max_buckets,
            .help = "The most buckets remembered; 38 bytes each, resident once used.",
            .advice = "Raise it when headgate_evictions_total grows.",
            .min = 1,
            .max = uint64_t{1} << 36},
    Setting{.name = "max_limits",
            .group = kMemory,
            .target = &Settings::max_limits,
            .help = "The most different limits of clients that are remembered; rules have room of "
                    "their own.",
            .advice = "Raise it when headgate_client_limits_forgotten_total grows.",
            .min = 16,
            .max = store::LimitTable::kClientLimitsMax},
    Setting{
        .name = "snapshot",
        .group = kMemory,
        .target = &Settings::snapshot,
        .help = "A file that keeps what was consumed across restarts; empty for none.",
        .advice = "Set it in production: without it a restart gives everyone a fresh allowance.",
        .paths = Paths::kAll},
    Setting{.name = "snapshot_interval",
            .group = kMemory,
            .target = &Settings::snapshot_interval,
            .help = "How often the snapshot is written; a crash forgets at most that much.",
            .advice = "Raise it where writing takes long.",
            .min = 100 * kMillisecond,
            .max = kYear},

    Setting{
        .name = "store",
        .group = kStore,
        .target = &Settings::store,
        .help =
            "Where limits are shared: redis://HOST:PORT and kin; empty: each instance by itself.",
        .advice = "Set it where several instances shall hold one limit together.",
        .secret = Secret::kLogin},
    Setting{.name = "store_password_file",
            .group = kStore,
            .target = &Settings::store_password_file,
            .help = "A file whose first line is the store's password, in place of one in the URL.",
            .advice = "Use it with secrets that are mounted as files.",
            .paths = Paths::kAll},
    Setting{.name = "store_sentinel_user",
            .group = kStore,
            .target = &Settings::store_sentinel_user,
            .help = "Who we are to the sentinels of redis+sentinel://; empty: their default user.",
            .advice = "Set it where sentinels have users of their own (ACL); give "
                      "store_sentinel_password_file too."},
    Setting{
        .name = "store_sentinel_password_file",
        .group = kStore,
        .target = &Settings::store_sentinel_password_file,
        .help = "A file whose first line is the sentinels' password; empty: none is sent to them.",
        .advice =
            "Set it where sentinels have requirepass; the login in the URL is the servers' alone.",
        .paths = Paths::kAll},
    Setting{.name = "store_timeout",
            .group = kStore,
            .target = &Settings::store_timeout,
            .help = "How long one call of the store may take; then on_store_failure decides.",
            .advice = "Raise it for a store far away; clients wait as long.",
            .min = kMillisecond,
            .max = 60 * kSecond},
    Setting{.name = "store_connect_timeout",
            .group = kStore,
            .target = &Settings::store_connect_timeout,
            .help = "How long connecting to the store may take, TLS and login included.",
            .advice = "Raise it for a store far away.",
            .min = kMillisecond,
            .max = 60 * kSecond},
    Setting{.name = "store_connections",
            .group = kStore,
            .target = &Settings::store_connections,
            .help = "Connections to each of the store's servers, of each event loop.",
            .advice = "Raise it where one connection's bandwidth does not do.",
            .min = 1,
            .max = 64},
    Setting{.name = "store_in_flight_max",
            .group = kStore,
            .target = &Settings::store_in_flight_max,
            .help = "Calls of the store that a connection may have sent and not heard of, at most.",
            .advice = "It sends as many as are answered in time; raise it with the latency.",
            .min = 1,
            .max = 1'000'000},
    Setting{.name = "store_retry_percent",
            .group = kStore,
            .target = &Settings::store_retry_percent,
            .help = "Second attempts of calls that were certainly not done, in per cent of the "
                    "calls; 0 for none.",
            .advice = "Raise it where slots of a cluster move often.",
            .max = 100},
    Setting{.name = "store_breaker_failures_in_row",
            .group = kStore,
            .target = &Settings::store_breaker_failures_in_row,
            .help = "A server of the store is left alone for a while after this many failed calls "
                    "in a row.",
            .advice = "Only if they span store_breaker_no_progress; raise it for a store that "
                      "often loses single calls.",
            .min = 1,
            .max = 1'000'000},
    Setting{.name = "store_breaker_no_progress",
            .group = kStore,
            .target = &Settings::store_breaker_no_progress,
            .help = "How long a server must answer nothing in time before it is left alone.",
            .advice = "Raise it if the store pauses for longer and answers again; each decision "
                      "waits for store_timeout "
                      "meanwhile.",
            .max = 60 * kSecond},
    Setting{
        .name = "store_breaker_open_min",
        .group = kStore,
        .target = &Settings::store_breaker_open_min,
        .help = "How long a server of the store is left alone at first; then one call tries.",
        .advice =
            "Lower it where outages are short; each attempt costs one request its store_timeout.",
        .min = kMillisecond,
        .max = 3600 * kSecond},
    Setting{
        .name = "store_breaker_open_max",
        .group = kStore,
        .target = &Settings::store_breaker_open_max,
        .help = "How long it is left alone at most: the time doubles whenever the attempt fails.",
        .advice = "Lower it where the store shall be used again sooner after a long outage.",
        .min = kMillisecond,
        .max = 3600 * kSecond},
    Setting{
        .name = "store_breaker_jitter_percent",
        .group = kStore,
        .target = &Settings::store_breaker_jitter_percent,
        .help = "How much more or less than that, so that a fleet's attempts do not come together.",
        .advice = "Raise it in large fleets.",
        .max = 90},
    Setting{.name = "store_instances",
            .group = kStore,
            .target = &Settings::store_instances,
            .help = "How many instances share a limit while the store is away; 0: as many as it "
                    "last counted.",
            .advice = "Set it where the number is fixed: an instance that starts without the store "
                      "knows of no others.",
            .max = 1'000'000},
    Setting{.name = "store_ca_file",
            .group = kStore,
            .target = &Settings::store_ca_file,
            .help = "Certificates that may sign the store's (PEM); empty: the system's.",
            .advice = "Set it with rediss:// and certificates of your own.",
            .paths = Paths::kAll},
    Setting{.name = "store_certificate_file",
            .group = kStore,
            .target = &Settings::store_certificate_file,
            .help = "Our certificate (PEM), where the store asks for one.",
            .advice = "Give store_key_file too.",
            .paths = Paths::kAll},
    Setting{.name = "store_key_file",
            .group = kStore,
            .target = &Settings::store_key_file,
            .help = "The key of our certificate (PEM).",
            .advice = "Give store_certificate_file too.",
            .paths = Paths::kAll},
    Setting{.name = "store_server_name",
            .group = kStore,
            .target = &Settings::store_server_name,
            .help = "The name that the store's certificate must have; empty: the host in the URL.",
            .advice = "Set it where the store is known by address only."},
    Setting{
        .name = "strict_store",
        .group = kStore,
        .target = &Settings::strict_store,
        .help = "Whether a store is refused that may evict live limits (maxmemory-policy).",
        .advice = "Set it to yes where a forgotten limit is worse than a store that is not used.",
        .choices = kNoOrYes},
    Setting{.name = "sharing",
            .group = kStore,
            .target = &Settings::sharing,
            .help = "Whether hot keys are decided from leases, or each decision asks the store; "
                    "rules may differ.",
            .advice = "Set it to exact where remaining must be exact to the request, and a round "
                      "trip does not matter.",
            .choices = "leased|exact"},
    Setting{.name = "on_store_failure",
            .group = kStore,
            .target = &Settings::on_store_failure,
            .help = "Without the store: each instance its share, all allowed, or all denied; rules "
                    "may differ.",
            .advice = "Set it to allow where letting too many through is the lesser evil, to deny "
                      "where it is not.",
            .choices = "local|allow|deny"},
    Setting{.name = "hash_keys",
            .group = kStore,
            .target = &Settings::hash_keys,
            .help = "Whether the store sees keyed hashes in place of what clients send.",
            .advice = "Set it to yes where keys are personal, with hash_keys_secret_file.",
            .choices = kNoOrYes},
    Setting{.name = "hash_keys_secret_file",
            .group = kStore,
            .target = &Settings::hash_keys_secret_file,
            .help = "A file whose first line makes the hashes; the same for every instance.",
            .advice = "Set it with hash_keys; keep it private.",
            .paths = Paths::kAll},

    Setting{
        .name = "credential",
        .group = kAccess,
        .target = &Settings::credential,
        .help = "The secret for changing or reading state: AUTH's password, HTTP's bearer token.",
        .advice = "A flag can be seen by other users of the machine: prefer credential_file or the "
                  "environment.",
        .secret = Secret::kAll},
    Setting{.name = "credential_file",
            .group = kAccess,
            .target = &Settings::credential_file,
            .help = "A file whose first line is the credential.",
            .advice = "Use it with secrets that are mounted as files.",
            .paths = Paths::kAll},
    Setting{
        .name = "known_host",
        .group = kAccess,
        .target = &Settings::known_host,
        .help = "A host name that HTTP clients may use besides localhost; *.NAME for all below it, "
                "* for any.",
        .advice = "Name the server here if clients reach it by name; * lets web pages ask too."},

    Setting{.name = "threads",
            .group = kConnections,
            .target = &Settings::threads,
            .help = "Event loops; 0 is one per core.",
            .advice = "Lower it where other programs share the machine.",
            .max = 1024},
    Setting{
        .name = "max_connections",
        .group = kConnections,
        .target = &Settings::max_connections,
        .help = "Open connections in all, besides those of the admin address.",
        .advice = "Raise it with the limit on open files (ulimit -n); too few of those lower it.",
        .min = 1,
        .max = 10'000'000},
    Setting{.name = "max_connections_per_address",
            .group = kConnections,
            .target = &Settings::max_connections_per_address,
            .help = "Open connections from one address (IPv6: one /64 network); 0 is a quarter of "
                    "max_connections.",
            .advice = "Raise it if all clients come through one proxy.",
            .max = 10'000'000},
    Setting{
        .name = "max_admin_connections",
        .group = kConnections,
        .target = &Settings::max_admin_connections,
        .help = "Open connections of the admin address; they do not count against max_connections.",
        .advice = "Raise it if many programs keep connections to it open.",
        .min = 1,
        .max = 100'000},
    Setting{
        .name = "max_buffer_bytes",
        .group = kConnections,
        .target = &Settings::max_buffer_bytes,
        .help = "Memory for unfinished requests and unread answers of all connections together.",
        .advice =
            "Beyond it the largest and slowest are closed; raise it with the memory that there is.",
        .min = uint64_t{16} << 20,
        .max = uint64_t{1} << 40},
    Setting{.name = "request_timeout",
            .group = kConnections,
            .target = &Settings::request_timeout,
            .help = "From a request's first byte to its last.",
            .advice = "Raise it for slow links.",
            .min = kMillisecond,
            .max = kYear},
    Setting{.name = "idle_timeout",
            .group = kConnections,
            .target = &Settings::idle_timeout,
            .help = "How long a connection may rest between requests.",
            .advice = "Raise it where clients keep pools of connections that rest for longer.",
            .min = kMillisecond,
            .max = kYear},
    Setting{.name = "write_timeout",
            .group = kConnections,
            .target = &Settings::write_timeout,
            .help = "How long a client may leave an answer unread.",
            .advice = "Raise it for slow links.",
            .min = kMillisecond,
            .max = kYear},
    Setting{.name = "max_body_bytes",
            .group = kConnections,
            .target = &Settings::max_body_bytes,
            .help = "The longest HTTP request body.",
            .advice = "Raise it for requests with very many descriptors.",
            .min = 1024,
            .max = uint64_t{3} << 20},
    Setting{.name = "drain_delay",
            .group = kConnections,
            .target = &Settings::drain_delay,
            .help = "On SIGTERM: how long to go on serving with readiness red.",
            .advice = "Set it to what a load balancer takes to notice.",
            .max = kYear},
    Setting{.name = "drain_timeout",
            .group = kConnections,
            .target = &Settings::drain_timeout,
            .help = "On SIGTERM: how long requests that have begun may take to finish.",
            .advice = "Keep it below what the service manager waits before it kills.",
            .max = kYear},

    Setting{.name = "log_level",
            .group = kLog,
            .target = &Settings::log_level,
            .help = "The least important events that are logged.",
            .advice = "Lower it to debug while hunting something.",
            .choices = "debug|info|warning|error"},
    Setting{
        .name = "log_format",
        .group = kLog,
        .target = &Settings::log_format,
        .help = "How an event is written: a line of text, or a JSON object on a line of its own.",
        .advice = "Use json if a program collects the log.",
        .choices = "text|json"},
    Setting{.name = "log_client_keys",
            .group = kLog,
            .target = &Settings::log_client_keys,
            .help = "Whether the log shows clients' keys, or hashes of them.",
            .advice = "Use plain where the log may hold what clients send.",
            .choices = "hashed|plain"},
};

}  // namespace

std::span<const Setting> AllSettings() { return kSettings; }

const Setting* FindSetting(std::string_view name) {
  const auto found = std::find_if(kSettings.begin(), kSettings.end(),
                                  [&](const Setting& s) { return s.name == name; });
  return found == kSettings.end() ? nullptr : &*found;
}

std::string_view NearestSetting(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Setting& setting : kSettings) names.push_back(setting.name);
  return rule::NearestWord(name, names);
}

}  // namespace headgate::app
