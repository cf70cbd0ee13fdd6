// What goes wrong in the world, until the calm.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "tests/simulation/world.h"

namespace headgate::simulation {

using base::BootTime;
using base::Duration;
using namespace std::chrono_literals;

void World::ScheduleFaults() {
  const auto times = [&](uint32_t count, auto happen) {
    for (uint32_t i = 0; i < count; ++i) Schedule(AnyTime(), happen);
  };
  const auto machine = [this] { return static_cast<uint32_t>(random_.Below(plan_.instances)); };
  times(plan_.pauses, [this, machine] { Pause(machine()); });
  times(plan_.crashes, [this, machine] { Crash(machine()); });
  times(plan_.shutdowns, [this, machine] { ShutDown(machine()); });
  times(plan_.resets, [this] { Reset(); });
  times(plan_.cuts, [this, machine] { Cut(machine()); });
  times(plan_.failovers, [this] { FailOver(); });
  times(plan_.partitions, [this] { Partition(); });
  times(plan_.flushes, [this] { Flush(); });
  for (size_t key = 0; key < keys_.size(); ++key) {
    times(plan_.keys[key].stampedes, [this, key] { Stampede(key); });
  }
  times(plan_.steps_forward, [this] { StepClock(Duration(static_cast<int64_t>(random_.Below(3'000'000)) * 1000)); });
  times(plan_.steps_back, [this] {
    const bool far = random_.Below(2) == 0;
    StepClock(far ? -Duration(1h) : -Duration(static_cast<int64_t>(random_.Below(1'500'000)) * 1000));
  });
}

// ---- Machines

void World::Crash(uint32_t index) {
  Machine& machine = machines_[index];
  if (machine.nodes.empty() || calm()) return;
  if (std::any_of(machine.nodes.begin(), machine.nodes.end(), [](const auto& node) { return node->holds_leases(); })) {
    coverage_.Mark("an instance died holding leases");
  }
  Note(fmt::format("instance {} dies", index));
  machine.nodes.clear();
  StartLater(index);
}

void World::StartLater(uint32_t index) {
  Schedule(now_ + Below(1s), [this, index] {
    if (!machines_[index].nodes.empty()) return;
    Note(fmt::format("instance {} starts", index));
    Start(index);
  });
}

// In good order: what is held goes back, and the process ends once that has arrived, or has not.
void World::ShutDown(uint32_t index) {
  Machine& machine = machines_[index];
  if (machine.nodes.empty() || calm() || now_ < machine.paused_until) return;
  Note(fmt::format("instance {} shuts down", index));
  coverage_.Mark("an instance shut down in good order");
  for (const auto& node : machine.nodes) node->OnShutdown(BootAt(machine, now_));
  Schedule(std::min(now_ + 2 * plan_.timeout, plan_.calm_from), [this, index, incarnation = machine.incarnation] {
    if (machines_[index].incarnation != incarnation || machines_[index].nodes.empty()) return;
    Note(fmt::format("instance {} has ended", index));
    machines_[index].nodes.clear();
    StartLater(index);
  });
}

void World::ShutDownAll() {
  if (!plan_.shuts_down_at_end) return;
  coverage_.Mark("the whole fleet shut down in good order");
  for (Machine& machine : machines_) {
    for (const auto& node : machine.nodes) node->OnShutdown(BootAt(machine, now_));
  }
}

void World::Reset() {
  const auto index = static_cast<uint32_t>(random_.Below(plan_.nodes()));
  const size_t key = random_.Below(keys_.size());
  OnNode(index, now_, [this, key](Node& node) { node.OnReset(key, BootAt(MachineOf(node.index()), now_)); });
}

void World::Pause(uint32_t index) {
  Machine& machine = machines_[index];
  const bool is_long = random_.Below(2) == 0;
  const auto most = static_cast<uint64_t>((is_long ? 2 * plan_.ttl : plan_.ttl / 2).count());
  const Duration pause(static_cast<int64_t>(random_.Below(most)) + 1);
  if (now_ < machine.paused_until) return;
  if (pause > plan_.ttl) coverage_.Mark("a node was paused for longer than a lease lives");
  Note(fmt::format("instance {} is paused for {}ms", index, pause.count() / 1'000'000));
  SetPaused(machine, now_ + pause);
  // Whatever stopped it may have broken its connections too: it wakes with leases, and nobody hears of them.
  if (plan_.cuts > 0 && random_.Below(2) == 0) {
    Schedule(machine.paused_until - Duration(1), [this, index] { Cut(index); });
  }
}

void World::SetPaused(Machine& machine, Duration until) {
  machine.paused_until = until;
  if (mutant_ == Mutant::kClockStopsInPause) machine.paused_for += until - now_;
}

void World::Cut(uint32_t index) {
  if (calm()) return;
  const Duration cut(static_cast<int64_t>(random_.Below(static_cast<uint64_t>((2 * plan_.ttl).count()))));
  Note(fmt::format("instance {} is cut off for {}ms", index, cut.count() / 1'000'000));
  machines_[index].cut_until = std::min(now_ + cut, plan_.calm_from);
}

// ---- The store

void World::FailOver() {
  const auto rest = [this](size_t i) { return server_.Rest(keys_[i].limit->limit, Node::NameOf(i), now_); };
  std::vector<uint64_t> before;
  for (size_t i = 0; i < keys_.size(); ++i) before.push_back(rest(i));
  server_.FailOver();
  for (size_t i = 0; i < keys_.size(); ++i) {
    if (plan_.keys[i].changed) {
      keys_[i].bound.AllowCapacity(now_, Forgotten(i));
      continue;
    }
    // What the lost end had admitted or leased; parts of a token do not show.
    const uint64_t lost = rest(i) - std::min(rest(i), before[i]);
    if (lost > 0) coverage_.Mark("a failover lost what had been admitted");
    keys_[i].bound.AllowTokens(lost + 1, now_, Forgotten(i));
  }
  ++generation_;
  Note("the replica takes over");
  // What took the server may have taken a node, which then starts without having seen it.
  if (random_.Below(3) == 0) Crash(static_cast<uint32_t>(random_.Below(plan_.instances)));
  for (uint32_t i = 0; i < plan_.instances; ++i) {
    if (!machines_[i].aside) Reconnect(i);
  }
}

void World::Reconnect(uint32_t index) {
  const Machine& machine = machines_[index];
  for (const auto& each : machine.nodes) {
    each->OnDisconnected();
    OnNode(each->index(), now_ + Below(300ms), [this, index](Node& node) {
      if (!machines_[index].aside) node.OnConnected(server_.identity(), BootAt(machines_[index], now_));
    });
  }
}

// The replica takes over, but some of the nodes do not hear of it, nor does the server that was, which goes on
// answering them until it stops.
void World::Partition() {
  if (old_server_ || calm()) return;
  const Duration stops = std::min(now_ + 1ms + Below(3 * plan_.ttl), plan_.calm_from);
  old_server_.emplace(server_);
  ++partitions_;
  for (Machine& machine : machines_) {
    machine.aside = !machine.nodes.empty() && machine.nodes.front()->connected() && random_.Below(2) == 0;
  }
  for (size_t i = 0; i < keys_.size(); ++i) {
    keys_[i].bound.AllowSecondServer(now_, stops, stops + (Forgotten(i) - now_));
  }
  FailOver();
  // What the new server has, the old one has too.
  for (size_t i = 0; i < keys_.size(); ++i) keys_[i].bound.AllowCapacity(now_, Forgotten(i));
  Schedule(stops, [this] { EndPartition(); });
}

void World::EndPartition() {
  Note("the server that was stops");
  old_server_.reset();
  for (uint32_t i = 0; i < plan_.instances; ++i) {
    if (std::exchange(machines_[i].aside, false)) Reconnect(i);
  }
}

// Until then what was leased before a bucket was forgotten may be spent, or is counted in a window.
Duration World::Forgotten(size_t key) const {
  const algorithm::LimitSpec& spec = keys_[key].limit->limit.spec();
  if (IsMeter(keys_[key].limit->limit)) return now_ + plan_.ttl;
  return IsCalendar(spec) ? plan_.end : now_ + plan_.ttl + 2 * spec.period;
}

void World::Flush() {
  coverage_.Mark("the store was emptied");
  Note("the store is emptied");
  server_.Flush();
  for (size_t i = 0; i < keys_.size(); ++i) keys_[i].bound.AllowCapacity(now_, Forgotten(i));
}

void World::StepClock(Duration by) {
  Note(fmt::format("the store's clock is set by {}ms", by.count() / 1'000'000));
  for (size_t i = 0; i < keys_.size(); ++i) {
    keys_[i].bound.Admit(0, now_, server_.Wall(now_));
    if (by > 0s || !IsMeter(keys_[i].limit->limit)) keys_[i].bound.AllowTime(by, now_, Forgotten(i));
  }
  if (by > 0s) coverage_.Mark("the store's clock was set forward");
  server_.StepClock(by);
  if (old_server_) old_server_->StepClock(by);
}

void World::Replicate() {
  server_.Replicate();
  if (plan_.failovers + plan_.partitions == 0 || calm()) return;
  Schedule(now_ + plan_.replication_lag, [this] { Replicate(); });
}

// ---- Limits

void World::ScheduleChange(size_t key) {
  Schedule(plan_.keys[key].changed_at, [this, key] {
    keys_[key].bound.Widen(keys_[key].changed->limit, now_);
    const std::optional<Holder> holder = plan_.keys[key].change_in_stampede ? Stampede(key) : std::nullopt;
    const uint32_t holds = holder ? holder->node / plan_.loops : plan_.instances;
    const uint32_t first = holder ? (holds + 1) % plan_.instances : plan_.instances;
    for (uint32_t i = 0; i < plan_.instances; ++i) {
      Duration noticed = now_ + Below(300ms);
      if (i == first) noticed = now_;
      if (i == holds) noticed = holder->end;
      keys_[key].change_noticed = std::max(keys_[key].change_noticed, noticed);
      Schedule(noticed, [this, i, key] { Switch(i, key); });
    }
    if (holder && first != holds) {
      OnNode(first * plan_.loops, now_ + 1ms, [this, key](Node& node) { Request(node, key, 1); });
    }
    FinishChange(key);
  });
}

void World::Switch(uint32_t index, size_t key) {
  Note(fmt::format("instance {} has another limit for k{}", index, key));
  machines_[index].switched[key] = true;
  for (uint32_t loop = 0; loop < plan_.loops; ++loop) {
    OnNode(index * plan_.loops + loop, now_, [this, key](Node& node) { node.OnLimit(key, keys_[key].changed); });
  }
}

// When all have noticed, nothing of before is under way, and what was leased before is over.
void World::FinishChange(size_t key) {
  Schedule(keys_[key].change_noticed + plan_.slow_max + 2 * plan_.ttl, [this, key] {
    for (const Machine& machine : machines_) {
      if (now_ < machine.paused_until + plan_.slow_max + 2 * plan_.ttl) {
        keys_[key].change_noticed = std::max(keys_[key].change_noticed, machine.paused_until);
        return FinishChange(key);
      }
    }
    keys_[key].bound.Narrow(keys_[key].changed->limit, now_);
  });
}

}  // namespace headgate::simulation
