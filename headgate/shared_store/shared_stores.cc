#include "headgate/shared_store/shared_stores.h"

#include <atomic>
#include <cstring>
#include <latch>

#include "headgate/base/random_secret.h"
#include "headgate/shared_store/store_log.h"
#include "headgate/shared_store/store_wait.h"
#include "headgate/store/open/open_backend.h"

namespace headgate::shared_store {
namespace {

using observe::Metric;

constexpr uint32_t kLeaseKeys = 65'536;
// How often leases are checked if nothing is due earlier: some may have been granted meanwhile.
constexpr base::Duration kLookAfterLeases = std::chrono::milliseconds(100);

// For jitter alone.
uint64_t RandomSeed() {
  const base::HashSecret secret = base::RandomHashSecret();
  uint64_t seed;
  std::memcpy(&seed, secret.bytes.data(), sizeof seed);
  return seed;
}

std::string_view EffectOf(limiter::Mode mode) {
  if (mode == limiter::Mode::kOpen) return "requests are allowed without being counted";
  if (mode == limiter::Mode::kClosed) return "requests are refused";
  return "this instance enforces its share of each limit";
}

}  // namespace

struct SharedStores::Loop {
  explicit Loop(net::EventLoop& event_loop) : events(event_loop) {}

  net::EventLoop& events;
  std::unique_ptr<limiter::shared::SharedDecider> decider;
  std::unique_ptr<net::Timer> timer;
  base::Duration look_every = kLookAfterLeases;

