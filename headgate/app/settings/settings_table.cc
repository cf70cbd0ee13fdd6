// The table of all settings; settings.cc parses and checks the values.
#include <algorithm>
#include <array>

#include "headgate/app/settings/settings.h"
#include "headgate/rule/problem.h"
#include "headgate/store/limit_table.h"

namespace headgate::app {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;
constexpr uint64_t kSecond = 1000 * kMillisecond;
constexpr uint64_t kYear = 365 * 24 * 3600 * kSecond;

constexpr std::string_view kListening = "Listening";
constexpr std::string_view kAuth = "Forward-auth";
constexpr std::string_view kRules = "Rules";
constexpr std::string_view kMemory = "Memory";
constexpr std::string_view kStore = "The store that instances share";
constexpr std::string_view kTlsGroup = "TLS";
constexpr std::string_view kAccess = "Access";
constexpr std::string_view kConnections = "Connections";
constexpr std::string_view kLog = "Log";

const std::array kSettings = {
    Setting{.name = "listen",
            .group = kListening,
            .target = &Settings::listen,
            .help = "An address for every protocol: HOST:PORT, :PORT (all interfaces), [v6]:PORT "
                    "or unix:PATH.",
            .advice = "With tls: before it, it speaks TLS. Give several for several addresses; "
                      "\"none\" for none. Set a credential too if the address is not loopback.",
            .paths = Paths::kAddresses},
    Setting{.name = "listen_resp",
            .group = kListening,
            .target = &Settings::listen_resp,
            .help = "An address that speaks the Redis protocol only.",
            .advice = "Alone it opens nothing else: set listen and admin_listen too for HTTP, "
                      "metrics and health.",
            .paths = Paths::kAddresses},
    Setting{.name = "listen_http",
            .group = kListening,
            .target = &Settings::listen_http,
            .help = "An address that speaks HTTP only, metrics and health included.",
            .advice =
                "Alone it opens nothing else: use it if the Redis protocol must not be reachable.",
            .paths = Paths::kAddresses},
    Setting{.name = "listen_spoe",
            .group = kListening,
            .target = &Settings::listen_spoe,
            .help = "An address for HAProxy's filters (SPOE).",
            .advice = "It needs auth or auth_header. HAProxy's own address must be one of the "
                      "trusted_proxies of auth.",
            .paths = Paths::kAddresses},
    Setting{.name = "admin_listen",
            .group = kListening,
            .target = &Settings::admin_listen,
            .help = "The address of rules, metrics and health; \"none\" turns it off.",
            .advice = "Keep it on loopback, or set a credential.",
            .paths = Paths::kAddresses},
    Setting{.name = "rate_limit_fields",
            .group = kListening,
            .target = &Settings::rate_limit_fields,
            .help = "The fields that HTTP answers use to describe a limit.",
            .advice = "Choose the form that your clients read; an address can have its own: "
                      "127.0.0.1:8080?fields=draft-7.",
            .choices = "all|draft|draft-7|draft-6|draft-3|github|twitter|openai|anthropic|none"},
    Setting{.name = "refusal_file",
            .group = kListening,
            .target = &Settings::refusal_file,
            .help = "A file with the content type and the body of refusals by forward-auth.",
            .advice =
                "Set it if clients expect errors in a form of their own; a rule, a mapping or "
                "an address (?refusal_file=PATH) can have another. Read at the start.",
            .paths = Paths::kAll},
    Setting{.name = "retry_after_jitter",
            .group = kListening,
            .target = &Settings::retry_after_jitter,
            .help = "Retry-After is longer by a random part, at most this percentage.",
            .advice = "Raise it if clients that were denied together come back together.",
            .max = 100},
    Setting{.name = "retry_after_jitter_max",
            .group = kListening,
            .target = &Settings::retry_after_jitter_max,
            .help = "The random part of Retry-After is at most this long; 0s: no bound.",
            .advice = "Set it if limits with long periods would make clients wait much longer."},
    Setting{.name = "partition_key_secret_file",
            .group = kListening,
            .target = &Settings::partition_key_secret_file,
            .help =
                "A file whose first line is a secret: RateLimit fields then have pk, a hash of the "
                "bucket.",
            .advice = "Set it if clients have several keys; give all instances the same secret.",
            .paths = Paths::kAll},
    Setting{
        .name = "reservation_secret_file",
        .group = kListening,
        .target = &Settings::reservation_secret_file,
        .help = "A file whose first line is a secret: it seals the reservations of /v1/reserve.",
        .advice = "Set it if another instance that shares the store may settle them; give all "
                  "instances the same secret.",
        .paths = Paths::kAll},

    Setting{.name = "auth",
            .group = kAuth,
            .target = &Settings::auth,
            .help = "A file of mappings for proxies that ask at /auth; followed while running.",
            .advice = "See docs/guides/behind-your-proxy.md.",
            .paths = Paths::kAll},
    Setting{.name = "auth_header",
            .group = kAuth,
            .target = &Settings::auth_header,
            .help = "Each request to /auth is limited by this header, as api_key in the domain "
                    "\"default\".",
            .advice = "For first steps and small setups; a file of mappings can express more."},

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
            .advice = "For first steps and small setups; rule files can express more."},
    Setting{.name = "merge_domains",
            .group = kRules,
            .target = &Settings::merge_domains,
            .help = "Whether several rule files may contain rules for the same domain.",
            .advice = "Set it to yes if each team keeps its part of a domain in a file of its own.",
            .choices = kNoOrYes},
    Setting{.name = "passthrough",
            .group = kRules,
            .target = &Settings::passthrough,
            .help = "Whether requests are decided and counted, and none is refused.",
            .advice = "Set it to yes to try rules on live requests, or when limits do harm; the "
                      "admin address switches it live (/v1/passthrough).",
            .choices = kNoOrYes},
    Setting{.name = "watch",
            .group = kRules,
            .target = &Settings::watch,
            .help = "ZooKeeper as a source of rules: zk://HOST:PORT[,HOST:PORT…]/path; followed "
                    "while running.",
            .advice = "Use it if the rules of all instances change together, without a restart. "
                      "See docs/guides/live-rules.md.",
            .secret = Secret::kLogin},
    Setting{.name = "watch_password_file",
            .group = kRules,
            .target = &Settings::watch_password_file,
            .help = "A file whose first line is ZooKeeper's password for watch, used instead of "
                    "one in the URL.",
            .advice = "Use it with secrets that are mounted as files; the user stays in the URL: "
                      "zk://USER@HOST.",
            .paths = Paths::kAll},
    Setting{.name = "watch_copy",
            .group = kRules,
            .target = &Settings::watch_copy,
            .help = "A file for the last good rules of watch, for a start while ZooKeeper is away.",
            .advice =
                "Set it, so that an instance can start without ZooKeeper. Needs a single place in "
                "watch.",
            .paths = Paths::kAll},
    Setting{.name = "audit_log",
            .group = kRules,
            .target = &Settings::audit_log,
            .help = "A file that notes who changed which rules over the admin address, and how.",
            .advice =
                "Set it to change rule files over the admin address; ZooKeeper keeps notes of "
                "its own.",
            .paths = Paths::kAll},
    Setting{.name = "watch_session_timeout",
            .group = kRules,
            .target = &Settings::watch_session_timeout,
            .help = "How long ZooKeeper keeps a session without a connection; it takes 2 to 20 of "
                    "its ticks.",
            .advice = "Raise it if pauses of the network are longer.",
            .min = 100 * kMillisecond,
            .max = 3600 * kSecond},

