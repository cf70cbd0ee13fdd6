// Every setting of `headgate serve` and `headgate sidecar`, declared once (settings_table.cc and
// sidecar_table.cc): name, commands, type, bounds, help. Flags (`--idle-timeout`), keys of a
// settings file (`idle_timeout`), environment variables (`HEADGATE_IDLE_TIMEOUT`), help,
// completions and --print-config are made from this table. A test compares examples/headgate.yaml,
// docs/reference/configuration.md and docs/reference/sidecar-settings.md with it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "headgate/algorithm/fair_share_options.h"
#include "headgate/base/secret.h"
#include "headgate/base/status.h"
#include "headgate/base/time.h"
#include "headgate/capacity/capacity_controller.h"
#include "headgate/net/server_options.h"
#include "headgate/store/backend_options.h"

namespace headgate::app {

// The commands that take settings.
enum class Command : uint8_t { kServe = 1, kSidecar = 2, kBoth = 3 };
// "serve"; of one command.
std::string_view NameOf(Command command);

// The values, with the defaults of `serve`.
struct Settings {
  // The defaults of these options are declared with the options.
  static constexpr store::CallOptions kStore{};
  static constexpr net::ServerOptions kServer{};

  std::vector<std::string> listen{"127.0.0.1:8080"};
  std::vector<std::string> listen_resp;
  std::vector<std::string> listen_http;
  std::vector<std::string> listen_spoe;
  std::vector<std::string> listen_proxy;  // a sidecar calls it `listen`
  std::string admin_listen = "127.0.0.1:8081";
  std::string rate_limit_fields = "all";
  std::string refusal_file;
  uint64_t retry_after_jitter = 0;
  base::Duration retry_after_jitter_max{0};
  std::string partition_key_secret_file;
  std::string reservation_secret_file;

  std::string auth;
  std::string auth_header;

  std::vector<std::string> rules;
  std::vector<std::string> rule;
  std::string merge_domains = "no";
  std::string passthrough = "no";
  std::vector<std::string> watch;
  std::string watch_password_file;
  base::Secret watch_password;  // no setting: CheckWatch reads it from the file
  std::string watch_copy;
  std::string audit_log;
  base::Duration watch_session_timeout = std::chrono::seconds(10);

  uint64_t max_buckets = uint64_t{1} << 20;
  uint64_t max_limits = uint64_t{1} << 18;
  std::string snapshot;
  base::Duration snapshot_interval = std::chrono::seconds(30);

  std::string store;
  std::string store_password_file;
  std::string store_sentinel_user;
  std::string store_sentinel_password_file;
  base::Duration store_timeout = kStore.timeout;
  base::Duration store_lock_timeout = store::BackendOptions{}.lock_timeout;
  base::Duration store_connect_timeout = kStore.connect_timeout;
  uint64_t store_connections = kStore.connections_per_server;
  uint64_t store_in_flight_max = kStore.in_flight_max;
  uint64_t store_retry_percent = kStore.retry_percent;
  uint64_t store_breaker_failures_in_row = kStore.breaker.failures_in_row;
  base::Duration store_breaker_no_progress = kStore.breaker.no_progress;
  base::Duration store_breaker_open_min = kStore.breaker.open_min;
  base::Duration store_breaker_open_max = kStore.breaker.open_max;
  uint64_t store_breaker_jitter_percent = kStore.breaker.jitter_percent;
  uint64_t store_instances = 0;
  std::string store_ca_file;
  std::string store_certificate_file;
  std::string store_key_file;
  std::string store_server_name;
  std::string strict_store = "no";
  std::string sharing = "leased";
  std::string on_store_failure = "local";
  std::string hash_keys = "no";
  std::string hash_keys_secret_file;

  std::vector<std::string> tls_certificate_file;
  std::vector<std::string> tls_key_file;
  std::string tls_client_ca_file;
  std::vector<std::string> tls_client_name;

  std::string credential;
  std::string credential_file;
  std::string users_file;
  std::vector<std::string> known_host;
  std::string show_keys = "clear";

  uint64_t threads = 0;
  uint64_t max_connections = kServer.connections_max;
  uint64_t max_connections_per_address = kServer.connections_per_address_max;
  uint64_t max_admin_connections = 64;
  uint64_t max_buffer_bytes = kServer.buffer_bytes_max;
  base::Duration request_timeout = kServer.request_timeout;
  base::Duration idle_timeout = kServer.idle_timeout;
  base::Duration write_timeout = kServer.write_timeout;
  uint64_t max_body_bytes = uint64_t{1} << 20;
  base::Duration drain_delay{0};
  base::Duration drain_timeout = std::chrono::seconds(10);

  std::string log_level = "info";
  std::string log_format = "text";
  std::string log_client_keys = "hashed";

