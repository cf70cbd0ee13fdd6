#include "headgate/store/zookeeper/zookeeper_backend.h"
#include "headgate/store/cas/read_value.h"
#include "headgate/store/damaged_value.h"

#include <fmt/format.h>

#include <atomic>
#include <optional>
#include <string>
#include <utility>

#include "headgate/base/random.h"
#include "headgate/client/zookeeper/client.h"
#include "headgate/client/zookeeper/node_name.h"
#include "headgate/client/zookeeper/place.h"
#include "headgate/client/zookeeper/presence.h"
#include "headgate/store/cas/cas_store.h"
#include "headgate/store/cas/clock_offset.h"
#include "headgate/store/usability.h"
#include "headgate/store/zookeeper/locks.h"
#include "headgate/store/zookeeper/state_store.h"
#include "headgate/store/zookeeper/sweeper.h"

namespace headgate::store::zookeeper {
namespace {

using absl::Status;
using client::zookeeper::Below;
using client::zookeeper::Client;
using client::zookeeper::ClientOptions;
using client::zookeeper::Place;
using client::zookeeper::Presence;
using client::zookeeper::WatchEvent;

// A silent server is given up after two thirds of this time. An ensemble with the usual tick of 2 s
// grants at least this timeout.
constexpr base::Duration kSessionTimeout = std::chrono::seconds(4);
// A lost race takes two round trips of about a millisecond. The instance that won needs only one
// for its next write, so the others lose often, and must not wait for long.
constexpr base::Duration kPauseMax = std::chrono::milliseconds(4);
// All instances have reconnected this long after an outage.
constexpr base::Duration kSettle = std::chrono::seconds(5);

absl::StatusOr<Place> PlaceOf(const BackendOptions& options) {
  return client::zookeeper::ParsePlace(options.url, client::zookeeper::kDefaultPath,
                                       options.password);
}

void AddUselessOptions(const BackendOptions& options, std::vector<OptionProblem>& problems) {
  using enum BackendOption;
  const auto refuse = [&](bool is_set, BackendOption option, std::string what, std::string hint) {
    if (is_set) problems.push_back({option, std::move(what), std::move(hint)});
  };
  const std::pair<BackendOption, const std::string&> tls[] = {
      {kCaFile, options.ca_file},
      {kCertificateFile, options.certificate_file},
      {kKeyFile, options.key_file},
      {kServerName, options.server_name}};
  for (const auto& [option, value] : tls) {
    refuse(!value.empty(), option, "ZooKeeper's client has no TLS",
           "put a tunnel between Headgate and ZooKeeper, and remove this setting");
  }
  refuse(!options.sentinel_user.empty(), kSentinelUser, "ZooKeeper has no sentinels",
         "remove this setting");
  refuse(!options.sentinel_password.empty(), kSentinelPassword, "ZooKeeper has no sentinels",
         "remove this setting");
  const CallOptions defaults;
  refuse(options.calls.connections_per_server != defaults.connections_per_server, kConnections,
         "each event loop has one session with ZooKeeper", "remove this setting");
  refuse(options.calls.connect_timeout != defaults.connect_timeout, kConnectTimeout,
         "ZooKeeper's client chooses how long it waits for a server", "remove this setting");
  refuse(options.calls.retry_percent != defaults.retry_percent, kRetryPercent,
         "calls to ZooKeeper are repeated only after lost races, within store_timeout",
         "remove this setting");
}

void CheckCalls(const CallOptions& calls, std::vector<OptionProblem>& problems) {
  using enum BackendOption;
  if (calls.timeout <= base::Duration(0))
    problems.push_back({kTimeout, "timeout must be more than 0"});
  if (calls.in_flight_max == 0)
    problems.push_back({kInFlightMax, "in_flight_max must be at least 1"});
  CheckBreaker(calls.breaker, problems);
}

// The session of an event loop, and everything that uses it.
class Session {
 public:
  Session(net::EventLoop& loop, const Place& place, const BackendOptions& options,
          const base::DisciplinedClock& clock, cas::ClockOffset& clock_offset,
          StoreListener listener, uint64_t seed)
      : loop_(loop),
        name_(NameOf(place)),
        listener_(std::move(listener)),
        clock_(clock),
        clock_offset_(clock_offset) {
    client_ = std::make_unique<Client>(
        ClientOptions{
            .servers = place.servers, .session_timeout = kSessionTimeout, .digest = place.digest},
        loop,
        Client::Listener{.on_connected = [this](bool new_session) { OnConnected(new_session); },
                         .on_disconnected = [this] { OnDisconnected(); },
                         .on_watch =
                             [this](const WatchEvent& event) {
                               locks_->OnWatch(event);
                               if (presence_ != nullptr) presence_->OnWatch(event);
                             },
                         .on_trouble =
                             [this](const Status& why) {
                               Report(why);
                               if (absl::IsUnauthenticated(why)) OnUsability(why);
                             }});
    locks_ =
        std::make_unique<Locks>(*client_, loop, LocksOptions{.root = place.path, .seed = seed});
    state_ = std::make_unique<StateStore>(
        *client_, loop,
        StateStoreOptions{.root = place.path,
                          .in_flight_max = options.calls.in_flight_max,
                          .breaker = options.calls.breaker,
                          .seed = seed,
                          .locks = locks_.get(),
                          .time = [this] { return LeadersTime(); },
                          .on_breaker =
                              [this](bool open) {
                                if (listener_.on_breaker) listener_.on_breaker(name_, open);
                              },
                          .on_alarm =
                              [this](const std::string& error) {
                                if (listener_.on_alarm) listener_.on_alarm(name_, error);
                              },
                          .on_usability = [this](const Status& state) { OnUsability(state); }},
        counters_);
  }
  Session(const Session&) = delete;