    Setting{.name = "max_buckets",
            .group = kMemory,
            .target = &Settings::max_buckets,
            .help = "The most buckets kept in memory; 57 to 114 bytes each while their table "
                    "grows, 38 when it is full.",
            .advice = "Raise it if headgate_evictions_total grows.",
            .min = 1,
            .max = uint64_t{1} << 36},
    Setting{.name = "max_limits",
            .group = kMemory,
            .target = &Settings::max_limits,
            .help = "The most different limits brought by clients that are remembered; rules have "
                    "room of their own.",
            .advice = "Raise it if headgate_client_limits_forgotten_total grows.",
            .min = 16,
            .max = store::LimitTable::kClientLimitsMax},
    Setting{
        .name = "snapshot",
        .group = kMemory,
        .target = &Settings::snapshot,
        .help = "A file that keeps the state of buckets across restarts; empty for none.",
        .advice = "Set it in production: without it a restart gives everyone a fresh allowance.",
        .paths = Paths::kAll},
    Setting{.name = "snapshot_interval",
            .group = kMemory,
            .target = &Settings::snapshot_interval,
            .help = "How often the snapshot is written; a crash loses at most this much.",
            .advice = "Raise it if writing takes long.",
            .min = 100 * kMillisecond,
            .max = kYear},