  void Start(std::unique_ptr<limiter::shared::SharedDecider> its_decider) {
    decider = std::move(its_decider);
    timer = std::make_unique<net::Timer>(events, [this] { OnTime(); });
    SetTimer();
  }
  void OnTime() {
    if (events.Now() >= decider->next_wake()) decider->OnTime();
    SetTimer();
  }
  void SetTimer() { timer->Set(std::min(decider->next_wake(), events.Now() + look_every)); }
  void ReturnLeases(limiter::shared::SharedDecider::ReturnsDone done) {
    decider->ReturnLeases(std::move(done));
    look_every = limiter::shared::ReturnPace::kPauseAfterFailure;
    SetTimer();
  }
  void DropLeases() {
    if (decider != nullptr) decider->DropLeases();
  }
};

SharedStores::SharedStores(observe::Log& log) : log_(log) {}
SharedStores::~SharedStores() = default;

absl::StatusOr<std::unique_ptr<SharedStores>> SharedStores::Make(const SharedStoresOptions& options,
                                                                 const OwnBuckets& own,
                                                                 net::Server& server,
                                                                 uint32_t loops,
                                                                 observe::Log& log) {
  std::unique_ptr<SharedStores> shared(new SharedStores(log));
  shared->naming_ = options.naming;
  std::vector<net::EventLoop*> event_loops;
  for (uint32_t i = 0; i < loops; ++i) {
    event_loops.push_back(&server.loop(i));
    shared->loops_.push_back(std::make_unique<Loop>(server.loop(i)));
  }
  const auto listener_of = [&log, shared = shared.get()](uint32_t loop) {
    return LogStore(log, loop, [&loop = *shared->loops_[loop]] { loop.DropLeases(); });
  };
  HEADGATE_ASSIGN_OR_RETURN(
      shared->backend_,
      store::open::OpenBackend(options.backend, event_loops,
                               {.limits = own.store.limits(),
                                .clock = own.clock,
                                .instance = options.instance.name,
                                .version = options.version,
                                .seed = RandomSeed(),
                                .instances_elsewhere = options.instance.counted_elsewhere,
                                .listener_of = listener_of}));
  shared->leases_ = std::make_unique<limiter::lease::LeaseBooks>(limiter::lease::LeaseBookOptions{
      .node = RandomSeed(),
      .keys_max = kLeaseKeys,
      .ttl = store::kLeaseTtl,
      .instances = [backend = shared->backend_.get()] { return backend->store(0).instances(); }});
  limiter::shared::SharedDeciderOptions decider{.on_store_failure = options.on_store_failure,
                                                .sharing = options.sharing,
                                                .timeout = options.backend.calls.timeout,
                                                .leases = shared->leases_.get(),
                                                .rests = &shared->rests_,
                                                .permits = &own.limiter.permits(),
                                                .loops = loops};
  for (uint32_t i = 0; i < loops; ++i) {
    decider.loop = i;
    shared->loops_[i]->Start(std::make_unique<limiter::shared::SharedDecider>(
        shared->backend_->store(i), own.store, decider));
  }
  log.Info("store.configured", {{"store", shared->backend_->name()}});
  return shared;
}

limiter::shared::SharedDecider& SharedStores::decider(uint32_t loop) {
  return *loops_.at(loop)->decider;
}

absl::Status SharedStores::AwaitStore(base::Duration timeout) {
  std::vector<LoopOfStore> loops;
  for (uint32_t i = 0; i < loops_.size(); ++i)
    loops.push_back({.loop = loops_[i]->events, .values = backend_->values(i)});
  return shared_store::AwaitStore(loops, timeout);
}

void SharedStores::LeaveCount() {
  loops_.front()->events.Post([this] { backend_->LeaveCount(); });
}

void SharedStores::Leave(net::Server& server) {
  const limiter::lease::LeaseTotals before = leases_->totals();
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
  // This comes last: after a refused command no further call is sent to the store for a second.
  std::latch left(1);
  server.loop(0).Post([&] { backend_->Leave([&] { left.count_down(); }); });
  left.wait();
  server.Stop();
  LogReturns(before, keys);
}

void SharedStores::LogReturns(const limiter::lease::LeaseTotals& before, uint64_t keys) {
  const limiter::lease::LeaseTotals after = leases_->totals();
  const uint64_t left = after.held + after.expired_unspent - before.expired_unspent;
  const uint64_t returned = after.returned - before.returned;
  if (left == 0)
    return log_.Info("leases.returned",
                     {{"requests", returned}, {"keys", keys}, {"requests_left", left}});
  log_.Warning(
      "leases.returned",
      {{"requests", returned},
       {"keys", keys},
       {"requests_left", left},
       {"reason", std::string_view("the store did not confirm the return of the rest in time")},
       {"effect", std::string_view("the rest counts as spent; its leases expire at the "
                                   "store within 2s")}});
}

void SharedStores::Tick(base::Instant now) {
  using limiter::Mode;
  const uint64_t together = DecisionsOf(Mode::kExact) + DecisionsOf(Mode::kLeased);
  for (const Mode mode : {Mode::kLocal, Mode::kOpen, Mode::kClosed}) {
    observe::DegradedWatch& watch = alone_[static_cast<size_t>(mode)];
    const observe::DegradedWatch::Change change = watch.Look(DecisionsOf(mode), together, now);
    if (change == observe::DegradedWatch::Change::kBegan) {
      log_.Warning("degraded_mode.entered", {{"mode", Name(mode)}, {"effect", EffectOf(mode)}});
    } else if (change == observe::DegradedWatch::Change::kEnded) {
      log_.Info("degraded_mode.left",
                {{"mode", Name(mode)}, {"decisions", watch.decided()}, {"for", watch.lasted()}});
    }
  }
}

uint64_t SharedStores::DecisionsOf(limiter::Mode mode) const {
  uint64_t decisions = 0;
  for (const auto& loop : loops_) decisions += loop->decider->decisions(mode);
  return decisions;
}

void SharedStores::Collect(observe::Sink& sink) const {
  sink.Set(Metric::kInstances, {}, backend_->instances());
  if (const auto offset = backend_->clock_offset())
    sink.Set(Metric::kStoreClockOffset, {}, *offset);
  for (int i = 0; i < limiter::kModeCount; ++i) {
    const auto mode = static_cast<limiter::Mode>(i);
    if (mode == limiter::Mode::kMemory) continue;
    sink.Set(Metric::kSharedDecisions, {Name(mode)}, DecisionsOf(mode));
  }
  const limiter::lease::LeaseTotals leases = leases_->totals();
  uint64_t debts = 0, owed = 0, settled = 0, forgotten = 0;
  for (const auto& loop : loops_) {
    const limiter::shared::Debts::Counters& counters = loop->decider->debts();
    debts += counters.keys.value();
    owed += counters.owed.value();
    settled += counters.settled.value();
    forgotten += counters.forgotten.value();
  }
  sink.Set(Metric::kOutageDebts, {}, debts);
  sink.Set(Metric::kOutageRequests, {"owed"}, owed);
  sink.Set(Metric::kOutageRequests, {"settled"}, settled);
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
  CollectStore(sink);
}

void SharedStores::CollectStore(observe::Sink& sink) const {
  using enum store::HistoryChange;
  const store::StoreCounters counters = backend_->counters();
  sink.Set(Metric::kStoreCalls, {"answered"}, counters.calls_answered);
  sink.Set(Metric::kStoreCalls, {"unavailable"}, counters.calls_unavailable);
  sink.Set(Metric::kStoreCalls, {"timed_out"}, counters.calls_timed_out);
  sink.Set(Metric::kStoreCalls, {"aborted"}, counters.calls_aborted);
  sink.Set(Metric::kStoreCalls, {"denied"}, counters.calls_denied);
  sink.Set(Metric::kStoreCalls, {"refused"}, counters.calls_refused);
  sink.Set(Metric::kStoreCalls, {"throttled"}, counters.calls_throttled);
  sink.Set(Metric::kStoreCalls, {"failed"}, counters.calls_failed);
  sink.Set(Metric::kStoreCallSeconds, {},
           {.bounds = store::kCallTimeBounds,
            .counts = counters.call_ns.counts,
            .sum = counters.call_ns.sum});
  sink.Set(Metric::kStoreRetries, {}, counters.retries);
  sink.Set(Metric::kStoreLocks, {"taken"}, counters.locks_taken);
  sink.Set(Metric::kStoreLocks, {"lost"}, counters.locks_lost);
  sink.Set(Metric::kStoreLocks, {"timed_out"}, counters.locks_timed_out);
  sink.Set(Metric::kStoreRedirects, {}, counters.redirects);
  sink.Set(Metric::kStoreBatchCalls, {},
           {.bounds = store::kBatchCallsBounds,
            .counts = counters.batched_calls.counts,
            .sum = counters.batched_calls.sum});
  sink.Set(Metric::kStoreBreakersOpen, {}, counters.breakers_open);
  sink.Set(Metric::kStoreBreakerOpened, {}, counters.breaker_opened);
  sink.Set(Metric::kStoreDisconnects, {}, counters.disconnects);
  sink.Set(Metric::kStoreShardsLearning, {}, counters.shards_learning);
  sink.Set(Metric::kStorePausesMissed, {}, counters.pauses_missed);
  for (const auto change : {kRestarted, kPromoted, kReplaced}) {
    sink.Set(Metric::kStoreHistoryChanges, {Name(change)},
             counters.history_changes[static_cast<size_t>(change)]);
  }
  sink.Set(Metric::kStoreAlarms, {}, counters.alarms);
  sink.Set(Metric::kStoreBucketEvents, {"damaged"}, counters.calls_damaged);
  sink.Set(Metric::kStoreBucketEvents, {"replaced_corrupt"}, counters.buckets_replaced_corrupt);
  sink.Set(Metric::kStoreBucketEvents, {"clock_reset"}, counters.buckets_clock_reset);
  sink.Set(Metric::kStoreBucketEvents, {"script_failed"}, counters.script_errors);
  sink.Set(Metric::kStoreBucketEvents, {"carried_over"}, counters.buckets_carried_over);
  sink.Set(Metric::kStoreBucketEvents, {"removed"}, counters.buckets_removed);
}

}  // namespace headgate::shared_store
