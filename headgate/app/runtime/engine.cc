#include "headgate/app/runtime/engine.h"

#include "headgate/app/settings/version.h"
#include "headgate/base/random_secret.h"

namespace headgate::app {
namespace {

using observe::Metric;

constexpr base::Duration kSweepInterval = std::chrono::seconds(5);

}  // namespace

Engine::Engine(const Settings& settings, uint32_t workers, const base::Clock& system_clock,
               observe::Log& log, net::SpareFiles& spare_files)
    : system_clock_(system_clock),
      log_(log),
      clock_(system_clock),
      started_at_(system_clock.BootNow()),
      store_({.max_buckets = settings.max_buckets,
              .max_limits = static_cast<uint32_t>(settings.max_limits),
              .secret = base::RandomHashSecret()}),
      metrics_({.workers = workers, .secret = base::RandomHashSecret()}),
      top_keys_({.workers = workers,
                 .secret = base::RandomHashSecret(),
                 .keys = settings.show_keys == "hashed" ? base::HeavyHitters::Keys::kHashed
                                                        : base::HeavyHitters::Keys::kClear}),
      snapshot_(settings.snapshot, store_, log, &spare_files),
      // Restore first: it replaces the store's hash secret by the snapshot's, before any request.
      limiter_((snapshot_.Restore(clock_.Now()), store_), {&metrics_, &top_keys_}),
      snapshots_(snapshot_, clock_, settings.snapshot_interval),
      sweep_due_(clock_.Now() + kSweepInterval) {
  metrics_.AddCollector([this](observe::Sink& sink) { Collect(sink); });
}

void Engine::Tick() {
  clock_ahead_ns_.store(clock_.Discipline().count(), std::memory_order_relaxed);
  const base::Instant now = clock_.Now();
  if (now >= sweep_due_) {
    store_.Sweep(now);
    sweep_due_ = now + kSweepInterval;
  }
  top_keys_.Tick(now);
  snapshots_.Tick();
  log_.Tick();
}

void Engine::SetPassthrough(bool on, const rule::Author& author) {
  if (limiter_.SetPassthrough(on) == on) return;
  if (tell_passthrough_) tell_passthrough_();
  if (!on) {
    return log_.Info("passthrough.ended", {{"user", author.user}, {"address", author.address}});
  }
  log_.Warning("passthrough.began",
               {{"user", author.user},
                {"address", author.address},
                {"effect", "requests are decided and counted, and none is refused"},
                {"hint", "DELETE /v1/passthrough at the admin address ends it"}});
}

void Engine::Collect(observe::Sink& sink) {
  sink.Set(Metric::kPassthrough, {}, uint64_t{limiter_.passthrough()});
  const store::MemoryStats stats = store_.stats();
  sink.Set(Metric::kBuckets, {}, stats.buckets);
  sink.Set(Metric::kBucketsMax, {}, stats.buckets_max);
  sink.Set(Metric::kEvictions, {}, stats.evictions);
  sink.Set(Metric::kEvictedRequests, {}, stats.evicted_requests);
  sink.Set(Metric::kHitBlocks, {}, stats.hit_blocks);
  sink.Set(Metric::kHitBlocksMax, {}, stats.hit_blocks_max);
  sink.Set(Metric::kHitsRefused, {}, stats.hits_refused);
  sink.Set(Metric::kLimits, {}, stats.limits);
  sink.Set(Metric::kClientLimits, {}, stats.client_limits);
  sink.Set(Metric::kClientLimitsForgotten, {}, stats.client_limits_forgotten);
  sink.Set(Metric::kBucketsRebased, {}, stats.rebased);
  sink.Set(Metric::kSnapshotBucketsLeftOut, {}, stats.left_out);
  sink.Set(Metric::kPermitsHere, {}, limiter_.permits().CountAt(clock_.Now()));
  sink.Set(Metric::kPermitsNoRoom, {}, limiter_.permits().refused());

  snapshot_.Collect(sink, clock_.Now());
  const auto rules = limiter_.rules();
  sink.Set(Metric::kRules, {}, rules == nullptr ? 0 : rules->rules().size());
  sink.Set(Metric::kLogLinesDropped, {}, log_.lines_dropped());
  sink.Set(Metric::kClockAhead, {},
           base::Duration(clock_ahead_ns_.load(std::memory_order_relaxed)));
  sink.Set(Metric::kUptime, {}, system_clock_.BootNow() - started_at_);
  sink.Set(Metric::kBuildInfo, {kVersion}, uint64_t{1});
}

}  // namespace headgate::app
