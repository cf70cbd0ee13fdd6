#include "headgate/app/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "headgate/rule/duration.h"
#include "headgate/rule/problem.h"
#include "headgate/store/limit_table.h"

namespace headgate::app {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;
constexpr uint64_t kSecond = 1000 * kMillisecond;
constexpr uint64_t kYear = 365 * 24 * 3600 * kSecond;

constexpr std::string_view kNoOrYes = "no|yes";
constexpr std::string_view kUnixPrefix = "unix:";

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
            .help = "An address for every protocol: HOST:PORT, :PORT (all interfaces), [v6]:PORT or unix:PATH.",
            .advice = "Give several for several addresses; \"none\" for none. Beyond loopback, set a credential too.",
            .paths = Paths::kUnixAddresses},
    Setting{.name = "listen_resp",
            .group = kWhere,
            .target = &Settings::listen_resp,
            .help = "An address that speaks the Redis protocol only.",
            .advice = "Alone it opens nothing else: name listen and admin_listen too for HTTP, metrics and health.",
            .paths = Paths::kUnixAddresses},
    Setting{.name = "listen_http",
            .group = kWhere,
            .target = &Settings::listen_http,
            .help = "An address that speaks HTTP only, metrics and health included.",
            .advice = "Alone it opens nothing else: use it if the Redis protocol must not be reachable.",
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
    Setting{.name = "merge_domains",
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
            .help = "The most different limits of clients that are remembered; rules have room of their own.",
            .advice = "Raise it when headgate_client_limits_forgotten_total grows.",
            .min = 16,
            .max = store::LimitTable::kClientLimitsMax},
    Setting{.name = "snapshot",
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

    Setting{.name = "store",
            .group = kStore,
            .target = &Settings::store,
            .help = "Where limits are shared: redis://HOST:PORT and kin; empty: each instance by itself.",
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
            .advice = "Set it where sentinels have users of their own (ACL); give store_sentinel_password_file too."},
    Setting{.name = "store_sentinel_password_file",
            .group = kStore,
            .target = &Settings::store_sentinel_password_file,
            .help = "A file whose first line is the sentinels' password; empty: none is sent to them.",
            .advice = "Set it where sentinels have requirepass; the login in the URL is the servers' alone.",
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
            .help = "Second attempts of calls that were certainly not done, in per cent of the calls; 0 for none.",
            .advice = "Raise it where slots of a cluster move often.",
            .max = 100},
    Setting{
        .name = "store_breaker_failures_in_row",
        .group = kStore,
        .target = &Settings::store_breaker_failures_in_row,
        .help = "A server of the store is left alone for a while after this many failed calls in a row.",
        .advice = "Only if they span store_breaker_no_progress; raise it for a store that often loses single calls.",
        .min = 1,
        .max = 1'000'000},
    Setting{.name = "store_breaker_no_progress",
            .group = kStore,
            .target = &Settings::store_breaker_no_progress,
            .help = "How long a server must answer nothing in time before it is left alone.",
            .advice =
                "Raise it if the store pauses for longer and answers again; each decision waits for store_timeout "
                "meanwhile.",
            .max = 60 * kSecond},
    Setting{.name = "store_breaker_open_min",
            .group = kStore,
            .target = &Settings::store_breaker_open_min,
            .help = "How long a server of the store is left alone at first; then one call tries.",
            .advice = "Lower it where outages are short; each attempt costs one request its store_timeout.",
            .min = kMillisecond,
            .max = 3600 * kSecond},
    Setting{.name = "store_breaker_open_max",
            .group = kStore,
            .target = &Settings::store_breaker_open_max,
            .help = "How long it is left alone at most: the time doubles whenever the attempt fails.",
            .advice = "Lower it where the store shall be used again sooner after a long outage.",
            .min = kMillisecond,
            .max = 3600 * kSecond},
    Setting{.name = "store_breaker_jitter_percent",
            .group = kStore,
            .target = &Settings::store_breaker_jitter_percent,
            .help = "How much more or less than that, so that a fleet's attempts do not come together.",
            .advice = "Raise it in large fleets.",
            .max = 90},
    Setting{.name = "store_instances",
            .group = kStore,
            .target = &Settings::store_instances,
            .help = "How many instances share a limit while the store is away; 0: as many as it last counted.",
            .advice = "Set it where the number is fixed: an instance that starts without the store knows of no others.",
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
            .help = "Whom the store's certificate must name; empty: the host in the URL.",
            .advice = "Set it where the store is known by address only."},
    Setting{.name = "strict_store",
            .group = kStore,
            .target = &Settings::strict_store,
            .help = "Whether a store is refused that may evict live limits (maxmemory-policy).",
            .advice = "Set it to yes where a forgotten limit is worse than a store that is not used.",
            .choices = kNoOrYes},
    Setting{.name = "sharing",
            .group = kStore,
            .target = &Settings::sharing,
            .help = "Whether hot keys are decided from leases, or each decision asks the store; rules may differ.",
            .advice = "Set it to exact where remaining must be exact to the request, and a round trip does not matter.",
            .choices = "leased|exact"},
    Setting{.name = "on_store_failure",
            .group = kStore,
            .target = &Settings::on_store_failure,
            .help = "Without the store: each instance its share, all allowed, or all denied; rules may differ.",
            .advice = "Set it to allow where letting too many through is the lesser evil, to deny where it is not.",
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

    Setting{.name = "credential",
            .group = kAccess,
            .target = &Settings::credential,
            .help = "What whoever changes or reads state must present: AUTH's password, HTTP's bearer token.",
            .advice = "A flag can be seen by other users of the machine: prefer credential_file or the environment.",
            .secret = Secret::kAll},
    Setting{.name = "credential_file",
            .group = kAccess,
            .target = &Settings::credential_file,
            .help = "A file whose first line is the credential.",
            .advice = "Use it with secrets that are mounted as files.",
            .paths = Paths::kAll},
    Setting{.name = "known_host",
            .group = kAccess,
            .target = &Settings::known_host,
            .help = "A host name that HTTP clients may use besides localhost; *.NAME for all below it, * for any.",
            .advice = "Name the server here if clients reach it by name; * lets web pages ask too."},

    Setting{.name = "threads",
            .group = kConnections,
            .target = &Settings::threads,
            .help = "Event loops; 0 is one per core.",
            .advice = "Lower it where other programs share the machine.",
            .max = 1024},
    Setting{.name = "max_connections",
            .group = kConnections,
            .target = &Settings::max_connections,
            .help = "Open connections in all, besides those of the admin address.",
            .advice = "Raise it with the limit on open files (ulimit -n); too few of those lower it.",
            .min = 1,
            .max = 10'000'000},
    Setting{.name = "max_connections_per_address",
            .group = kConnections,
            .target = &Settings::max_connections_per_address,
            .help = "Open connections from one address (IPv6: one /64 network); 0 is a quarter of max_connections.",
            .advice = "Raise it if all clients come through one proxy.",
            .max = 10'000'000},
    Setting{.name = "max_admin_connections",
            .group = kConnections,
            .target = &Settings::max_admin_connections,
            .help = "Open connections of the admin address; they do not count against max_connections.",
            .advice = "Raise it if many programs keep connections to it open.",
            .min = 1,
            .max = 100'000},
    Setting{.name = "max_buffer_bytes",
            .group = kConnections,
            .target = &Settings::max_buffer_bytes,
            .help = "Memory for unfinished requests and unread answers of all connections together.",
            .advice = "Beyond it the largest and slowest are closed; raise it with the memory that there is.",
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
    Setting{.name = "log_client_keys",
            .group = kLog,
            .target = &Settings::log_client_keys,
            .help = "Whether the log shows clients' keys, or hashes of them.",
            .advice = "Use plain where the log may hold what clients send.",
            .choices = "hashed|plain"},
};

absl::Status Bad(const Setting& setting, std::string_view value, std::string_view why) {
  const std::string_view shown = setting.secret == Secret::kNothing ? value : std::string_view("(hidden)");
  return absl::InvalidArgumentError(fmt::format("{} '{}': {}", setting.name, shown, why));
}

// "a|b|c" as "a, b or c".
std::string InWords(std::string_view choices) {
  std::string words(choices);
  const size_t last = words.rfind('|');
  words.replace(last, 1, " or ");
  for (size_t bar = words.find('|'); bar != std::string::npos; bar = words.find('|')) words.replace(bar, 1, ", ");
  return words;
}

bool IsChoice(std::string_view choices, std::string_view value) {
  while (true) {
    const size_t bar = choices.find('|');
    if (choices.substr(0, bar) == value) return true;
    if (bar == std::string_view::npos) return false;
    choices.remove_prefix(bar + 1);
  }
}

// `true` and `false` are as good.
const std::string& NoOrYes(const std::string& value) {
  static const std::string no = "no", yes = "yes";
  return value == "true" ? yes : value == "false" ? no : value;
}

std::string ShowDuration(uint64_t ns) { return rule::FormatDuration(base::Duration(static_cast<int64_t>(ns))); }

absl::StatusOr<uint64_t> ParseNumber(const Setting& setting, std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || value < setting.min || value > setting.max) {
    return Bad(setting, text, fmt::format("write a whole number from {} to {}", setting.min, setting.max));
  }
  return value;
}

absl::StatusOr<base::Duration> ParseDurationSetting(const Setting& setting, std::string_view text) {
  const auto value = rule::ParseDuration(text);
  if (!value.ok()) return Bad(setting, text, "write a duration such as 500ms, 30s or 1m30s");
  const auto ns = static_cast<uint64_t>(value->count());
  if (ns < setting.min || ns > setting.max) {
    return Bad(setting, text,
               fmt::format("write a duration from {} to {}", ShowDuration(setting.min), ShowDuration(setting.max)));
  }
  return *value;
}

}  // namespace

std::span<const Setting> AllSettings() { return kSettings; }

const Setting* FindSetting(std::string_view name) {
  const auto found = std::find_if(kSettings.begin(), kSettings.end(), [&](const Setting& s) { return s.name == name; });
  return found == kSettings.end() ? nullptr : &*found;
}

std::string FlagOf(const Setting& setting) {
  std::string flag = fmt::format("--{}", setting.name);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

std::string EnvironmentNameOf(const Setting& setting) {
  std::string name = fmt::format("HEADGATE_{}", setting.name);
  for (char& c : name) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return name;
}

std::string TypeOf(const Setting& setting) {
  if (!setting.choices.empty()) return std::string(setting.choices);
  static constexpr std::array<const char*, 4> kNames = {"text", "list", "number", "duration"};
  return kNames[setting.target.index()];
}

absl::Status SetValue(const Setting& setting, std::span<const std::string> values, Settings& settings) {
  if (const auto* list = std::get_if<std::vector<std::string> Settings::*>(&setting.target)) {
    settings.** list = {values.begin(), values.end()};
    return absl::OkStatus();
  }
  if (values.size() != 1) {
    return absl::InvalidArgumentError(
        fmt::format("{}: one value is wanted, {} are given", setting.name, values.size()));
  }
  const std::string& value = values.front();
  if (const auto* number = std::get_if<uint64_t Settings::*>(&setting.target)) {
    HEADGATE_ASSIGN_OR_RETURN(settings.**number, ParseNumber(setting, value));
  } else if (const auto* duration = std::get_if<base::Duration Settings::*>(&setting.target)) {
    HEADGATE_ASSIGN_OR_RETURN(settings.**duration, ParseDurationSetting(setting, value));
  } else {
    const std::string& meant = setting.choices == kNoOrYes ? NoOrYes(value) : value;
    if (!setting.choices.empty() && !IsChoice(setting.choices, meant)) {
      return Bad(setting, value, fmt::format("write {}", InWords(setting.choices)));
    }
    settings.*std::get<std::string Settings::*>(setting.target) = meant;
  }
  return absl::OkStatus();
}

std::vector<std::string> ShowValue(const Setting& setting, const Settings& settings) {
  if (const auto* list = std::get_if<std::vector<std::string> Settings::*>(&setting.target)) return settings.**list;
  if (const auto* number = std::get_if<uint64_t Settings::*>(&setting.target)) {
    return {std::to_string(settings.**number)};
  }
  if (const auto* duration = std::get_if<base::Duration Settings::*>(&setting.target)) {
    return {rule::FormatDuration(settings.**duration)};
  }
  const std::string& text = settings.*std::get<std::string Settings::*>(setting.target);
  if (!HidesValue(setting, settings)) return {text};
  if (setting.secret == Secret::kAll) return {"(hidden)"};
  const size_t scheme = text.find("://");
  return {(scheme == std::string::npos ? "" : text.substr(0, scheme + 3)) + "(hidden)" + text.substr(text.rfind('@'))};
}

bool HidesValue(const Setting& setting, const Settings& settings) {
  if (setting.secret == Secret::kNothing) return false;
  const std::string& text = settings.*std::get<std::string Settings::*>(setting.target);
  return setting.secret == Secret::kAll ? !text.empty() : text.find('@') != std::string::npos;
}

void ResolvePaths(const Setting& setting, const std::string& directory, std::vector<std::string>& values) {
  if (setting.paths == Paths::kNone || directory.empty()) return;
  for (std::string& value : values) {
    const size_t at = setting.paths == Paths::kAll ? 0 : kUnixPrefix.size();
    if (at > 0 && !value.starts_with(kUnixPrefix)) continue;
    if (value.size() > at && value[at] != '/') value.insert(at, directory + '/');
  }
}

std::string_view NearestSetting(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Setting& setting : kSettings) names.push_back(setting.name);
  return rule::NearestWord(name, names);
}

}  // namespace headgate::app
