#include "headgate/app/store_settings.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <utility>

#include "headgate/base/check.h"
#include "headgate/disk/files.h"
#include "headgate/net/stream.h"
#include "headgate/store/redis/store_url.h"

namespace headgate::app {
namespace {

using store::redis::RedisOptions;

constexpr std::string_view kUrlForms =
    "for instance redis://127.0.0.1:6379, rediss://HOST:PORT (TLS) or "
    "redis+cluster://HOST:PORT,HOST:PORT";

// Round keys from a text: each 32 bytes are SHA-256 of the text and their number.
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

// The setting that a field of RedisOptions comes from; all that has none of its own is in the URL.
std::string SettingOf(std::string_view field) {
  for (const std::string_view end : {"", "_file"}) {
    std::string name = fmt::format("store_{}{}", field, end);
    if (FindSetting(name) != nullptr) return name;
  }
  return "store";
}

class Reader {
 public:
  explicit Reader(Configuration& configuration)
      : configuration_(configuration), settings_(configuration.settings) {}

  StoreSettings Read() {
    const auto parsed = store::redis::ParseStoreUrl(settings_.store);
    if (!parsed.ok()) configuration_.AddProblem("store", parsed.status(), kUrlForms);
    StoreSettings store{.redis = parsed.value_or(RedisOptions{}), .naming = ReadNaming()};
    FillIn(store.redis);
    if (parsed.ok()) Check(store.redis);
    return store;
  }

 private:
  // Leaves `to` alone where no file is named. Where it cannot be read, what it lacks then is not
  // said too.
  void ReadSecret(std::string_view setting, const std::string& path, std::string& to) {
    if (path.empty()) return;
    auto secret = disk::ReadFirstLine(path);
    if (!secret.ok()) configuration_.AddProblem(setting, secret.status());
    to = std::move(secret).value_or("(not read)");
  }

  // Every instance has to come to the same names, so that the secret is the fleet's.
  limiter::BucketNaming ReadNaming() {
    const bool hashed = settings_.hash_keys == "yes";
    std::string secret;
    ReadSecret("hash_keys_secret_file", settings_.hash_keys_secret_file, secret);
    if (hashed && settings_.hash_keys_secret_file.empty()) {
      configuration_.AddProblem(
          "hash_keys", "it needs hash_keys_secret_file: the same secret for every instance");
    }
    return {.hashed = hashed, .secret = SecretFrom(secret)};
  }

  void FillIn(RedisOptions& redis) {
    ReadSecret("store_password_file", settings_.store_password_file, redis.password);
    redis.sentinel_user = settings_.store_sentinel_user;
    ReadSecret("store_sentinel_password_file", settings_.store_sentinel_password_file,
               redis.sentinel_password);
    redis.timeout = settings_.store_timeout;
    redis.connect_timeout = settings_.store_connect_timeout;
    FillInNumbers(redis);
    redis.tls_files = {.ca_file = settings_.store_ca_file,
                       .certificate_file = settings_.store_certificate_file,
                       .key_file = settings_.store_key_file};
    redis.tls_server_name = settings_.store_server_name;
    redis.strict_store = settings_.strict_store == "yes";
  }

  void FillInNumbers(RedisOptions& redis) {
    const auto number = [](uint64_t value) { return static_cast<uint32_t>(value); };
    redis.connections_per_server = number(settings_.store_connections);
    redis.in_flight_max = number(settings_.store_in_flight_max);
    redis.retry_percent = number(settings_.store_retry_percent);
    redis.breaker = {.failures_in_row = number(settings_.store_breaker_failures_in_row),
                     .no_progress = settings_.store_breaker_no_progress,
                     .open_min = settings_.store_breaker_open_min,
                     .open_max = settings_.store_breaker_open_max,
                     .jitter_percent = number(settings_.store_breaker_jitter_percent)};
  }

  void Check(const RedisOptions& redis) {
    for (const RedisOptions::Problem& problem : redis.Problems()) {
      configuration_.AddProblem(SettingOf(problem.field), problem.what);
    }
    redis.tls ? CheckTlsFiles(redis.tls_files) : RefuseTlsSettings();
  }

  void CheckTlsFiles(const net::TlsOptions& files) {
    const auto ca = net::TlsContext::Load({.ca_file = files.ca_file});
    if (!ca.ok()) configuration_.AddProblem("store_ca_file", ca.status());
    if (files.certificate_file.empty() || files.key_file.empty()) return;
    const auto own = net::TlsContext::Load(
        {.certificate_file = files.certificate_file, .key_file = files.key_file});
    if (own.ok()) return;
    const bool key = std::string(own.status().message()).starts_with("the key");
    configuration_.AddProblem(key ? "store_key_file" : "store_certificate_file", own.status());
  }

  // Who sets them expects TLS.
  void RefuseTlsSettings() {
    for (const std::string_view name :
         {"store_ca_file", "store_certificate_file", "store_key_file", "store_server_name"}) {
      if (ShowValue(*FindSetting(name), settings_).front().empty()) continue;
      configuration_.AddProblem(name, "the store's URL is without TLS",
                                "write rediss:// for redis://, or remove it");
    }
  }

  Configuration& configuration_;
  const Settings& settings_;
};

}  // namespace

std::optional<StoreSettings> ReadStoreSettings(Configuration& configuration) {
  if (configuration.settings.store.empty()) return std::nullopt;
  return Reader(configuration).Read();
}

std::string SettingsWithoutStore(const Settings& settings) {
  const std::string_view group = FindSetting("store")->group;
  std::string names;
  for (const Setting& setting : AllSettings()) {
    if (setting.group != group || ShowValue(setting, settings) == ShowValue(setting, Settings{}))
      continue;
    names += (names.empty() ? "" : ", ") + std::string(setting.name);
  }
  return names;
}

}  // namespace headgate::app
