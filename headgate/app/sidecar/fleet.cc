#include "headgate/app/sidecar/fleet.h"

#include <array>
#include <cstring>
#include <string_view>
#include <utility>

#include "headgate/base/random_secret.h"
#include "headgate/store/cas/versioned_store.h"

namespace headgate::app {

using observe::Metric;
using share::fleet::FleetCounters;
using share::fleet::Unusable;

namespace {

uint64_t RandomSeed() {
  const base::HashSecret secret = base::RandomHashSecret();
  uint64_t seed;
  std::memcpy(&seed, secret.bytes.data(), sizeof seed);
  return seed;
}

}  // namespace

base::HashSecret SecretOfPool(std::string_view pool) {
  base::HashSecret secret{};
  std::array<base::Hash128, sizeof secret.bytes / sizeof(base::Hash128)> halves{};
  for (size_t i = 0; i < halves.size(); ++i) {
    const std::string text = std::to_string(i) + ":" + std::string(pool);
    halves[i] = base::HashBytes(base::HashSecret{}, base::KeyKind::kRaw, text);
  }
  std::memcpy(secret.bytes.data(), halves.data(), sizeof secret.bytes);
  return secret;
}

SidecarFleet::SidecarFleet(std::string pool, const share::ShareOptions& share,
                           const base::DisciplinedClock& clock, observe::Log& log)
    : name_(std::move(pool)),
      share_(share),
      clock_(clock),
      log_(log),
      pool_(*share::FleetPool::Make(share)),
      admission_(*pool_) {
  pool_->OnNeed([this] { Need(); });
}

SidecarFleet::OnLoop::OnLoop(SidecarFleet& fleet, shared_store::SharedStores& stores,
                             net::EventLoop& event_loop)
    : loop(event_loop),
      rounds(*fleet.pool_, stores.values(0), fleet.clock_,
             {.pool = fleet.name_,
              .settings = fleet.share_.pool,
              .instances = [this, &fleet] { return fleet.Count(rounds.counters()); },
              .seed = RandomSeed()},
             fleet.Listener(),
             [this] {
               if (rounds.next_wake().ns == INT64_MAX) return timer.Cancel();
               timer.Set(rounds.next_wake());
             }),
      timer(event_loop, [this] { rounds.Step(); }) {}

void SidecarFleet::Begin(shared_store::SharedStores& stores, uint32_t instances,
                         net::EventLoop& loop) {
  count_.emplace(instances, [&stores] { return stores.instances(); });
  on_loop_.emplace(*this, stores, loop);
}

uint32_t SidecarFleet::HandOverCount() const { return count_->HandOver(clock_.source().BootNow()); }

void SidecarFleet::TakeOverCount(uint32_t instances) { count_->TakeOver(instances); }

uint32_t SidecarFleet::Count(const FleetCounters& counters) {
  const base::BootTime now = clock_.source().BootNow();
  if (counters.written.value() > 0) count_->OnAnswer(now);
  return count_->count(now);
}

// Many requests may ask for a round before the loop begins it; one message to the loop is enough.
void SidecarFleet::Need() {
  if (is_needed_.exchange(true) || !on_loop_) return;
  on_loop_->loop.Post([this] {
    is_needed_ = false;
    if (on_loop_) on_loop_->rounds.Step();
  });
}

share::fleet::FleetListener SidecarFleet::Listener() {
  const auto on_alone = [this](bool alone, const absl::Status& why) {
    if (!alone) return log_.Info("fleet_pool.rejoined", {{"pool", std::string_view(name_)}});
    const std::string reason(why.message());
    if (count_->is_known()) {
      return log_.Warning(
          "fleet_pool.left",
          {{"pool", std::string_view(name_)},
           {"reason", std::string_view(reason)},
           {"effect", std::string_view("this instance divides its part of the capacity alone")}});
    }
    log_.Warning(
        "fleet_pool.left",
        {{"pool", std::string_view(name_)},
         {"reason", std::string_view(reason)},
         {"effect", std::string_view("this instance knows of no others and has the whole capacity, "
                                     "as each one has that starts without the store")},
         {"hint", std::string_view("set --store-instances to the number of replicas; if the store "
                                   "runs, raise --store-timeout")}});
  };
  const auto on_settings = [this](const algorithm::FairShareOptions& settings, bool by_this) {
    log_.Warning(by_this ? "fleet_pool.settings_replaced" : "fleet_pool.settings_followed",
                 {{"pool", std::string_view(name_)},
                  {"capacity", settings.capacity},
                  {"cycle", settings.cycle},
                  {"hint", std::string_view("give all instances of a pool the same settings")}});
  };
  const auto on_replaced = [this](Unusable why) {
    const std::string_view reason = why == Unusable::kCorrupt
                                        ? "its value in the store is foreign or damaged"
                                        : "its time is far ahead of the clock";
    log_.Warning("fleet_pool.begun_anew", {{"pool", std::string_view(name_)}, {"reason", reason}});
  };
  return {.on_alone = on_alone, .on_settings = on_settings, .on_replaced = on_replaced};
}

void SidecarFleet::Collect(observe::Sink& sink) const {
  const share::FleetFigures figures = pool_->figures();
  sink.Set(Metric::kFleetWaits, {}, figures.waited);
  sink.Set(Metric::kFleetEarlyDenials, {}, figures.early_denials);
  sink.Set(Metric::kFleetPartsExpired, {}, figures.expired);
  sink.Set(Metric::kFleetAlone, {}, uint64_t{figures.is_alone});
  sink.Set(Metric::kFleetAloneRequests, {}, figures.alone);
  if (!on_loop_) return;
  const FleetCounters& counters = on_loop_->rounds.counters();
  sink.Set(Metric::kFleetRounds, {"written"}, counters.written.value());
  sink.Set(Metric::kFleetRounds, {"lost"}, counters.conflicts.value());
  sink.Set(Metric::kFleetRounds, {"failed"}, counters.failed.value());
  sink.Set(Metric::kFleetEvents, {"left"}, counters.went_alone.value());
  sink.Set(Metric::kFleetEvents, {"settings_changed"}, counters.settings_changed.value());
  sink.Set(Metric::kFleetEvents, {"replaced_corrupt"}, counters.replaced_corrupt.value());
  sink.Set(Metric::kFleetEvents, {"clock_reset"}, counters.clock_reset.value());
}

}  // namespace headgate::app
