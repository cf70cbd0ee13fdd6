#include "headgate/store/redis/redis_backend.h"

#include <utility>

#include "headgate/base/random.h"
#include "headgate/store/big_endian.h"
#include "headgate/store/cas/read_value.h"
#include "headgate/store/damaged_value.h"
#include "headgate/store/redis/client.h"
#include "headgate/store/redis/error_text.h"
#include "headgate/store/redis/heartbeat.h"
#include "headgate/store/redis/redis_store.h"
#include "headgate/store/redis/store_url.h"
#include "headgate/store/redis/value_checksum.h"
#include "headgate/store/redis/values.h"
#include "headgate/store/usability.h"

namespace headgate::store::redis {
namespace {

absl::StatusOr<RedisOptions> RedisOptionsOf(const BackendOptions& options) {
  HEADGATE_ASSIGN_OR_RETURN(RedisOptions redis, ParseStoreUrl(options.url));
  if (!options.password.empty()) redis.password = options.password;
  redis.sentinel_user = options.sentinel_user;
  redis.sentinel_password = options.sentinel_password;
  redis.timeout = options.calls.timeout;
  redis.silence_max = options.calls.silence_max;
  redis.wait_max = options.calls.wait_max;
  redis.connect_timeout = options.calls.connect_timeout;
  redis.connections_per_server = options.calls.connections_per_server;
  redis.in_flight_max = options.calls.in_flight_max;
  redis.retry_percent = options.calls.retry_percent;
  redis.breaker = options.calls.breaker;
  redis.tls_files = {.ca_file = options.ca_file,
                     .certificate_file = options.certificate_file,
                     .key_file = options.key_file};
  redis.tls_server_name = options.server_name;
  redis.strict_store = options.strict;
  return redis;
}

BackendOption OptionOf(net::TlsProblem::File file) {
  switch (file) {
    case net::TlsProblem::File::kCa:
      return BackendOption::kCaFile;
    case net::TlsProblem::File::kCertificate:
      return BackendOption::kCertificateFile;
    case net::TlsProblem::File::kKey:
      return BackendOption::kKeyFile;
  }
  return BackendOption::kUrl;
}

// A user who sets an option of TLS expects TLS, so without TLS the option is an error.
void RefuseTlsOptions(const BackendOptions& options, std::vector<OptionProblem>& problems) {
  using enum BackendOption;
  const std::pair<BackendOption, const std::string&> tls_options[] = {
      {kCaFile, options.ca_file},
      {kCertificateFile, options.certificate_file},
      {kKeyFile, options.key_file},
      {kServerName, options.server_name}};
  for (const auto& [option, value] : tls_options) {
    if (value.empty()) continue;
    problems.push_back({option, "the URL of the store does not use TLS",
                        "use rediss:// in place of redis://, or remove this setting"});
  }
}

class RedisBackend final : public Backend {
 public:
  static absl::StatusOr<std::unique_ptr<Backend>> Make(const BackendOptions& options,
                                                       std::span<net::EventLoop* const> loops,
                                                       const BackendContext& context) {
    HEADGATE_ASSIGN_OR_RETURN(const RedisOptions redis, RedisOptionsOf(options));
    std::unique_ptr<RedisBackend> backend(new RedisBackend(StoreName(redis), context));
    base::Random random(context.seed);
    for (uint32_t i = 0; i < loops.size(); ++i) {
      StoreListener listener = context.listener_of(i);
      listener.on_usability = [backend = backend.get(), i](const absl::Status& state) {
        backend->usability_.Set(i, state);
      };
      HEADGATE_ASSIGN_OR_RETURN(std::unique_ptr<Client> client,
                                Client::Make(*loops[i], redis, random.Next(), listener));
      backend->clients_.push_back(std::move(client));
      backend->values_.push_back(
          std::make_unique<Values>(*backend->clients_.back(), random.Next()));
      if (i == 0) backend->StartHeartbeat(context.instance, listener.on_instances_error);
      backend->stores_.push_back(std::make_unique<RedisStore>(
          *backend->clients_.back(), context.limits,
          RedisStore::Options{.counted = [backend = backend.get()] { return backend->instances(); },
                              .instances = options.instances,
                              .on_script_error = listener.on_decision_error,
                              .on_damaged =
                                  [name = backend->name_, alarm = listener.on_alarm] {
                                    if (alarm) alarm(name, std::string(kDamagedValueAlarm));
                                  }}));
    }
    return backend;
  }

