// The faults of the simulated world, until the calm phase.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "tests/simulation/world.h"

namespace headgate::simulation {

using base::BootTime;
using base::Duration;
using base::Instant;
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
  times(plan_.restarts_from_file, [this] { Restart(/*from_file=*/true); });
  times(plan_.restarts_empty, [this] { Restart(/*from_file=*/false); });
  times(plan_.replicas_attached, [this] { ContinueHistory(Fault::kReplicaAttached); });
  times(plan_.slot_moves, [this] { ContinueHistory(Fault::kSlotMoved); });
  times(plan_.sleeps, [this] { Sleep(); });
  for (size_t key = 0; key < keys_.size(); ++key) {
    times(plan_.keys[key].stampedes, [this, key] { Stampede(key); });
  }
  times(plan_.steps_forward,
        [this] { StepClock(Duration(static_cast<int64_t>(random_.Below(3'000'000)) * 1000)); });
  times(plan_.steps_back, [this] {
    const bool far = random_.Below(2) == 0;
    StepClock(far ? -Duration(1h)
                  : -Duration(static_cast<int64_t>(random_.Below(1'500'000)) * 1000));
  });
}

// ---- Machines

void World::Crash(uint32_t index) {
  Machine& machine = machines_[index];
  if (machine.nodes.empty() || calm()) return;
  if (std::any_of(machine.nodes.begin(), machine.nodes.end(),
                  [](const auto& node) { return node->holds_leases(); })) {
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

// An orderly shutdown: the instance returns its leases, and the process ends once the returns have
// arrived or failed.
void World::ShutDown(uint32_t index) {
  Machine& machine = machines_[index];
  if (machine.nodes.empty() || calm() || now_ < machine.paused_until) return;
  Note(fmt::format("instance {} shuts down", index));
  coverage_.Mark("an instance shut down orderly");
  for (const auto& node : machine.nodes) node->OnShutdown(BootAt(machine, now_));
  Schedule(std::min(now_ + 2 * plan_.timeout, plan_.calm_from),
           [this, index, incarnation = machine.incarnation] {
             if (machines_[index].incarnation != incarnation || machines_[index].nodes.empty())
               return;
             Note(fmt::format("instance {} has ended", index));
             machines_[index].nodes.clear();
             StartLater(index);
           });
}

void World::ShutDownAll() {
  if (!plan_.shuts_down_at_end) return;
  coverage_.Mark("the whole fleet shut down orderly");
  for (Machine& machine : machines_) {
    for (const auto& node : machine.nodes) node->OnShutdown(BootAt(machine, now_));
  }
}

void World::Reset() {
  const auto index = static_cast<uint32_t>(random_.Below(plan_.nodes()));
  const size_t key = random_.Below(keys_.size());
  OnNode(index, now_,
         [this, key](Node& node) { node.OnReset(key, BootAt(MachineOf(node.index()), now_)); });
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
  // The cause of the pause may also have broken the connections: the instance wakes with leases and
  // cannot reach the store.
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
  const Duration cut(
      static_cast<int64_t>(random_.Below(static_cast<uint64_t>((2 * plan_.ttl).count()))));
  Note(fmt::format("instance {} is cut off for {}ms", index, cut.count() / 1'000'000));
  machines_[index].cut_until = std::min(now_ + cut, plan_.calm_from);
}

// Every machine and the network stand still, for minutes or for weeks. Only the clocks advance.
void World::Sleep() {
  if (calm() || old_server_) return;
  constexpr std::array<Duration, 4> kSleeps{1min, 1h, 13h, 24h * 40};
  const Duration sleep = kSleeps[random_.Below(kSleeps.size())] + Below(1s);
  Note(fmt::format("everything stands still for {}s", sleep / 1s));
  coverage_.Mark("everything stood still for a long time");
  for (Event& event : events_) event.at += sleep;
  for (Duration* at : {&plan_.calm_from, &plan_.measured_from, &plan_.measured_to, &plan_.end})
    *at += sleep;
  for (Machine& machine : machines_) {
    if (machine.paused_until > now_) machine.paused_until += sleep;
    if (machine.cut_until > now_) machine.cut_until += sleep;
  }
  for (Key& key : keys_) {
    // An answer in transit arrives when everybody is awake again.
    key.lockout.Blind(now_ + sleep + plan_.timeout + plan_.delay_max + plan_.slow_max);
    if (key.quiet_until > now_) key.quiet_until += sleep;
    if (key.change_noticed > now_) key.change_noticed += sleep;
  }
}

// ---- Limits

void World::ScheduleChange(size_t key) {
  Schedule(plan_.keys[key].changed_at, [this, key] {
    for (Bound* bound : {&keys_[key].bound, &keys_[key].total}) {
      bound->Widen(keys_[key].changed->limit, now_, server_.Wall(now_));
    }
    keys_[key].lockout.Blind(base::kDurationMax / 2);
    const std::optional<Holder> holder =
        plan_.keys[key].change_in_stampede ? Stampede(key) : std::nullopt;
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
    FinishChange(key, keys_[key].change_noticed + SettledAfterChange());
  });
}

// The time after which the old limit has no effect: leases of the old limit end, and its requests
// are decided. Members of a group are decided one after the other, each when its timer fires, which
// may be very late.
Duration World::SettledAfterChange() const {
  return plan_.slow_max + 2 * plan_.ttl +
         static_cast<int64_t>(plan_.keys.size() + 1) * plan_.timeout;
}

void World::Switch(uint32_t index, size_t key) {
  Note(fmt::format("instance {} has another limit for k{}", index, key));
  machines_[index].switched[key] = true;
  for (uint32_t loop = 0; loop < plan_.loops; ++loop) {
    OnNode(index * plan_.loops + loop, now_,
           [this, key](Node& node) { node.OnLimit(key, keys_[key].changed); });
  }
}

// Ends the change when all instances have the new limit, no call under the old limit is in flight,
// and the old leases have ended.
void World::FinishChange(size_t key, Duration at) {
  Schedule(at, [this, key] {
    if (const auto later = MustWaitForChange(key)) return FinishChange(key, *later);
    for (Bound* bound : {&keys_[key].bound, &keys_[key].total}) {
      bound->Narrow(keys_[key].changed->limit, now_, server_.Wall(now_));
    }
    keys_[key].change_over = true;
    if (keys_[key].changed->limit.denies_all()) coverage_.Mark("a limit became one of 0 requests");
    if (keys_[key].limit->limit.denies_all())
      coverage_.Mark("a limit of 0 requests became another");
  });
}

// The earliest time at which the change may be over; nullopt if it is over already.
std::optional<Duration> World::MustWaitForChange(size_t key) {
  const Duration settled = SettledAfterChange();
  for (const Machine& machine : machines_) {
    keys_[key].change_noticed = std::max(keys_[key].change_noticed, machine.paused_until);
  }
  if (now_ < keys_[key].change_noticed + settled) return keys_[key].change_noticed + settled;
  if (IsSameKind(plan_.keys[key].spec, *plan_.keys[key].changed)) return std::nullopt;
  // Until somebody asks under the new limit, the bucket still refills by the old one.
  const std::string name = Node::NameOf(key);
  const algorithm::Limit& limit = keys_[key].changed->limit;
  // Nobody asks the store under a limit of 0 requests.
  if (limit.denies_all()) return std::nullopt;
  if (old_server_ || !server_.IsOf(limit, name, now_)) return now_ + 50ms;
  coverage_.Mark("a limit of another kind took over");
  if (limit.algorithm() != algorithm::Algorithm::kFixedWindow &&
      limit.algorithm() != algorithm::Algorithm::kSlidingWindowCounter) {
    return std::nullopt;
  }
  // The open window counts the requests admitted before; the next window begins empty.
  const Instant wall = server_.Wall(now_);
  Duration ends = plan_.calendar_edge - wall;
  if (IsFirstHit(limit))
    ends = Instant::FromNanos(static_cast<int64_t>(server_.State(name, now_).edge)) - wall;
  if (limit.spec().align == algorithm::Align::kEpoch) {
    const int64_t period = limit.spec().period.count();
    ends = Duration((period - wall.ns % period) % period);
  }
  if (ends == 0s || (IsFirstHit(limit) && ends < 0s)) return std::nullopt;
  return ends > 0s ? now_ + ends : plan_.end + 1s;
}

}  // namespace headgate::simulation