  // Only for the proxy.
  std::string mappings;
  std::string upstream;
  base::Duration upstream_resolve = std::chrono::seconds(5);
  std::string upstream_ca_file;
  std::string upstream_tls_name;
  std::string upstream_certificate_file;
  std::string upstream_key_file;
  uint64_t upstream_connections = 512;
  uint64_t queue = 1024;
  std::string check_path;
  base::Duration check_interval = std::chrono::seconds(5);

  std::string capacity;
  base::Duration cycle = std::chrono::seconds(10);
  std::string reservation = "10%";
  std::string on_new_client = "redivide";
  std::string lending = "proportional";
  std::string reclaim = "next_cycle";
  std::string minimum_cycle;
  uint64_t leave_after = algorithm::FairShareOptions{}.leave_after_cycles;
  uint64_t limit_min = capacity::CapacityOptions{}.limit_min;
  uint64_t limit_max = capacity::CapacityOptions{}.limit_max;
  std::string scope = "replica";
  std::string pool = "default";
  std::string mode = "enforce";

  std::string client_header = "X-Client-Id";
  std::string client_from_certificate = "no";
  std::string anonymous;
  uint64_t clients = algorithm::FairShareOptions{}.clients_max;
  std::vector<std::string> client_weight;
  std::vector<std::string> cors_origin;
  std::string preflights = "pass";

  std::string x_forwarded = "append";
  std::string forwarded = "off";
  std::string via = "headgate";
  std::string no_reason = "no";

  std::string abandoned = "cancel";
  base::Duration connect_timeout = std::chrono::seconds(5);
  base::Duration answer_timeout = std::chrono::minutes(1);
  base::Duration tunnel_idle_timeout = std::chrono::hours(1);
  base::Duration queue_timeout = std::chrono::seconds(5);
  std::string handover;
};

// A sidecar has a few other defaults.
Settings DefaultsOf(Command command);

// The part of a value that is a secret.
enum class Secret : uint8_t { kNothing, kAll, kLogin };  // kLogin: the part of a URL before the '@'

// Which values are paths. Paths in a settings file are relative to the directory of the file.
enum class Paths : uint8_t {
  kNone,
  kAll,
  kAddresses
};  // kAddresses: the part behind "unix:", and that behind "refusal_file="

struct Setting {
  using Target = std::variant<std::string Settings::*, std::vector<std::string> Settings::*,
                              uint64_t Settings::*, base::Duration Settings::*>;

  std::string_view name;   // as in the file
  std::string_view group;  // the heading under which it is listed
  Target target;
  std::string_view help;    // one sentence
  std::string_view advice;  // when to change it
  uint64_t min = 0;         // of numbers; of durations in nanoseconds
  uint64_t max = ~uint64_t{0};
  std::string_view choices{};        // "a|b|c", or empty
  Secret secret = Secret::kNothing;  // never shown
  Paths paths = Paths::kNone;
  Command of = Command::kBoth;

  bool is_list() const {
    return std::holds_alternative<std::vector<std::string> Settings::*>(target);
  }
};

// The choices of settings that are on or off; `true` and `false` are accepted too.
inline constexpr std::string_view kNoOrYes = "no|yes";

// The settings of one command, a group after the other.
std::span<const Setting> AllSettings(Command command = Command::kServe);
// Whether a setting is about the store that instances share, about rules in ZooKeeper, or about the
// proxy alone.
bool IsOfStore(const Setting& setting);
bool IsOfWatch(const Setting& setting);
bool IsOfProxy(const Setting& setting);
// Null if the command has no setting of this name.
const Setting* FindSetting(std::string_view name, Command command = Command::kServe);
// The name of the setting that the user probably meant, or empty.
std::string_view NearestSetting(std::string_view name, Command command = Command::kServe);

// "--idle-timeout", "HEADGATE_IDLE_TIMEOUT".
std::string FlagOf(const Setting& setting);
std::string EnvironmentNameOf(std::string_view setting);
// The type of a value: "text", "list", "number", "duration", or its choices.
std::string TypeOf(const Setting& setting);

// Reads `values` (one, or any number for a list) into `settings`. InvalidArgument says which values
// are allowed.
absl::Status SetValue(const Setting& setting, std::span<const std::string> values,
                      Settings& settings);

// The values as a user would write them; secrets as "(hidden)".
std::vector<std::string> ShowValue(const Setting& setting, const Settings& settings);
// Whether ShowValue hides a part of the value.
bool HidesValue(const Setting& setting, const Settings& settings);

// Puts `directory` before each relative path of `values`.
void ResolvePaths(Paths paths, const std::string& directory, std::vector<std::string>& values);

}  // namespace headgate::app