    Setting{.name = "store",
            .group = kStore,
            .target = &Settings::store,
            .help = "The shared store: redis://HOST:PORT or another form; empty: each instance "
                    "counts by itself.",
            .advice = "Set it if several instances must enforce one limit together. "
                      "zk://HOST:PORT/path and dynamodb://TABLE?region=REGION are for strict "
                      "limits.",
            .secret = Secret::kLogin},
    Setting{
        .name = "store_password_file",
        .group = kStore,
        .target = &Settings::store_password_file,
        .help = "A file whose first line is the store's password, used instead of one in the URL.",
        .advice = "Use it with secrets that are mounted as files; it is read again for each "
                  "connection.",
        .paths = Paths::kAll},
    Setting{
        .name = "store_sentinel_user",
        .group = kStore,
        .target = &Settings::store_sentinel_user,
        .help = "The user name for the sentinels of redis+sentinel://; empty: their default user.",
        .advice = "Set it if sentinels have users of their own (ACL); give "
                  "store_sentinel_password_file too."},
    Setting{
        .name = "store_sentinel_password_file",
        .group = kStore,
        .target = &Settings::store_sentinel_password_file,
        .help = "A file whose first line is the sentinels' password; empty: none is sent to them.",
        .advice =
            "Set it if sentinels have requirepass; the login in the URL is for the servers only.",
        .paths = Paths::kAll},
    Setting{.name = "store_timeout",
            .group = kStore,
            .target = &Settings::store_timeout,
            .help = "How long one call to the store may take; after that on_store_failure decides.",
            .advice =
                "With 10ms the time follows the store: 10ms is how long it may answer nothing, "
                "or longer if it is seen to pause, up to 100ms, and a burst may take 250ms. "
                "Any other value bounds the whole call. For a strict store the default is "
                "250ms.",
            .min = kMillisecond,
            .max = 60 * kSecond},
    Setting{.name = "store_lock_timeout",
            .group = kStore,
            .target = &Settings::store_lock_timeout,
            .help =
                "How long a request may wait for the lock of its key (strict: lock); then it is "
                "refused.",
            .advice = "Raise it with the number of instances that use the same key; clients wait "
                      "for up to this long. Must be shorter than request_timeout; the default is "
                      "at most half of it.",
            .min = kMillisecond,
            .max = 60 * kSecond},
    Setting{.name = "store_connect_timeout",
            .group = kStore,
            .target = &Settings::store_connect_timeout,
            .help = "How long connecting to the store may take, including TLS and login.",
            .advice = "Raise it for a distant store. For DynamoDB the default is 1s.",
            .min = kMillisecond,
            .max = 60 * kSecond},
    Setting{.name = "store_connections",
            .group = kStore,
            .target = &Settings::store_connections,
            .help = "Connections from each event loop to each server of the store.",
            .advice = "Raise it if the bandwidth of one connection is not enough. For DynamoDB the "
                      "default is 16: a connection carries one call at a time.",
            .min = 1,
            .max = 64},
    Setting{
        .name = "store_in_flight_max",
        .group = kStore,
        .target = &Settings::store_in_flight_max,
        .help = "The most calls to the store that one connection has in flight.",
        .advice = "A connection sends as many as are answered in time; raise it with the latency.",
        .min = 1,
        .max = 1'000'000},
    Setting{.name = "store_retry_percent",
            .group = kStore,
            .target = &Settings::store_retry_percent,
            .help = "Retries of calls that were certainly not executed, in percent of all calls; 0 "
                    "for none.",
            .advice = "Raise it if slots of a cluster move often.",
            .max = 100},
    Setting{.name = "store_breaker_failures_in_row",
            .group = kStore,
            .target = &Settings::store_breaker_failures_in_row,
            .help = "This many failed calls in a row open the breaker of a server, which then gets "
                    "no calls.",
            .advice = "It opens only if the failures also span store_breaker_no_progress. Raise it "
                      "for a store that often loses single calls.",
            .min = 1,
            .max = 1'000'000},
    Setting{.name = "store_breaker_no_progress",
            .group = kStore,
            .target = &Settings::store_breaker_no_progress,
            .help = "How long a server must answer nothing in time before its breaker opens.",
            .advice = "Raise it if the store pauses for longer and then answers again; each "
                      "decision waits for store_timeout meanwhile.",
            .max = 60 * kSecond},
    Setting{
        .name = "store_breaker_open_min",
        .group = kStore,
        .target = &Settings::store_breaker_open_min,
        .help = "How long a breaker stays open at first; then one call is tried.",
        .advice = "Lower it if outages are short; each trial costs one request its store_timeout.",
        .min = kMillisecond,
        .max = 3600 * kSecond},
    Setting{
        .name = "store_breaker_open_max",
        .group = kStore,
        .target = &Settings::store_breaker_open_max,
        .help = "How long a breaker stays open at most; the time doubles with each failed trial.",
        .advice = "Lower it if the store must be used again sooner after a long outage.",
        .min = kMillisecond,
        .max = 3600 * kSecond},
    Setting{.name = "store_breaker_jitter_percent",
            .group = kStore,
            .target = &Settings::store_breaker_jitter_percent,
            .help = "Random variation of the time that a breaker stays open, so that a fleet's "
                    "trials do not coincide.",
            .advice = "Raise it in large fleets.",
            .max = 90},
    Setting{.name = "store_instances",
            .group = kStore,
            .target = &Settings::store_instances,
            .help = "Instances that share a limit while the store is unreachable; 0: as many as "
                    "last counted.",
            .advice = "Set it if the number is fixed: an instance that starts without the store "
                      "knows of no others.",
            .max = 1'000'000},
    Setting{.name = "store_ca_file",
            .group = kStore,
            .target = &Settings::store_ca_file,
            .help = "Certificates of the authorities that may sign the store's certificate (PEM); "
                    "empty: the system's.",
            .advice = "Set it with rediss:// and an authority of your own.",
            .paths = Paths::kAll},
    Setting{.name = "store_certificate_file",
            .group = kStore,
            .target = &Settings::store_certificate_file,
            .help = "Headgate's client certificate (PEM), if the store asks for one.",
            .advice = "Give store_key_file too.",
            .paths = Paths::kAll},
    Setting{.name = "store_key_file",
            .group = kStore,
            .target = &Settings::store_key_file,
            .help = "The private key of Headgate's client certificate (PEM).",
            .advice = "Give store_certificate_file too.",
            .paths = Paths::kAll},
    Setting{.name = "store_server_name",
            .group = kStore,
            .target = &Settings::store_server_name,
            .help = "The name that the store's certificate must have; empty: the host in the URL.",
            .advice = "Set it if the URL has an address in place of the name."},
    Setting{.name = "strict_store",
            .group = kStore,
            .target = &Settings::strict_store,
            .help = "Whether to refuse a store that may evict live limits (maxmemory-policy).",
            .advice = "Set it to yes if a forgotten limit is worse than doing without the store.",
            .choices = kNoOrYes},
    Setting{.name = "sharing",
            .group = kStore,
            .target = &Settings::sharing,
            .help = "Whether hot keys are decided from leases, or each decision asks the store; "
                    "rules may differ.",
            .advice = "Set it to exact if remaining must be exact to the request and a round trip "
                      "does not matter.",
            .choices = "leased|exact"},
    Setting{
        .name = "on_store_failure",
        .group = kStore,
        .target = &Settings::on_store_failure,
        .help = "Without the store: local (each instance its share), allow all, or deny all; rules "
                "may differ.",
        .advice = "Set it to allow if admitting too many is the lesser evil, to deny if it is not. "
                  "For a strict store the default is deny.",
        .choices = "local|allow|deny"},
    Setting{.name = "hash_keys",
            .group = kStore,
            .target = &Settings::hash_keys,
            .help = "Whether the store sees keyed hashes instead of the values that clients send.",
            .advice = "Set it to yes if keys are personal data, with hash_keys_secret_file.",
            .choices = kNoOrYes},
    Setting{
        .name = "hash_keys_secret_file",
        .group = kStore,
        .target = &Settings::hash_keys_secret_file,
        .help = "A file whose first line is the secret of the hashes; the same for every instance.",
        .advice = "Set it with hash_keys; keep it private.",
        .paths = Paths::kAll},