  // Adds the parts that a process has once.
  void Add(const Place& place, const BackendContext& context) {
    info_ = {.version = context.version, .started = context.clock.source().WallNow()};
    presence_ = std::make_unique<Presence>(
        *client_, loop_,
        client::zookeeper::PresenceOptions{
            .directory = Below(place.path, "instances"),
            .name = context.instance,
            .data = client::zookeeper::PresenceData(info_),
            .settle = kSettle,
            .on_error = listener_.on_instances_error,
            .clock = [&clock = context.clock] { return clock.Now(); },
            .on_offset = [this](
                             base::Duration offset,
                             base::Duration uncertainty) { OnClockOffset(offset, uncertainty); }});
    sweeper_ =
        std::make_unique<Sweeper>(*client_, loop_, context.clock,
                                  SweeperOptions{.root = place.path, .instance = context.instance});
  }

  // On the loop's thread.
  void ShowRules(uint64_t generation, const std::string& fingerprint) {
    info_.rules_generation = generation;
    info_.rules_fingerprint = fingerprint;
    presence_->Describe(client::zookeeper::PresenceData(info_));
  }
  void LeaveCount() {
    presence_->Leave([] {});
  }
  void Leave(std::function<void()> done) {
    if (sweeper_ != nullptr) sweeper_->Stop();
    if (presence_ != nullptr) presence_->Leave([] {});
    // The nodes of a session go with it.
    client_->Leave(std::move(done));
  }

  net::EventLoop& loop() const { return loop_; }
  void OnDamaged() const {
    if (listener_.on_alarm) listener_.on_alarm(name_, std::string(kDamagedValueAlarm));
  }
  StateStore& state() { return *state_; }
  const Presence& presence() const { return *presence_; }
  StoreCounters ReadCounters() const {
    StoreCounters read = counters_.Read();
    if (sweeper_ != nullptr) read.buckets_removed = sweeper_->counters().removed.value();
    return read;
  }

 private:
  void OnConnected(bool new_session) {
    Report(absl::OkStatus());
    state_->OnConnected();
    locks_->OnConnected(new_session);
    if (presence_ != nullptr) presence_->OnConnected(new_session);
    if (sweeper_ != nullptr) sweeper_->OnConnected(new_session);
  }
  void OnDisconnected() {
    counters_.disconnects.Add();
    Report(absl::UnavailableError("the connection to the ensemble was lost"));
  }
  std::optional<base::Instant> LeadersTime() const {
    const base::Duration ahead = clock_offset_.correction();
    return ahead == base::Duration(0) ? std::nullopt : std::optional(clock_.Now() - ahead);
  }
  void OnClockOffset(base::Duration offset, base::Duration uncertainty) {
    const auto alarm = clock_offset_.OnMeasured(offset, uncertainty);
    if (!alarm) return;
    counters_.alarms.Add();
    if (listener_.on_alarm) listener_.on_alarm(name_, *alarm);
  }
  void OnUsability(const Status& state) const {
    if (listener_.on_usability) listener_.on_usability(state);
  }
  // Each change once.
  void Report(const Status& state) {
    if (std::exchange(reported_, state) != state && listener_.on_connection)
      listener_.on_connection(name_, state);
  }

