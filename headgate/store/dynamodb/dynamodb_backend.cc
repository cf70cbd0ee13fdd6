#include "headgate/store/dynamodb/dynamodb_backend.h"

#include <fmt/format.h>

#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "headgate/base/random.h"
#include "headgate/files/files.h"
#include "headgate/store/cas/cas_store.h"
#include "headgate/store/cas/read_value.h"
#include "headgate/store/damaged_value.h"
#include "headgate/store/dynamodb/credential_source.h"
#include "headgate/store/dynamodb/instances.h"
#include "headgate/store/dynamodb/server_time.h"
#include "headgate/store/dynamodb/state_store.h"
#include "headgate/store/dynamodb/table_client.h"
#include "headgate/store/dynamodb/table_maker.h"
#include "headgate/store/usability.h"

namespace headgate::store::dynamodb {
namespace {

using absl::Status;

// A lost race takes two round trips; the instance that won needs only one for its next write, so
// the others lose often. They also pay for lost writes, so they wait longer than with ZooKeeper.
constexpr base::Duration kPauseMin = std::chrono::milliseconds(1);
constexpr base::Duration kPauseMax = std::chrono::milliseconds(32);
constexpr size_t kCaFileBytesMax = size_t{4} << 20;

absl::StatusOr<Table> TableOf(const BackendOptions& options) {
  return ParseTableUrl(options.url, SystemEnvironment());
}

client::http::ClientOptions HttpOptionsOf(const BackendOptions& options, const Table& table) {
  return {.origin = table.endpoint,
          .connections_max = options.calls.connections_per_server,
          .requests_max = options.calls.in_flight_max,
          .connect_timeout = options.calls.connect_timeout,
          .ca_file = options.ca_file};
}

void AddUselessOptions(const BackendOptions& options, std::vector<OptionProblem>& problems) {
  using enum BackendOption;
  const std::pair<BackendOption, bool> set[] = {
      {kPassword, !options.password.empty()},
      {kSentinelUser, !options.sentinel_user.empty()},
      {kSentinelPassword, !options.sentinel_password.empty()},
      {kCertificateFile, !options.certificate_file.empty()},
      {kKeyFile, !options.key_file.empty()},
      {kServerName, !options.server_name.empty()},
      {kRetryPercent, options.calls.retry_percent != CallOptions().retry_percent}};
  for (const auto& [option, is_set] : set) {
    if (!is_set) continue;
    const bool is_retry = option == kRetryPercent;
    problems.push_back(
        {option,
         is_retry ? "calls to DynamoDB are repeated only after lost races and throttling, within "
                    "store_timeout"
                  : "DynamoDB has no use for it",
         is_retry ? "remove this setting"
                  : "remove this setting; credentials come from the environment, the shared "
                    "credentials file or a role"});
  }
}

void CheckCalls(const BackendOptions& options, std::vector<OptionProblem>& problems) {
  using enum BackendOption;
  const CallOptions& calls = options.calls;
  const base::Duration zero(0);
  if (calls.timeout <= zero) problems.push_back({kTimeout, "timeout must be more than 0"});
  if (calls.connect_timeout <= zero)
    problems.push_back({kConnectTimeout, "connect_timeout must be more than 0"});
  if (calls.connections_per_server == 0)
    problems.push_back({kConnections, "connections must be at least 1"});
  if (calls.in_flight_max == 0)
    problems.push_back({kInFlightMax, "in_flight_max must be at least 1"});
  CheckBreaker(calls.breaker, problems);
  if (options.ca_file.empty()) return;
  const auto read = files::ReadRegularFile(options.ca_file, kCaFileBytesMax);
  if (!read.ok()) problems.push_back({kCaFile, std::string(read.status().message())});
}

// The connections of an event loop, and everything that uses them.
class Session {
 public:
  Session(net::EventLoop& loop, size_t index, const Table& table, const BackendOptions& options,
          const base::Clock& clock, ServerTime& server_time, CredentialSource& credentials,
          Usability& usability, StoreListener listener, uint64_t seed)
      : loop_(loop),
        index_(index),
        name_(NameOf(table)),
        usability_(usability),
        listener_(std::move(listener)),
        http_(loop, HttpOptionsOf(options, table),
              [this](const Status& state) { OnConnection(state); }),
        client_(http_, clock, credentials, table,
                {.time = &server_time,
                 .on_alarm = [this](const std::string& alarm) { OnClock(alarm); }}),
        state_(client_, loop,
               StateStoreOptions{.breaker = options.calls.breaker,
                                 .seed = seed,
                                 .time = [&server_time] { return server_time.Now(); },
                                 .on_breaker =
                                     [this](bool open) {
                                       if (listener_.on_breaker) listener_.on_breaker(name_, open);
                                     },
                                 .on_usable = [this](const Status& state) { OnUsable(state); }},
               counters_) {
    http_.WarmUp();
    state_.Check();
  }
  Session(const Session&) = delete;