    Setting{.name = "tls_certificate_file",
            .group = kTlsGroup,
            .target = &Settings::tls_certificate_file,
            .help = "A certificate chain (PEM) for addresses that begin with tls:; followed while "
                    "running.",
            .advice = "Give several for several server names; clients that ask for none of them "
                      "get the first.",
            .paths = Paths::kAll},
    Setting{.name = "tls_key_file",
            .group = kTlsGroup,
            .target = &Settings::tls_key_file,
            .help = "The private key (PEM) of the certificate at the same position.",
            .advice = "Keep it readable for the server alone.",
            .paths = Paths::kAll},
    Setting{.name = "tls_client_ca_file",
            .group = kTlsGroup,
            .target = &Settings::tls_client_ca_file,
            .help = "The authorities (PEM) that sign the certificates of clients; clients then "
                    "need one.",
            .advice = "Set it if only your own services may connect.",
            .paths = Paths::kAll},
    Setting{.name = "tls_client_name",
            .group = kTlsGroup,
            .target = &Settings::tls_client_name,
            .help = "A subject alternative name (DNS, URI or email) that clients' certificates "
                    "may have.",
            .advice = "Without one, every certificate that tls_client_ca_file signed will do."},

    Setting{
        .name = "credential",
        .group = kAccess,
        .target = &Settings::credential,
        .help = "The secret for reading and changing state: AUTH's password, HTTP's bearer token.",
        .advice =
            "Other users of the machine can see a flag: prefer credential_file or the environment.",
        .secret = Secret::kAll},
    Setting{.name = "credential_file",
            .group = kAccess,
            .target = &Settings::credential_file,
            .help = "A file whose first line is the credential.",
            .advice = "Use it with secrets that are mounted as files.",
            .paths = Paths::kAll},
    Setting{.name = "users_file",
            .group = kAccess,
            .target = &Settings::users_file,
            .help = "A file with users, their rights and the hashes of their passwords.",
            .advice = "Set it if not every client may do everything; docs/reference/users.md.",
            .paths = Paths::kAll},
    Setting{.name = "known_host",
            .group = kAccess,
            .target = &Settings::known_host,
            .help = "A host name that HTTP clients may use besides localhost; *.NAME for all names "
                    "below NAME, * for any.",
            .advice = "Name the server here if clients reach it by name; with * web pages can send "
                      "requests too."},