  net::EventLoop& loop_;
  const std::string name_;
  const StoreListener listener_;
  LoopStoreCounters counters_;
  const base::DisciplinedClock& clock_;
  cas::ClockOffset& clock_offset_;  // shared by the process; the first session measures it
  Status reported_ = absl::UnknownError("");  // nothing yet
  std::unique_ptr<Client> client_;            // destroyed last
  std::unique_ptr<Locks> locks_;
  std::unique_ptr<StateStore> state_;
  std::unique_ptr<Presence> presence_;  // on the first loop, like the sweeper
  client::zookeeper::PresenceInfo info_;
  std::unique_ptr<Sweeper> sweeper_;
};

class ZooKeeperBackend final : public Backend {
 public:
  ZooKeeperBackend(const Place& place, const BackendOptions& options,
                   std::span<net::EventLoop* const> loops, const BackendContext& context)
      : name_(NameOf(place)), context_(context) {
    base::Random random(context.seed);
    std::vector<cas::CasStore::Parts> parts;
    for (uint32_t i = 0; i < loops.size(); ++i) {
      StoreListener listener = context.listener_of(i);
      listener.on_usability = [this, i](const Status& state) { usability_.Set(i, state); };
      sessions_.push_back(std::make_unique<Session>(*loops[i], place, options, context.clock,
                                                    clock_offset_, std::move(listener),
                                                    random.Next()));
      parts.push_back({.loop = *loops[i],
                       .service = sessions_.back()->state(),
                       .on_damaged = [&session = *sessions_.back()] { session.OnDamaged(); }});
    }
    sessions_.front()->Add(place, context);
    stores_ = cas::CasStore::Make(
        parts,
        {.limits = context.limits,
         .clock = context.clock,
         .seed = random.Next(),
         .instances = [this, given = options.instances] { return given > 0 ? given : instances(); },
         .options = {.timeout = options.calls.timeout,
                     .pause_max = kPauseMax,
                     .lock_timeout = options.lock_timeout}});
  }

  SharedStore& store(uint32_t loop) override { return *stores_.at(loop); }
  cas::VersionedStore& values(uint32_t loop) override { return sessions_.at(loop)->state(); }
  std::string name() const override { return name_; }
  absl::Status problem() const override { return usability_.problem(); }
  uint32_t instances() const override {
    return context_.InstancesOf(sessions_.front()->presence().instances());
  }
  std::optional<base::Duration> clock_offset() const override { return clock_offset_.last(); }
  void ShowRules(uint64_t generation, const std::string& fingerprint) override {
    sessions_.front()->loop().Post([&session = *sessions_.front(), generation, fingerprint] {
      session.ShowRules(generation, fingerprint);
    });
  }

  void LeaveCount() override { sessions_.front()->LeaveCount(); }
  void Leave(std::function<void()> done) override {
    auto left = std::make_shared<std::atomic<size_t>>(sessions_.size());
    for (const auto& session : sessions_) {
      session->loop().Post([this, &session = *session, left, done] {
        session.Leave([this, left, done] {
          if (--*left == 0) sessions_.front()->loop().Post(done);
        });
      });
    }
  }

  StoreCounters counters() const override {
    StoreCounters counters;
    for (const auto& session : sessions_) counters += session->ReadCounters();
    for (const auto& store : stores_) {
      // The calls are counted where they are made.
      const StoreCounters read = store->ReadCounters();
      counters.calls_refused += read.calls_refused;
      counters.retries += read.retries;
      counters.locks_taken += read.locks_taken;
      counters.locks_lost += read.locks_lost;
      counters.locks_timed_out += read.locks_timed_out;
      counters.calls_damaged += read.calls_damaged;
      counters.buckets_replaced_corrupt += read.buckets_replaced_corrupt;
      counters.buckets_clock_reset += read.buckets_clock_reset;
      counters.buckets_carried_over += read.buckets_carried_over;
    }
    counters.script_errors += sessions_.front()->presence().errors();
    return counters;
  }

 private:
  const std::string name_;
  const BackendContext context_;
  cas::ClockOffset clock_offset_;
  Usability usability_;
  std::vector<std::unique_ptr<Session>> sessions_;  // one per loop, as the stores
  std::vector<std::unique_ptr<cas::CasStore>> stores_;
};

}  // namespace

std::vector<OptionProblem> CheckOptions(const BackendOptions& options) {
  const auto place = PlaceOf(options);
  if (!place.ok()) {
    return {{BackendOption::kUrl, std::string(place.status().message()),
             "for example " + std::string(kUrlExamples)}};
  }
  std::vector<OptionProblem> problems;
  CheckCalls(options.calls, problems);
  AddUselessOptions(options, problems);
  return problems;
}

absl::StatusOr<std::unique_ptr<Backend>> OpenBackend(const BackendOptions& options,
                                                     std::span<net::EventLoop* const> loops,
                                                     const BackendContext& context) {
  HEADGATE_ASSIGN_OR_RETURN(const Place place, PlaceOf(options));
  return std::make_unique<ZooKeeperBackend>(place, options, loops, context);
}

absl::StatusOr<std::string> ReadBucket(const BackendOptions& options, std::string_view name,
                                       base::Duration timeout) {
  HEADGATE_ASSIGN_OR_RETURN(const Place place, PlaceOf(options));
  const base::SystemClock clock;
  net::EventLoop loop(clock);
  LoopStoreCounters counters;
  Client client(
      ClientOptions{
          .servers = place.servers, .session_timeout = kSessionTimeout, .digest = place.digest},
      loop,
      Client::Listener{.on_connected = [](bool) {},
                       .on_disconnected = [] {},
                       .on_watch = [](const WatchEvent&) {},
                       .on_trouble = [](const Status&) {}});
  StateStore state(client, loop, StateStoreOptions{.root = place.path}, counters);
  return cas::ReadBucket(state, loop, name, timeout);
}

}  // namespace headgate::store::zookeeper