  net::EventLoop& loop() const { return loop_; }
  void OnDamaged() const {
    if (listener_.on_alarm) listener_.on_alarm(name_, std::string(kDamagedValueAlarm));
  }
  StateStore& state() { return state_; }
  TableClient& client() { return client_; }
  const StoreListener& listener() const { return listener_; }
  StoreCounters ReadCounters() const { return counters_.Read(); }

 private:
  void OnConnection(const Status& state) {
    if (!state.ok()) counters_.disconnects.Add();
    const bool changes = !reported_ || *reported_ != state;
    reported_ = state;
    if (changes && listener_.on_connection) listener_.on_connection(name_, state);
    if (state.ok()) state_.OnConnected();
  }
  void OnClock(const std::string& alarm) {
    counters_.alarms.Add();
    if (listener_.on_alarm) listener_.on_alarm(name_, alarm);
  }
  void OnUsable(const Status& state) {
    usability_.Set(index_, state);
    // All other failures are reported elsewhere, as connection failures or by the source of
    // credentials.
    if (state.ok() || absl::IsUnavailable(state) || absl::IsDeadlineExceeded(state)) return;
    counters_.alarms.Add();
    if (listener_.on_alarm) listener_.on_alarm(name_, std::string(state.message()));
  }

  net::EventLoop& loop_;
  const size_t index_;
  const std::string name_;
  Usability& usability_;
  const StoreListener listener_;
  LoopStoreCounters counters_;
  std::optional<Status> reported_;
  client::http::Client http_;
  TableClient client_;
  StateStore state_;
};

class DynamoDbBackend final : public Backend {
 public:
  DynamoDbBackend(const Table& table, const BackendOptions& options,
                  std::span<net::EventLoop* const> loops, const BackendContext& context)
      : context_(context),
        name_(NameOf(table)),
        timeout_(options.calls.timeout),
        server_time_(context.clock) {
    const base::Clock& clock = context.clock.source();
    base::Random random(context.seed);
    credentials_ = std::make_unique<CredentialSource>(
        *loops[0], clock,
        CredentialOptions{
            .profile = table.profile, .environment = SystemEnvironment(), .seed = random.Next()},
        [this](const Status& state) { OnCredentials(state); });
    std::vector<cas::CasStore::Parts> parts;
    for (uint32_t i = 0; i < loops.size(); ++i) {
      sessions_.push_back(std::make_unique<Session>(*loops[i], i, table, options, clock,
                                                    server_time_, *credentials_, usability_,
                                                    context.listener_of(i), random.Next()));
      parts.push_back({.loop = *loops[i],
                       .service = sessions_.back()->state(),
                       .on_damaged = [&session = *sessions_.back()] { session.OnDamaged(); }});
    }
    if (early_state_) OnCredentials(*early_state_);
    if (options.instances == 0) CountInstances(context, random.Next());
    stores_ = cas::CasStore::Make(
        parts,
        {.limits = context.limits,
         .clock = context.clock,
         .seed = random.Next(),
         .instances = [this, given = options.instances] { return given > 0 ? given : instances(); },
         .options = {
             .timeout = options.calls.timeout, .pause_min = kPauseMin, .pause_max = kPauseMax}});
  }

  SharedStore& store(uint32_t loop) override { return *stores_.at(loop); }
  cas::VersionedStore& values(uint32_t loop) override { return sessions_.at(loop)->state(); }
  std::string name() const override { return name_; }
  uint32_t instances() const override {
    return context_.InstancesOf(instances_ == nullptr ? 1 : instances_->count());
  }
  Status problem() const override {
    return usability_.has_answered()
               ? usability_.problem()
               : absl::UnavailableError("the store: DynamoDB has not answered yet");
  }
  std::optional<base::Duration> clock_offset() const override { return server_time_.offset(); }

  void LeaveCount() override {
    if (instances_ != nullptr) instances_->Leave(timeout_, [] {});
  }
  void Leave(std::function<void()> done) override {
    if (instances_ == nullptr) return done();
    instances_->Leave(timeout_, std::move(done));
  }

  StoreCounters counters() const override {
    StoreCounters counters;
    for (const auto& session : sessions_) counters += session->ReadCounters();
    for (const auto& store : stores_) {
      // The calls are counted where they are made.
      const StoreCounters read = store->ReadCounters();
      counters.calls_refused += read.calls_refused;
      counters.retries += read.retries;
      counters.calls_damaged += read.calls_damaged;
      counters.buckets_replaced_corrupt += read.buckets_replaced_corrupt;
      counters.buckets_clock_reset += read.buckets_clock_reset;
      counters.buckets_carried_over += read.buckets_carried_over;
    }
    if (instances_ != nullptr) counters.script_errors += instances_->errors();
    counters.alarms += clock_alarms_.value();
    return counters;
  }

