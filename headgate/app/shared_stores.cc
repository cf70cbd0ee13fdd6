#include "headgate/app/shared_stores.h"

#include <fmt/format.h>

#include <atomic>
#include <cstring>
#include <latch>

#include "headgate/app/random_secret.h"
#include "headgate/store/redis/error_text.h"
#include "headgate/store/redis/store_url.h"

namespace headgate::app {
namespace {

using observe::Metric;
using store::redis::ClientCounters;

constexpr uint32_t kLeaseKeys = 65'536;
constexpr base::Duration kLeaseTtl = std::chrono::seconds(2);
// How often leases are looked after, where nothing is due before: they may have been granted
// meanwhile.
constexpr base::Duration kLookAfterLeases = std::chrono::milliseconds(100);
// For jitter alone.
uint64_t RandomSeed() {
  const base::HashSecret secret = RandomSecret();
  uint64_t seed;
  std::memcpy(&seed, secret.bytes.data(), sizeof seed);
  return seed;
}

// Of this process, which no other has.
std::string RandomName() {
  const base::HashSecret secret = RandomSecret();
  std::string name;
  for (size_t i = 0; i < 16; ++i) name += fmt::format("{:02x}", secret.bytes[i]);
  return name;
}

// The options that the fleets of all loops have in common.
limiter::SharedDeciderOptions SharedOptionsOf(const Settings& settings, limiter::LeaseBooks& leases,
                                              limiter::SharedRests& rests) {
  using rule::OnStoreFailure;
  const OnStoreFailure on_failure = settings.on_store_failure == "allow"  ? OnStoreFailure::kAllow
                                    : settings.on_store_failure == "deny" ? OnStoreFailure::kDeny
                                                                          : OnStoreFailure::kLocal;
  const bool leased = settings.sharing == "leased";
  return {.on_store_failure = on_failure,
          .sharing = leased ? rule::Sharing::kLeased : rule::Sharing::kExact,
          .timeout = settings.store_timeout,
          .leases = &leases,
          .rests = &rests};
}

std::string_view ReasonOf(store::redis::HistoryChange change) {
  using enum store::redis::HistoryChange;
  switch (change) {
    case kRestarted:
      return "the server restarted";
    case kPromoted:
      return "a replica was promoted: it may lack the last writes";
    case kReplaced:
      return "another server answers at this address";
    case kNone:
      break;
  }
  return "";
}

// What happens to one loop's connections, in the log.
store::redis::ClientListener ListenerOf(observe::Log& log, uint64_t loop,
                                        std::function<void()> drop_leases) {
  return {
      .on_connection =
          [&log, loop](const std::string& server, const absl::Status& state) {
            if (state.ok())
              return log.Info("store.connected", {{"server", server}, {"loop", loop}});
            log.Warning(
                "store.lost",
                {{"server", server},
                 {"loop", loop},
                 {"reason", std::string(state.message())},
                 {"hint", std::string_view("is the server up, and is --store its address?")}});
          },
      .on_eviction_policy =
          [&log](const std::string& server, const std::string& policy) {
            const bool silent = policy.empty();
            log.Warning(
                "store.may_evict",
                {{"server", server},
                 {"policy", silent ? std::string_view("unknown") : std::string_view(policy)},
                 {"effect",
                  std::string_view("live limits can be forgotten when its memory is full")},
                 {"hint",
                  silent ? std::string_view("let our user run INFO: it says what the server evicts")
                         : std::string_view("CONFIG SET maxmemory-policy noeviction, or "
                                            "strict_store: yes")}});
          },
      .on_topology =
          [&log, loop](const std::string& server, const absl::Status& state) {
            if (state.ok())
              return log.Info("store.topology_known", {{"server", server}, {"loop", loop}});
            log.Error("store.topology_unknown",
                      {{"server", server},
                       {"loop", loop},
                       {"reason", std::string(state.message())},
                       {"hint", std::string_view(
                                    "is the store what --store says: a cluster, sentinels, their "
                                    "master's name?")}});
          },
      .on_breaker =
          [&log, loop](const std::string& server, bool open) {
            if (!open) return log.Info("store.recovered", {{"server", server}, {"loop", loop}});
            log.Warning(
                "store.unreachable",
                {{"server", server},
                 {"loop", loop},
                 {"effect", std::string_view("its limits are decided as on_store_failure says")}});
          },
      .on_learning =
          [&log, loop](const std::string& server, store::redis::HistoryChange change,
                       base::Duration term) {
            log.Warning(
                "shard.learning_began",
                {{"server", server},
                 {"loop", loop},
                 {"reason", ReasonOf(change)},
                 {"effect",
                  std::string_view("leased limits are decided as on_store_failure says, leases "
                                   "that are held are spent")},
                 {"for", term},
                 {"hint", std::string_view(
                              "expected after a failover or a restart of the store; docs/guides/"
                              "fleet.md says what each may let through")}});
          },
      .on_learned =
          [&log, loop](const std::string& server) {
            log.Info("shard.learning_ended", {{"server", server}, {"loop", loop}});
          },
      .on_pause_missed =
          [&log, loop, drop_leases = std::move(drop_leases)](const std::string& server,
                                                             base::Duration missed) {
            drop_leases();
            log.Warning(
                "clock.pause_missed",
                {{"server", server},
                 {"loop", loop},
                 {"for", missed},
                 {"reason",
                  std::string_view("the store's clock moved further than this machine's")},
                 {"effect", std::string_view("leases that were held are dropped")},
                 {"hint", std::string_view(
                              "a virtual machine that was stopped or restored without its clock "
                              "being told, or a step of the store's clock")}});
          },
      .on_alarm =
          [&log](const std::string& server, const std::string& error) {
            log.Error("store.alarm",
                      {{"server", server}, {"error", store::redis::WithoutArguments(error)}});
          }};
}

// Logs when the store begins or stops refusing the heartbeat.
store::redis::HeartbeatOptions HeartbeatOptionsOf(observe::Log& log) {
  return {.on_error = [&log](const std::string& error) {
    if (error.empty()) return log.Info("instances.known", {});
    log.Warning(
        "instances.unknown",
        {{"reason", store::redis::WithoutArguments(error)},
         {"effect", std::string_view(
                        "this instance goes by the last number that it knows, at first 1: without "
                        "the store, the shares of all instances may add up to more than the "
                        "limit")},
         {"hint",
          std::string_view("give our user the rights that docs/guides/fleet.md lists, or set "
                           "store_instances")}});
  }};
}

std::string_view WhatHoldsIn(limiter::Mode mode) {
  if (mode == limiter::Mode::kOpen) return "all is let through, uncounted";
  if (mode == limiter::Mode::kClosed) return "all is refused";
  return "this instance holds its share of each limit";
}

}  // namespace

struct SharedStores::Loop {
  std::unique_ptr<store::redis::Client> client;
  std::unique_ptr<store::redis::RedisStore> store;
  std::unique_ptr<limiter::SharedDecider> fleet;
  std::unique_ptr<net::Timer> timer;
  base::Duration look_every = kLookAfterLeases;