    Setting{.name = "threads",
            .group = kConnections,
            .target = &Settings::threads,
            .help = "Event loops; 0 is one per core.",
            .advice = "Lower it if other programs share the machine.",
            .max = 1024},
    Setting{.name = "max_connections",
            .group = kConnections,
            .target = &Settings::max_connections,
            .help = "The most open connections, without those to the admin address.",
            .advice = "Raise it with the limit on open files (ulimit -n); if that is too low, "
                      "max_connections is lowered.",
            .min = 1,
            .max = 10'000'000},
    Setting{.name = "max_connections_per_address",
            .group = kConnections,
            .target = &Settings::max_connections_per_address,
            .help = "Open connections from one address (IPv6: one /64 network); 0 is a quarter of "
                    "max_connections.",
            .advice = "Raise it if all clients come through one proxy.",
            .max = 10'000'000},
    Setting{.name = "max_admin_connections",
            .group = kConnections,
            .target = &Settings::max_admin_connections,
            .help = "The most open connections of the admin address; they do not count against "
                    "max_connections.",
            .advice = "Raise it if many programs keep connections to it open.",
            .min = 1,
            .max = 100'000},
    Setting{
        .name = "max_buffer_bytes",
        .group = kConnections,
        .target = &Settings::max_buffer_bytes,
        .help = "Memory for unfinished requests and unread answers of all connections together.",
        .advice =
            "Above it the largest and slowest connections are closed; raise it if memory is free.",
        .min = uint64_t{16} << 20,
        .max = uint64_t{1} << 40},
    Setting{.name = "request_timeout",
            .group = kConnections,
            .target = &Settings::request_timeout,
            .help = "The longest time from the first byte of a request to its last.",
            .advice = "Raise it for slow links.",
            .min = kMillisecond,
            .max = kYear},
    Setting{.name = "idle_timeout",
            .group = kConnections,
            .target = &Settings::idle_timeout,
            .help = "How long a connection may be idle between requests.",
            .advice = "Raise it if clients keep pools of connections that are idle for longer.",
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
            .help = "On SIGTERM: how long to keep serving while readiness fails.",
            .advice = "Set it to the time that a load balancer takes to notice.",
            .max = kYear},
    Setting{.name = "drain_timeout",
            .group = kConnections,
            .target = &Settings::drain_timeout,
            .help = "On SIGTERM: how long requests in progress may take to finish.",
            .advice = "Keep it below the time after which the service manager kills the process.",
            .max = kYear},

    Setting{.name = "log_level",
            .group = kLog,
            .target = &Settings::log_level,
            .help = "The lowest level of events that is logged.",
            .advice = "Lower it to debug while investigating a problem.",
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
            .advice = "Use plain if the log may hold what clients send.",
            .choices = "hashed|plain"},
};

}  // namespace

std::span<const Setting> AllSettings() { return kSettings; }

bool IsOfStore(const Setting& setting) { return setting.group == kStore; }
bool IsOfWatch(const Setting& setting) { return setting.name.starts_with("watch"); }
bool IsOfSidecar(const Setting& setting) { return IsOfStore(setting) || IsOfWatch(setting); }

const Setting* FindSetting(std::string_view name) {
  const auto found = std::find_if(kSettings.begin(), kSettings.end(),
                                  [&](const Setting& s) { return s.name == name; });
  return found == kSettings.end() ? nullptr : &*found;
}

}  // namespace headgate::app