 private:
  void CountInstances(const BackendContext& context, uint64_t seed) {
    Session& first = *sessions_.front();
    instances_ = std::make_unique<Instances>(
        first.client(), first.loop(), context.clock.source(),
        InstancesOptions{.instance = context.instance,
                         .on_error = first.listener().on_instances_error,
                         .on_alarm = [this](const std::string& alarm) { OnClockAlarm(alarm); },
                         .seed = seed});
    instances_->Begin();
  }
  void OnClockAlarm(const std::string& alarm) {
    clock_alarms_.Add();
    const StoreListener& listener = sessions_.front()->listener();
    if (listener.on_alarm) listener.on_alarm(name_, alarm);
  }
  // Credentials of the environment or of a file are read before there are sessions. Credentials of
  // a role need a moment, in which nothing is known.
  void OnCredentials(const Status& state) {
    if (sessions_.empty()) {
      early_state_ = state;
      return;
    }
    if (state == credentials_state_) return;
    credentials_state_ = state;
    const StoreListener& listener = sessions_.front()->listener();
    if (!state.ok() && listener.on_alarm) listener.on_alarm(name_, std::string(state.message()));
  }

  const BackendContext context_;
  const std::string name_;
  const base::Duration timeout_;
  base::Counter clock_alarms_;
  ServerTime server_time_;
  Usability usability_;
  Status credentials_state_;
  std::optional<Status> early_state_;
  std::unique_ptr<CredentialSource> credentials_;   // on the first loop
  std::vector<std::unique_ptr<Session>> sessions_;  // one per loop, as the stores
  std::unique_ptr<Instances> instances_;            // on the first loop
  std::vector<std::unique_ptr<cas::CasStore>> stores_;
};

}  // namespace

std::vector<OptionProblem> CheckOptions(const BackendOptions& options) {
  const auto table = TableOf(options);
  if (!table.ok()) {
    return {{BackendOption::kUrl, std::string(table.status().message()),
             "for example " + std::string(kUrlExamples)}};
  }
  std::vector<OptionProblem> problems;
  CheckCalls(options, problems);
  AddUselessOptions(options, problems);
  return problems;
}

absl::StatusOr<std::unique_ptr<Backend>> OpenBackend(const BackendOptions& options,
                                                     std::span<net::EventLoop* const> loops,
                                                     const BackendContext& context) {
  HEADGATE_ASSIGN_OR_RETURN(const Table table, TableOf(options));
  return std::make_unique<DynamoDbBackend>(table, options, loops, context);
}

absl::StatusOr<std::string> CreateTable(const BackendOptions& options, base::Duration timeout) {
  HEADGATE_ASSIGN_OR_RETURN(const Table table, TableOf(options));
  const base::SystemClock clock;
  net::EventLoop loop(clock);
  CredentialSource credentials(loop, clock,
                               {.profile = table.profile, .environment = SystemEnvironment()});
  // A role's credentials take a moment to arrive. If they do not come in time, the first call
  // reports why.
  const base::BootTime patience =
      loop.Now() + std::min<base::Duration>(timeout, std::chrono::seconds(5));
  loop.RunUntil([&] { return credentials.Get().ok() || loop.Now() >= patience; },
                std::chrono::seconds(5));
  client::http::Client http(loop, HttpOptionsOf(options, table));
  TableClient client(http, clock, credentials, table);
  std::optional<absl::StatusOr<TableMade>> made;
  TableMaker maker(client, loop, timeout, [&](auto result) { made = std::move(result); });
  maker.Begin();
  loop.RunUntil([&] { return made.has_value(); }, timeout + std::chrono::seconds(1));
  if (!made) return absl::DeadlineExceededError("DynamoDB does not answer");
  if (!made->ok()) return made->status();
  std::string said = fmt::format("{} the table {} in {}", (*made)->was_there ? "found" : "made",
                                 table.name, table.region);
  if (!(*made)->without_expiry.empty()) {
    said += fmt::format("; its time to live is not on, so old buckets are not removed: {}",
                        (*made)->without_expiry);
  }
  return said;
}

absl::StatusOr<std::string> ReadBucket(const BackendOptions& options, std::string_view name,
                                       base::Duration timeout) {
  HEADGATE_ASSIGN_OR_RETURN(const Table table, TableOf(options));
  const base::SystemClock clock;
  net::EventLoop loop(clock);
  CredentialSource credentials(loop, clock,
                               {.profile = table.profile, .environment = SystemEnvironment()});
  loop.RunUntil([&] { return credentials.Get().ok(); }, timeout / 2);
  LoopStoreCounters counters;
  client::http::Client http(loop, HttpOptionsOf(options, table));
  TableClient client(http, clock, credentials, table);
  StateStore state(client, loop, {}, counters);
  return cas::ReadBucket(state, loop, name, timeout);
}

}  // namespace headgate::store::dynamodb
