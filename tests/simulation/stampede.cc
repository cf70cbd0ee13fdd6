// Checks that the store keeps room for the requests of a lease. Nobody asks while the lease lives,
// so the shared bucket refills as far as the store allows. The holder is paused until the lease's
// last instant, then spends all of it without reaching the store. When the lease has ended at the
// store, every node asks for everything.
//
//   granted                              last instant          ends at the store
//     |  paused ───────────────────────── |  spends all         |
//     |  nobody else asks ────────────────┴──────────────────── |  all ask: capacity and refill,
//     |                                                            no more
//     |  a change of the limit: one node has it at once, the holder only afterwards
#include <algorithm>

#include "tests/simulation/world.h"

namespace headgate::simulation {

using base::BootTime;
using base::Duration;
using base::Instant;
using namespace std::chrono_literals;

// The lease with the most requests to spend, and its holder.
std::optional<World::Holder> World::LargestHolder(size_t key) {
  std::optional<Holder> largest;
  uint64_t most = 0;
  for (const StoredLease& lease : server_.Leases(Node::NameOf(key), now_)) {
    const Duration left = lease.expires_at - server_.Wall(now_);
    // If the clock was set back, the lease has more time left than it was granted.
    if (lease.granted - lease.reported <= most || left <= 0s || left > plan_.tiny_ttl) continue;
    for (uint32_t i = 0; i < plan_.nodes(); ++i) {
      const Machine& machine = MachineOf(i);
      const Node* const node = NodeAt(i);
      if (node == nullptr || node->id() != lease.node || now_ < machine.paused_until) continue;
      const std::optional<BootTime> deadline = node->DeadlineOf(key, lease.number);
      if (!deadline) continue;
      most = lease.granted - lease.reported;
      largest = Holder{
          .node = i, .last_instant = TrueAt(machine, *deadline - Duration(1)), .end = now_ + left};
    }
  }
  return largest;
}

std::optional<World::Holder> World::Stampede(size_t key) {
  if (calm()) return std::nullopt;
  const std::optional<Holder> holder = LargestHolder(key);
  const Duration end =
      holder ? holder->end : now_ + Duration(static_cast<int64_t>(random_.Below(2'000'000'000)));
  keys_[key].quiet_until = std::max(keys_[key].quiet_until, end);
  Schedule(end, [this, key] { AskForEverything(key); });
  if (!holder) return holder;
  Note("nobody asks for k" + std::to_string(key) + " until a lease of node " +
       std::to_string(holder->node) + " ends");
  coverage_.Mark("all asked when a lease had been spent at its last instant");
  Machine& machine = MachineOf(holder->node);
  // Scheduled first, so the node gets the request before it handles the events that it missed.
  Schedule(holder->last_instant,
           [this, key, index = holder->node, incarnation = machine.incarnation] {
             if (NodeAt(index) != nullptr && MachineOf(index).incarnation == incarnation)
               SpendAll(index, key);
           });
  SetPaused(machine, holder->last_instant);
  machine.cut_until = std::max(machine.cut_until, std::min(holder->end, plan_.calm_from));
  return holder;
}

void World::SpendAll(uint32_t index, size_t key) {
  Node& node = *NodeAt(index);
  const uint64_t part = std::max<uint64_t>(1, node.held(key) / 8);
  for (int i = 0; i < 16 && node.held(key) > 0; ++i)
    Request(node, key, std::min(part, node.held(key)));
}

void World::AskForEverything(size_t key) {
  const uint64_t capacity =
      (machines_[0].switched[key] ? keys_[key].changed : keys_[key].limit)->limit.capacity();
  const uint64_t part = std::max<uint64_t>(1, capacity / (8 * uint64_t{plan_.nodes()}));
  for (int round = 0; round < 12; ++round) {
    for (uint32_t i = 0; i < plan_.nodes(); ++i) {
      OnNode(i, now_, [this, key, cost = round < 9 ? part : 1](Node& node) {
        if (now_ < plan_.measured_from) Request(node, key, cost);
      });
    }
  }
}

}  // namespace headgate::simulation
