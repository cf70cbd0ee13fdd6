#include "headgate/app/settings/store_settings.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>

#include "headgate/base/check.h"
#include "headgate/store/open/open_backend.h"

namespace headgate::app {
namespace {

// Derives the secret from a text: each 32 bytes are the SHA-256 of the text and a counter.
base::HashSecret SecretFrom(const std::string& text) {
  base::HashSecret secret{};
  constexpr size_t kDigestBytes = 32;
  static_assert(sizeof(secret.bytes) % kDigestBytes == 0);
  for (size_t i = 0; i < secret.bytes.size() / kDigestBytes; ++i) {
    const std::string numbered = text + static_cast<char>(i);
    HEADGATE_CHECK(EVP_Digest(numbered.data(), numbered.size(),
                              secret.bytes.data() + i * kDigestBytes, nullptr, EVP_sha256(),
                              nullptr) == 1);
  }
  return secret;
}

// The setting that an option of the store comes from.
std::string_view SettingOf(store::BackendOption option) {
  using enum store::BackendOption;
  switch (option) {
    case kUrl:
      return "store";
    case kTimeout:
      return "store_timeout";
    case kConnectTimeout:
      return "store_connect_timeout";
    case kConnections:
      return "store_connections";
    case kInFlightMax:
      return "store_in_flight_max";
    case kRetryPercent:
      return "store_retry_percent";
    case kBreakerFailuresInRow:
      return "store_breaker_failures_in_row";
    case kBreakerNoProgress:
      return "store_breaker_no_progress";
    case kBreakerOpenMin:
      return "store_breaker_open_min";
    case kBreakerOpenMax:
      return "store_breaker_open_max";
    case kBreakerJitterPercent:
      return "store_breaker_jitter_percent";
    case kPassword:
      return "store_password_file";
    case kSentinelUser:
      return "store_sentinel_user";
    case kSentinelPassword:
      return "store_sentinel_password_file";
    case kCaFile:
      return "store_ca_file";
    case kCertificateFile:
      return "store_certificate_file";
    case kKeyFile:
      return "store_key_file";
    case kServerName:
      return "store_server_name";
    case kStrict:
      return "strict_store";
    case kInstances:
      return "store_instances";
  }
  return "store";
}

class StoreSettingsReader {
 public:
  explicit StoreSettingsReader(Configuration& configuration)
      : configuration_(configuration), settings_(configuration.settings) {}

  StoreSettings Read() {
    const StoreSettings store{.backend = ReadBackend(), .naming = ReadNaming()};
    for (const store::OptionProblem& problem : store::open::CheckOptions(store.backend))
      configuration_.AddProblem(SettingOf(problem.option), problem.what, problem.hint);
    if (store::open::IsStrict(settings_.store) &&
        settings_.store_lock_timeout >= settings_.request_timeout) {
      configuration_.AddProblem("store_lock_timeout",
                                "must be shorter than request_timeout, or the connection is closed "
                                "before the request is answered",
                                "lower it, or raise request_timeout");
    }
    return store;
  }

 private:
  // All instances share the secret, so that they give a bucket the same name.
  limiter::BucketNaming ReadNaming() {
    const bool hashed = settings_.hash_keys == "yes";
    std::string secret;
    configuration_.ReadSecret("hash_keys_secret_file", settings_.hash_keys_secret_file, secret);
    if (hashed && settings_.hash_keys_secret_file.empty()) {
      configuration_.AddProblem(
          "hash_keys", "needs hash_keys_secret_file, with the same secret for every instance");
    }
    return {.hashed = hashed, .secret = SecretFrom(secret)};
  }

  store::BackendOptions ReadBackend() {
    store::BackendOptions options{
        .url = settings_.store,
        .calls = ReadCallOptions(),
        .sentinel_user = settings_.store_sentinel_user,
        .ca_file = settings_.store_ca_file,
        .certificate_file = settings_.store_certificate_file,
        .key_file = settings_.store_key_file,
        .server_name = settings_.store_server_name,
        .strict = settings_.strict_store == "yes",
        .instances = static_cast<uint32_t>(settings_.store_instances),
        .lock_timeout = settings_.store_lock_timeout,
    };
    configuration_.ReadSecret("store_password_file", settings_.store_password_file,
                              options.password);
    configuration_.ReadSecret("store_sentinel_password_file",
                              settings_.store_sentinel_password_file, options.sentinel_password);
    return options;
  }

  store::CallOptions ReadCallOptions() const {
    const auto number = [](uint64_t value) { return static_cast<uint32_t>(value); };
    // A timeout that the operator has set is kept; only the default depends on the store.
    constexpr store::CallOptions kDefaults;
    const bool follows = settings_.store_timeout == kDefaults.timeout;
    return {.timeout = settings_.store_timeout,
            .silence_max = follows ? kDefaults.silence_max : settings_.store_timeout,
            .wait_max = follows ? kDefaults.wait_max : settings_.store_timeout,
            .connect_timeout = settings_.store_connect_timeout,
            .connections_per_server = number(settings_.store_connections),
            .in_flight_max = number(settings_.store_in_flight_max),
            .retry_percent = number(settings_.store_retry_percent),
            .breaker = {.failures_in_row = number(settings_.store_breaker_failures_in_row),
                        .no_progress = settings_.store_breaker_no_progress,
                        .open_min = settings_.store_breaker_open_min,
                        .open_max = settings_.store_breaker_open_max,
                        .jitter_percent = number(settings_.store_breaker_jitter_percent)}};
  }

  Configuration& configuration_;
  const Settings& settings_;
};

}  // namespace

void UseDefaultsOfStore(Configuration& configuration) {
  Settings& settings = configuration.settings;
  const auto is_given = [&](std::string_view name) { return configuration.origins.contains(name); };
  const store::CallOptions calls = store::open::DefaultCalls(settings.store);
  if (!is_given("store_timeout")) settings.store_timeout = calls.timeout;
  if (!is_given("store_connect_timeout")) settings.store_connect_timeout = calls.connect_timeout;
  if (!is_given("store_connections")) settings.store_connections = calls.connections_per_server;
  if (!store::open::IsStrict(settings.store)) return;
  if (!is_given("on_store_failure")) settings.on_store_failure = "deny";
  if (!is_given("store_lock_timeout"))
    settings.store_lock_timeout =
        std::min(settings.store_lock_timeout, settings.request_timeout / 2);
}

std::optional<StoreSettings> ReadStoreSettings(Configuration& configuration) {
  if (configuration.settings.store.empty()) return std::nullopt;
  return StoreSettingsReader(configuration).Read();
}

std::string ChangedSettings(const Configuration& configuration,
                            bool (*is_of_kind)(const Setting&)) {
  const Settings defaults = DefaultsOf(configuration.command);
  std::string names;
  for (const Setting& setting : AllSettings(configuration.command)) {
    if (!is_of_kind(setting) ||
        ShowValue(setting, configuration.settings) == ShowValue(setting, defaults))
      continue;
    names += (names.empty() ? "" : ", ") + std::string(setting.name);
  }
  return names;
}

}  // namespace headgate::app