  SharedStore& store(uint32_t loop) override { return *stores_.at(loop); }
  cas::VersionedStore& values(uint32_t loop) override { return *values_.at(loop); }
  std::string name() const override { return name_; }
  absl::Status problem() const override { return usability_.problem(); }
  void LeaveCount() override {
    heartbeat_->Leave([] {});
  }
  void Leave(std::function<void()> done) override { heartbeat_->Leave(std::move(done)); }
  uint32_t instances() const override { return context_.InstancesOf(heartbeat_->instances()); }

  StoreCounters counters() const override {
    StoreCounters counters;
    for (const auto& store : stores_) counters += store->ReadCounters();
    counters.script_errors += heartbeat_->errors();
    return counters;
  }

 private:
  RedisBackend(std::string name, const BackendContext& context)
      : name_(std::move(name)), context_(context) {}

  void StartHeartbeat(const std::string& instance,
                      std::function<void(const std::string& error)> on_error) {
    heartbeat_ = std::make_unique<Heartbeat>(
        *clients_.front(), instance,
        HeartbeatOptions{.on_error = [on_error = std::move(on_error)](const std::string& error) {
          if (on_error) on_error(WithoutArguments(error));
        }});
  }

  const std::string name_;
  const BackendContext context_;
  Usability usability_;
  std::vector<std::unique_ptr<Client>> clients_;  // one per loop, as the stores
  std::vector<std::unique_ptr<Values>> values_;
  std::unique_ptr<Heartbeat> heartbeat_;  // lives on the first loop
  std::vector<std::unique_ptr<RedisStore>> stores_;
};

absl::StatusOr<std::string> CheckedBucket(std::string_view value) {
  auto bucket = BucketOfValue(value);
  if (!bucket) return absl::DataLossError("the value is not a bucket, or its checksum is wrong");
  return *std::move(bucket);
}

}  // namespace

std::vector<OptionProblem> CheckOptions(const BackendOptions& options) {
  const auto redis = RedisOptionsOf(options);
  if (!redis.ok()) {
    return {{BackendOption::kUrl, std::string(redis.status().message()),
             "for example " + std::string(kUrlExamples)}};
  }
  std::vector<OptionProblem> problems = redis->Problems();
  if (!redis->tls) {
    RefuseTlsOptions(options, problems);
  } else {
    for (net::TlsProblem& problem : net::ProblemsOfFiles(redis->tls_files))
      problems.push_back({OptionOf(problem.file), std::move(problem.what)});
  }
  return problems;
}

absl::StatusOr<std::unique_ptr<Backend>> OpenBackend(const BackendOptions& options,
                                                     std::span<net::EventLoop* const> loops,
                                                     const BackendContext& context) {
  return RedisBackend::Make(options, loops, context);
}

absl::StatusOr<std::string> ReadBucket(const BackendOptions& options, std::string_view name,
                                       base::Duration timeout) {
  HEADGATE_ASSIGN_OR_RETURN(const RedisOptions redis, RedisOptionsOf(options));
  const base::SystemClock clock;
  net::EventLoop loop(clock);
  HEADGATE_ASSIGN_OR_RETURN(const std::unique_ptr<Client> client, Client::Make(loop, redis, 1));
  Values values(*client, 1);
  HEADGATE_ASSIGN_OR_RETURN(const auto found, cas::ReadValue(values, loop, name, timeout));
  if (!found) return "";
  std::string bytes;
  if (found->version != cas::Version{}) {
    // A bucket does not begin with a version: all its bytes are its own.
    Packer(bytes).U64(found->version.number);
    return CheckedBucket(bytes + found->bytes);
  }
  // A sliding log is a list, whose elements together are the bytes of the bucket.
  std::optional<absl::Status> outcome;
  const std::string_view words[] = {"LRANGE", name, "0", "-1"};
  client->CallCommand(name, words, timeout, [&](const PendingCall::Outcome& reply) {
    outcome = reply.status();
    if (!reply.ok()) return;
    if ((*reply)->is_error()) outcome = absl::DataLossError(WithoutArguments((*reply)->text));
    for (const wire::RespValue& item : (*reply)->items) bytes += item.text;
  });
  loop.RunUntil([&] { return outcome.has_value(); }, timeout + std::chrono::seconds(1));
  if (!outcome) return absl::DeadlineExceededError("the store does not answer");
  HEADGATE_RETURN_IF_ERROR(*outcome);
  return CheckedBucket(bytes);
}

}  // namespace headgate::store::redis
