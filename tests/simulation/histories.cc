// Changes of the store's history, and how much each may add to the requests that the fleet admits:
// terms.h.
#include <algorithm>

#include <fmt/format.h>

#include "tests/simulation/world.h"

namespace headgate::simulation {

using base::Duration;
using namespace std::chrono_literals;

void World::Allow(Fault fault, size_t index, const Quantity& quantity) {
  Key& key = keys_[index];
  const Duration until = Forgotten(index);
  for (Bound* bound : {&key.bound, &key.total}) {
    switch (TermOf(fault)) {
      case Adds::kNothing:
      case Adds::kOutage:      // counted at each admission: AdmitLocally
      case Adds::kEverything:  // requests admitted uncounted are not counted here either
      case Adds::kLargerOfBoth:
        break;
      case Adds::kLostEnd:
        bound->AllowTokens(quantity.tokens, now_, until);
        break;
      case Adds::kCapacity:
        bound->AllowCapacity(now_, until);
        break;
      case Adds::kSecondBucket:
        bound->AllowSecondServer(now_, now_ + quantity.time, until + quantity.time);
        bound->AllowCapacity(now_, until);
        break;
      case Adds::kStep:
        bound->AllowTime(quantity.time, now_, until);
        break;
      case Adds::kWindow:
        if (!IsMeter(key.limit->limit) || !IsMeter(LimitAfter(index)->limit))
          bound->AllowTime(quantity.time, now_, until);
        break;
    }
  }
}

// Until then, leases granted before a bucket was lost may be spent, or count in a window.
Duration World::Forgotten(size_t key) const {
  Duration until = now_ + plan_.tiny_ttl;
  for (const store::LimitHandle& limit : {keys_[key].limit, LimitAfter(key)}) {
    if (IsMeter(limit->limit)) continue;
    const algorithm::LimitSpec& spec = limit->limit.spec();
    until = std::max(until, IsCalendar(spec) ? plan_.end : now_ + plan_.tiny_ttl + 2 * spec.period);
  }
  return until;
}

// The end of the window of a sliding counter. Other limits: now.
Duration World::WindowEnd(size_t key) const {
  const algorithm::LimitSpec& spec = keys_[key].limit->limit.spec();
  if (spec.algorithm != algorithm::Algorithm::kSlidingWindowCounter) return now_;
  return now_ + spec.period - Duration(server_.Wall(now_).ns % spec.period.count()) - 1us;
}

// The store is replaced by another one, which may lack the latest writes.
void World::LoseEnd(Fault fault, const std::function<void()>& become) {
  const auto rest_at = [this](size_t i, Duration at) {
    return server_.Rest(keys_[i].limit->limit, Node::NameOf(i), at);
  };
  const auto rest = [this, &rest_at](size_t i) { return rest_at(i, now_); };
  const auto with_leases = [this, &rest](size_t i) {
    uint64_t sum = rest(i);
    for (const StoredLease& lease : server_.Leases(Node::NameOf(i), now_)) {
      if (lease.expires_at > server_.Wall(now_)) sum += lease.granted - lease.reported;
    }
    return sum;
  };
  std::vector<uint64_t> before;
  std::vector<uint64_t> before_at_end;
  std::vector<uint64_t> before_with_leases;
  for (size_t i = 0; i < keys_.size(); ++i) {
    before.push_back(rest(i));
    before_at_end.push_back(rest_at(i, WindowEnd(i)));
    before_with_leases.push_back(with_leases(i));
  }
  become();
  for (size_t i = 0; i < keys_.size(); ++i) {
    // A refund that is lost counts as spent again.
    const uint64_t gone = before_with_leases[i] - std::min(before_with_leases[i], with_leases(i));
    keys_[i].lockout.consumed().Admit(gone, now_, server_.Wall(now_));
    // The admissions or leases of the lost writes, rounded up to whole tokens. If the key's limit
    // changes, two limits apply, so the loss is not measured.
    // The lost end may contain leases of the window before that were given back. They make up for
    // lost admissions, but weigh less and less.
    const uint64_t at_end = rest_at(i, WindowEnd(i));
    const uint64_t lost = std::max(rest(i) - std::min(rest(i), before[i]),
                                   at_end - std::min(at_end, before_at_end[i]));
    if (lost > 0) coverage_.Mark("the end of a history was lost");
    keys_[i].lockout.Blind(now_ + plan_.ttl);
    Allow(fault, i, {.tokens = plan_.keys[i].changed ? uint64_t{UINT32_MAX} : lost + 1});
  }
  ++generation_;
  // The cause of the server's change may also have hit an instance, which then starts without
  // having seen the change.
  if (random_.Below(3) == 0) Crash(static_cast<uint32_t>(random_.Below(plan_.instances)));
  for (uint32_t i = 0; i < plan_.instances; ++i) {
    if (!machines_[i].aside) Reconnect(i);
  }
}

void World::FailOver() {
  Note("the replica takes over");
  LoseEnd(Fault::kFailover, [this] { server_.FailOver(now_); });
}

void World::Restart(bool from_file) {
  if (calm()) return;
  Note(from_file ? "the store restarts from a file" : "the store restarts empty");
  coverage_.Mark(from_file ? "the store restarted from a file" : "the store restarted empty");
  LoseEnd(from_file ? Fault::kRestartFromFile : Fault::kEmptyRestart,
          [this, from_file] { server_.Restart(from_file, now_); });
}

void World::Reconnect(uint32_t index) {
  const Machine& machine = machines_[index];
  for (const auto& each : machine.nodes) {
    each->OnDisconnected();
    OnNode(each->index(), now_ + Below(300ms), [this, index](Node& node) {
      if (machines_[index].aside) return;
      node.OnConnected(server_.shard(), server_.identity(now_), BootAt(machines_[index], now_));
    });
  }
}

// Connections stay open, and nodes learn of the change sooner or later. Nothing was lost, so nodes
// have no history to learn.
void World::ContinueHistory(Fault fault) {
  if (old_server_ || calm()) return;
  if (fault == Fault::kSlotMoved) {
    server_.Move(now_);
  } else {
    server_.AttachReplica();
  }
  coverage_.Mark(fault == Fault::kSlotMoved ? "a slot moved" : "a first replica was attached");
  for (size_t i = 0; i < keys_.size(); ++i) Allow(fault, i, {});
  for (uint32_t i = 0; i < plan_.nodes(); ++i) {
    OnNode(i, now_ + Below(1s), [this, generation = generation_](Node& node) {
      if (generation != generation_ || MachineOf(node.index()).aside) return;
      node.OnServer(server_.shard(), server_.identity(now_), BootAt(MachineOf(node.index()), now_));
    });
  }
}

// The replica takes over, but some nodes and the old server do not notice. The old server continues
// to answer these nodes until it stops.
void World::Partition() {
  if (old_server_ || calm()) return;
  const Duration stops = std::min(now_ + 1ms + Below(3 * plan_.ttl), plan_.calm_from);
  old_server_.emplace(server_);
  ++partitions_;
  for (Machine& machine : machines_) {
    machine.aside =
        !machine.nodes.empty() && machine.nodes.front()->connected() && random_.Below(2) == 0;
  }
  for (size_t i = 0; i < keys_.size(); ++i) Allow(Fault::kSecondServer, i, {.time = stops - now_});
  FailOver();
  Schedule(stops, [this] { EndPartition(); });
}

void World::EndPartition() {
  Note("the old server stops");
  old_server_.reset();
  // Denials may rest on answers of the old server.
  for (Key& key : keys_) key.lockout.Blind(now_);
  for (uint32_t i = 0; i < plan_.instances; ++i) {
    if (std::exchange(machines_[i].aside, false)) Reconnect(i);
  }
}

void World::Flush() {
  coverage_.Mark("the store was emptied");
  Note("the store is emptied");
  server_.Flush();
  for (size_t i = 0; i < keys_.size(); ++i) Allow(Fault::kFlush, i, {});
}

void World::StepClock(Duration by) {
  Note(fmt::format("the store's clock is set by {}ms", by.count() / 1'000'000));
  for (size_t i = 0; i < keys_.size(); ++i) {
    for (Bound* bound : {&keys_[i].bound, &keys_[i].total})
      bound->Admit(0, now_, server_.Wall(now_));
    Allow(by > 0s ? Fault::kClockForward : Fault::kClockBack, i, {.time = by});
    // Until the store's clock has caught up, buckets do not refill.
    if (by < 0s) {
      for (const Duration after : {Duration(0), -by, Duration(4s)}) {
        Schedule(now_ + after, [this, i] {
          Bound& consumed = keys_[i].lockout.consumed();
          consumed.Admit(consumed.Room(now_, server_.Wall(now_)), now_, server_.Wall(now_));
        });
      }
    }
    // The bucket's window counts earlier requests, and a sliding counter also counts the window
    // before.
    const bool sliding =
        keys_[i].limit->limit.algorithm() == algorithm::Algorithm::kSlidingWindowCounter;
    if (by < 0s) keys_[i].lockout.Blind(now_ - by + (sliding ? 2 : 1) * PaceOf(plan_.keys[i].spec));
  }
  if (by > 0s) coverage_.Mark("the store's clock was set forward");
  server_.StepClock(by);
  if (old_server_) old_server_->StepClock(by);
}

void World::Replicate() {
  server_.Replicate();
  if (plan_.failovers + plan_.partitions + plan_.restarts_from_file == 0 || calm()) return;
  Schedule(now_ + plan_.replication_lag, [this] { Replicate(); });
}

}  // namespace headgate::simulation