  void OnTime() {
    if (client->loop().Now() >= fleet->next_wake()) fleet->OnTime();
    SetTimer();
  }
  void SetTimer() { timer->Set(std::min(fleet->next_wake(), client->loop().Now() + look_every)); }
  void ReturnLeases(limiter::SharedDecider::ReturnsDone done) {
    fleet->ReturnLeases(std::move(done));
    look_every = limiter::ReturnPace::kPauseAfterFailure;
    SetTimer();
  }
};

SharedStores::SharedStores(observe::Log& log) : log_(log) {}
SharedStores::~SharedStores() = default;

absl::StatusOr<std::unique_ptr<SharedStores>> SharedStores::Make(
    const StoreSettings& store, const Settings& settings, Engine& engine, net::Server& server,
    uint32_t loops, observe::Log& log) {
  std::unique_ptr<SharedStores> shared(new SharedStores(log));
  shared->naming_ = store.naming;
  shared->leases_ = std::make_unique<limiter::LeaseBooks>(
      limiter::LeaseBookOptions{.node = RandomSeed(),
                                .keys_max = kLeaseKeys,
                                .ttl = kLeaseTtl,
                                .timeout = settings.store_timeout});
  limiter::SharedDeciderOptions fleet_options =
      SharedOptionsOf(settings, *shared->leases_, shared->rests_);
  fleet_options.loops = loops;
  store::redis::RedisOptions redis = store.redis;
  redis.lease_ttl = kLeaseTtl;
  for (uint32_t i = 0; i < loops; ++i) {
    auto loop = std::make_unique<Loop>();
    HEADGATE_ASSIGN_OR_RETURN(loop->client,
                              store::redis::Client::Make(server.loop(i), redis, RandomSeed(),
                                                         ListenerOf(log, i, [raw = loop.get()] {
                                                           if (raw->fleet != nullptr)
                                                             raw->fleet->DropLeases();
                                                         })));
    if (i == 0) {
      shared->heartbeat_ = std::make_unique<store::redis::Heartbeat>(*loop->client, RandomName(),
                                                                     HeartbeatOptionsOf(log));
    }
    loop->store = std::make_unique<store::redis::RedisStore>(
        *loop->client, engine.store().limits(),
        store::redis::RedisStore::Options{
            .heartbeat = shared->heartbeat_.get(),
            .instances = static_cast<uint32_t>(settings.store_instances),
            .on_script_error = [&log](const std::string& error) {
              log.Error("store.script_failed", {{"error", store::redis::WithoutArguments(error)}});
            }});
    fleet_options.loop = i;
    loop->fleet =
        std::make_unique<limiter::SharedDecider>(*loop->store, engine.store(), fleet_options);
    loop->timer = std::make_unique<net::Timer>(server.loop(i), [&loop = *loop] { loop.OnTime(); });
    loop->SetTimer();
    shared->loops_.push_back(std::move(loop));
  }
  log.Info("store.shared", {{"store", store::redis::StoreName(store.redis)}});
  return shared;
}

limiter::SharedDecider& SharedStores::fleet(uint32_t loop) { return *loops_.at(loop)->fleet; }

void SharedStores::Leave(net::Server& server) {
  const limiter::LeaseTotals before = leases_->totals();
  std::latch returned(static_cast<ptrdiff_t>(loops_.size()));
  std::atomic<uint64_t> keys{0};
  for (uint32_t i = 0; i < loops_.size(); ++i) {
    server.loop(i).Post([&, i] {
      loops_[i]->ReturnLeases([&](uint64_t confirmed) {
        keys += confirmed;
        returned.count_down();
      });
    });
  }
  returned.wait();
  // Last: a store that refuses a command is left alone for a second.
  std::latch left(1);
  server.loop(0).Post([&] { heartbeat_->Leave([&] { left.count_down(); }); });
  left.wait();
  server.Stop();
  LogReturns(before, keys);
}

void SharedStores::LogReturns(const limiter::LeaseTotals& before, uint64_t keys) {
  const limiter::LeaseTotals after = leases_->totals();
  const uint64_t left = after.held + after.expired_unspent - before.expired_unspent;
  const uint64_t returned = after.returned - before.returned;
  if (left == 0)
    return log_.Info("leases.returned",
                     {{"requests", returned}, {"keys", keys}, {"requests_left", left}});
  log_.Warning("leases.returned",
               {{"requests", returned},
                {"keys", keys},
                {"requests_left", left},
                {"reason", std::string_view("the store did not confirm the others in time")},
                {"effect", std::string_view("what is left counts as spent, and its leases expire "
                                            "at the store within 2s")}});
}

void SharedStores::Tick(base::Instant now) {
  using limiter::Mode;
  const uint64_t together = DecisionsOf(Mode::kExact) + DecisionsOf(Mode::kLeased);
  for (const Mode mode : {Mode::kLocal, Mode::kOpen, Mode::kClosed}) {
    DegradedWatch& watch = alone_[static_cast<size_t>(mode)];
    const DegradedWatch::Change change = watch.Look(DecisionsOf(mode), together, now);
    if (change == DegradedWatch::Change::kBegan) {
      log_.Warning("decisions.without_store",
                   {{"mode", Name(mode)}, {"effect", WhatHoldsIn(mode)}});
    } else if (change == DegradedWatch::Change::kEnded) {
      log_.Info(
          "decisions.with_store",
          {{"mode_left", Name(mode)}, {"decided_in_it", watch.decided()}, {"for", watch.lasted()}});
    }
  }
}

uint64_t SharedStores::DecisionsOf(limiter::Mode mode) const {
  uint64_t decisions = 0;
  for (const auto& loop : loops_) decisions += loop->fleet->decisions(mode);
  return decisions;
}

void SharedStores::Collect(observe::Sink& sink) const {
  ClientCounters calls;
  store::redis::BucketEvents events;
  for (const auto& loop : loops_) {
    calls += loop->client->ReadCounters();
    events += loop->store->ReadEvents();
  }
  sink.Set(Metric::kInstances, {}, heartbeat_->instances());
  for (int i = 0; i < limiter::kModeCount; ++i) {
    const auto mode = static_cast<limiter::Mode>(i);
    if (mode == limiter::Mode::kMemory) continue;
    sink.Set(Metric::kSharedDecisions, {Name(mode)}, DecisionsOf(mode));
  }
  const limiter::LeaseTotals leases = leases_->totals();
  uint64_t debts = 0, owed = 0, settled = 0, forgiven = 0, forgotten = 0;
  for (const auto& loop : loops_) {
    const limiter::Debts::Counters& counters = loop->fleet->debts();
    debts += counters.keys.value();
    owed += counters.owed.value();
    settled += counters.settled.value();
    forgiven += counters.forgiven.value();
    forgotten += counters.forgotten.value();
  }
  sink.Set(Metric::kOutageDebts, {}, debts);
  sink.Set(Metric::kOutageRequests, {"owed"}, owed);
  sink.Set(Metric::kOutageRequests, {"settled"}, settled);
  sink.Set(Metric::kOutageRequests, {"forgiven"}, forgiven);
  sink.Set(Metric::kOutageRequests, {"forgotten"}, forgotten);
  sink.Set(Metric::kLeaseAsks, {}, leases.asked);
  sink.Set(Metric::kLeasedRequests, {"granted"}, leases.granted);
  sink.Set(Metric::kLeasedRequests, {"spent"}, leases.spent);
  sink.Set(Metric::kLeasedRequests, {"returned"}, leases.returned);
  sink.Set(Metric::kLeasedRequests, {"expired"}, leases.expired_unspent);
  sink.Set(Metric::kLeaseRequestsHeld, {}, leases.held);
  sink.Set(Metric::kLeaseLateGrants, {}, leases.late_grants);
  sink.Set(Metric::kLeaseKeysEvicted, {}, leases.evicted);
  sink.Set(Metric::kLeaseKeysNotFollowed, {}, leases.not_followed);
  sink.Set(Metric::kStoreCalls, {"answered"}, calls.calls_answered);
  sink.Set(Metric::kStoreCalls, {"unavailable"}, calls.calls_unavailable);
  sink.Set(Metric::kStoreCalls, {"timed_out"}, calls.calls_timed_out);
  sink.Set(Metric::kStoreCalls, {"aborted"}, calls.calls_aborted);
  sink.Set(Metric::kStoreCalls, {"denied"}, calls.calls_denied);
  sink.Set(Metric::kStoreCalls, {"refused"}, calls.calls_refused);
  sink.Set(Metric::kStoreCalls, {"failed"}, calls.calls_failed);
  sink.Set(Metric::kStoreCallSeconds, {},
           {.bounds = store::redis::kCallTimeBounds,
            .counts = calls.call_ns.counts,
            .sum = calls.call_ns.sum});
  sink.Set(Metric::kStoreRetries, {}, calls.retries);
  sink.Set(Metric::kStoreRedirects, {}, calls.redirects);
  sink.Set(Metric::kStoreBatchCalls, {},
           {.bounds = store::redis::kBatchCallsBounds,
            .counts = calls.batched_calls.counts,
            .sum = calls.batched_calls.sum});
  sink.Set(Metric::kStoreBreakersOpen, {}, calls.breakers_open);
  sink.Set(Metric::kStoreBreakerOpened, {}, calls.breaker_opened);
  sink.Set(Metric::kStoreDisconnects, {}, calls.disconnects);
  sink.Set(Metric::kStoreShardsLearning, {}, calls.shards_learning);
  sink.Set(Metric::kStorePausesMissed, {}, calls.pauses_missed);
  for (const auto change :
       {store::redis::HistoryChange::kRestarted, store::redis::HistoryChange::kPromoted,
        store::redis::HistoryChange::kReplaced}) {
    sink.Set(Metric::kStoreHistoryChanges, {Name(change)},
             calls.history_changes[static_cast<size_t>(change)]);
  }
  sink.Set(Metric::kStoreAlarms, {}, calls.alarms);
  sink.Set(Metric::kStoreBucketEvents, {"replaced_corrupt"}, events.replaced_corrupt);
  sink.Set(Metric::kStoreBucketEvents, {"clock_reset"}, events.clock_resets);
  sink.Set(Metric::kStoreBucketEvents, {"script_failed"},
           events.script_errors + heartbeat_->errors());
  sink.Set(Metric::kStoreBucketEvents, {"carried_over"}, events.carried_over);
}

}  // namespace headgate::app
