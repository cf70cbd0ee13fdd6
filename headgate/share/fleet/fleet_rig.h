// For tests: instances that share one pool through a store in memory, in virtual time on one
// thread, and the requests of their clients.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headgate/algorithm/fair_share_state.h"
#include "headgate/share/fleet/fleet_rounds.h"
#include "headgate/store/cas/fleet_rig.h"

namespace headgate::share::fleet {

class FleetRig {
 public:
  static constexpr base::WallTime kStart = base::WallTime::FromNanos(1'790'000'000'000'000'000);
  // How long a request waits between two attempts, and in all.
  static constexpr base::Duration kAskAgain = std::chrono::milliseconds(2);
  static constexpr base::Duration kPatience = std::chrono::milliseconds(250);

  struct Instance {
    Instance(FleetRig& rig, const ShareOptions& share, FleetOptions options, base::Duration skew)
        : wall(rig.clock, skew), decisions(wall), connection(rig.service) {
      pool = *FleetPool::Make(share);
      options.settings = share.pool;
      options.instances = [&rig] { return rig.counted; };
      rounds = std::make_unique<FleetRounds>(
          *pool, connection, decisions, options,
          FleetListener{.on_alone = [this](bool alone,
                                           const absl::Status&) { alone_changes.push_back(alone); },
                        .on_settings = [this](const algorithm::FairShareOptions& settings,
                                              bool by_it) { heard.emplace_back(settings, by_it); },
                        .on_replaced = [this](Unusable why) { replaced.push_back(why); }},
          [] {});
      pool->OnNeed([&rig, this] { rig.service.After({}, [this] { rounds->Step(); }); });
    }

    store::cas::SkewedClock wall;
    base::DisciplinedClock decisions;
    store::cas::VersionedStoreRig connection;
    std::unique_ptr<FleetPool> pool;
    std::unique_ptr<FleetRounds> rounds;
    std::vector<bool> alone_changes;
    std::vector<std::pair<algorithm::FairShareOptions, bool>>
        heard;  // and whether it replaced them
    std::vector<Unusable> replaced;
    bool is_dead = false;
  };

  explicit FleetRig(size_t instances, const ShareOptions& share, uint64_t seed = 1,
                    const FleetOptions& options = {}, const std::vector<base::Duration>& skews = {})
      : service(clock, seed), counted(static_cast<uint32_t>(instances)) {
    for (size_t i = 0; i < instances; ++i)
      Add(share, options, i < skews.size() ? skews[i] : base::Duration(0));
  }

  Instance& Add(const ShareOptions& share, FleetOptions options = {}, base::Duration skew = {}) {
    options.seed = 1'000 + instances_.size();
    instances_.push_back(std::make_unique<Instance>(*this, share, options, skew));
    return *instances_.back();
  }
  Instance& operator[](size_t i) { return *instances_[i]; }

  base::Instant now() const { return base::Instant::FromNanos(clock.WallNow().ns); }

  // The request arrives after this time.
  void Send(base::Duration in, size_t instance, std::string client) {
    service.After(in, [this, instance, client = std::move(client)] {
      Ask(instance, client, {}, clock.BootNow());
    });
  }

  // Runs for this time.
  void Run(base::Duration time) {
    const base::BootTime end = clock.BootNow() + time;
    while (true) {
      const auto event = service.next_event();
      base::BootTime wake{INT64_MAX};
      for (const auto& instance : instances_) {
        if (!instance->is_dead) wake = std::min(wake, instance->rounds->next_wake());
      }
      const base::BootTime next = std::min(event.value_or(base::BootTime{INT64_MAX}), wake);
      if (next > end) break;
      if (event && *event <= wake) {
        service.RunNext();
        continue;
      }
      if (wake > clock.BootNow()) clock.Advance(wake - clock.BootNow());
      for (const auto& instance : instances_) {
        if (!instance->is_dead && instance->rounds->next_wake() <= clock.BootNow())
          instance->rounds->Step();
      }
    }
    if (end > clock.BootNow()) clock.Advance(end - clock.BootNow());
  }

  // The pool as it is in the store.
  algorithm::FairSharePool Stored() {
    const auto found = service.values.find(ValueName("default"));
    EXPECT_NE(found, service.values.end());
    ReadValue read = Read(found->second.bytes, now());
    EXPECT_TRUE(read.pool.has_value());
    return *read.pool;
  }
  // In the running cycle, by name.
  std::map<std::string, uint64_t> Capacities() {
    algorithm::FairSharePool pool = Stored();
    pool.Advance(now());
    std::map<std::string, uint64_t> capacities;
    for (size_t i = 0; i < pool.client_count(); ++i)
      capacities.emplace(pool.client(i).name, pool.client(i).figures.capacity);
    return capacities;
  }
  uint64_t Early() const {
    uint64_t sum = 0;
    for (const auto& instance : instances_) sum += instance->pool->figures().early_denials;
    return sum;
  }
  // Since the last call, by client.
  std::map<std::string, uint64_t> TakeAdmitted() { return std::exchange(admitted, {}); }

  base::ManualClock clock{kStart};
  store::cas::ServiceRig service;
  uint32_t counted;  // instances, as they believe
  std::map<std::string, uint64_t> admitted;
  std::map<uint64_t, uint64_t> admitted_in;  // by number of the cycle; 0: without the store
  uint64_t refused = 0;

 private:
  void Ask(size_t index, const std::string& client, Asking asking, base::BootTime arrived) {
    Instance& instance = *instances_[index];
    if (instance.is_dead) return;
    asking.is_last = clock.BootNow() - arrived >= kPatience;
    const PoolAnswer verdict = instance.pool->Admit(client, 1, asking, instance.decisions.Now());
    if (verdict.ticket != 0) {
      service.After(kAskAgain, [this, index, client, arrived, ticket = verdict.ticket] {
        Ask(index, client, {.ticket = ticket}, arrived);
      });
    } else if (verdict.admitted) {
      ++admitted[client];
      ++admitted_in[instance.pool->is_alone() ? 0 : instance.pool->cycle()];
    } else {
      ++refused;
    }
  }

  std::vector<std::unique_ptr<Instance>> instances_;
};

}  // namespace headgate::share::fleet
