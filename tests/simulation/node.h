// One node of a simulated fleet: the book that production runs, and around it the least of what the Fleet does: it asks
// the store exactly where the book says so, with a deadline for every call; a call without an answer counts as done.
//
// A ledger beside the book keeps its own account of every lease, from what was sent and received alone: nothing is
// spent that was not granted, nor after its deadline, nor twice, and every report says what was spent.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "headgate/base/clock.h"
#include "headgate/limiter/lease_book.h"
#include "headgate/store/redis/bucket_call.h"
#include "tests/simulation/coverage.h"
#include "tests/simulation/faults.h"
#include "tests/simulation/plan.h"

namespace headgate::simulation {

class Node;

// What a node needs of the world.
class NodeHost {
 public:
  virtual ~NodeHost() = default;
  // A call, which may not arrive, or twice.
  struct Sent {
    uint64_t call;
    size_t key;
    uint64_t takes;  // 0: it asks for a lease, or
    uint64_t gives;  // is a refund
    bool fresh;      // the node has not seen the store's epoch change
  };
  virtual void Send(Node& node, const Sent& sent, const store::redis::BucketCall& content) = 0;
  // Calls OnTimeout or OnWake at this time of the node's clock, or OnRequest.
  enum class Timer : uint8_t { kTimeout, kWake, kRequest };
  virtual void At(Node& node, Timer timer, uint64_t what, base::BootTime at) = 0;
  virtual void Admit(Node& node, size_t key, uint64_t cost) = 0;
  // The store let it through, and the answer is here.
  virtual void Allowed(Node& node, size_t key, uint64_t cost) = 0;
  virtual void TakeBack(Node& node, size_t key, uint64_t cost) = 0;
  virtual void Fail(const std::string& what) = 0;
  virtual bool tracing() const = 0;
  virtual void Say(Node& node, const std::string& what) = 0;
};

struct NodeStart {
  uint32_t index;
  uint64_t id;
  // Which history the store has, as far as this node knows; null: not connected.
  std::optional<uint64_t> epoch;
};

class Node {
 public:
  Node(NodeHost& host, const Plan& plan, std::optional<Mutant> mutant, Coverage& coverage, const NodeStart& start,
       std::vector<store::LimitHandle> limits);
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  uint32_t index() const { return index_; }
  uint64_t id() const { return options_.node; }
  bool connected() const { return epoch_.has_value(); }
  uint64_t leased(size_t key) const { return keys_[key].leased; }
  bool holds_leases() const;
  // Of a lease it was granted, as its ledger has it.
  uint64_t Unspent(size_t key, uint64_t number) const {
    const auto account = keys_[key].ledger.find(number);
    return account != keys_[key].ledger.end() ? account->second.granted - account->second.spent : 0;
  }
  // What it may spend of this key from leases, if it still lives then.
  uint64_t held(size_t key) const;
  // Of a lease that can be spent from.
  std::optional<base::BootTime> DeadlineOf(size_t key, uint64_t number) const;

  static std::string NameOf(size_t key);
  static base::Hash128 HashOf(size_t key) { return {key * 0x9E3779B97F4A7C15u + 1, key + 1}; }

  void OnRequest(size_t key, uint64_t cost, base::BootTime now);
  // As the Fleet does for a request that several limits decide together, where another one denies: what was taken from
  // a lease goes back into it, as far as the store does not know of it; the rest is refunded.
  void OnGiveBack(size_t key, uint64_t cost, base::BootTime now);
  void OnRefund(size_t key, uint64_t cost, base::BootTime now) {
    SendExact(key, store::Operation::kRefund, cost, cost, now);
  }
  void OnReply(uint64_t call, const wire::RespValue& reply, base::BootTime now);
  void OnTimeout(uint64_t call, base::BootTime now);
  void OnWake(base::BootTime now);
  void OnDisconnected() { epoch_.reset(); }
  void OnConnected(uint64_t epoch, base::BootTime now);
  void OnLimit(size_t key, store::LimitHandle limit) { keys_[key].limit = std::move(limit); }

 private:
  struct Call {
    size_t key;
    uint64_t cost;
    uint64_t number;  // of the ask; 0: an exact one
    uint64_t want;
    base::BootTime asked_at;
    store::LimitHandle limit;
    store::redis::BucketCall content;
    bool fresh;
    bool refund = false;
    uint64_t undoes = 0;  // by a refund: what it should give back
    bool timed_out = false;
  };
  // The ledger's account of one lease.
  struct Account {
    base::BootTime asked_at;
    base::BootTime deadline{0};
    uint64_t granted = 0;
    uint64_t spent = 0;
    uint64_t reported = 0;
    bool over = false;  // returned, failed or refused
  };
  struct Key {
    store::LimitHandle limit;
    std::map<uint64_t, Account> ledger;
    uint64_t leased = 0;                    // requests let through from leases
    std::map<uint64_t, uint64_t> awaiting;  // what requests cost that await a lease, by the number of its ask
    // What mutants do.
    uint64_t pot = 0;
    base::BootTime pot_until{0};
    bool denied_for_ever = false;
    bool asked = false;
    std::map<uint64_t, uint64_t> reported;
  };

  void Follow(size_t key, uint64_t cost, const limiter::LeaseVerdict& verdict, base::BootTime now);
  // A refund `undoes` so much of what was let through.
  void SendExact(size_t key, store::Operation operation, uint64_t cost, uint64_t undoes, base::BootTime now);
  void SendAsk(size_t key, const limiter::LeaseAction& action, base::BootTime now);
  void Send(uint64_t id, base::BootTime now);
  store::redis::CallContext Context(base::BootTime now) const;
  store::SharedRequest RequestOf(size_t key, std::string_view name, const store::LimitHandle& limit) const;
  void Answer(Call& call, store::SharedAnswer answer, base::BootTime now);
  void Granted(size_t key, uint64_t number, const store::SharedAnswer& answer, base::BootTime now);
  void Wake();
  void Wrong(const std::string& what) {
    if (plan_.ledger) host_.Fail(what);
  }
  void CheckSpent(size_t key, uint64_t cost, base::BootTime now);
  void CheckGivenBack(size_t key, uint64_t given);
  void CheckReports(size_t key, const store::LeaseAsk& ask, base::BootTime now);
  void MutateAsk(Key& key, store::LeaseAsk& ask, std::vector<store::LeaseReport>& reports, base::BootTime now);
  void MutateGrant(const Call& call, store::LeaseGrant& grant, base::BootTime now);
  base::Duration Life(base::Duration ttl) const;
  bool Is(Mutant mutant) const { return mutant_ == mutant; }

  NodeHost& host_;
  const Plan& plan_;
  const std::optional<Mutant> mutant_;
  Coverage& coverage_;
  const uint32_t index_;
  limiter::LeaseBookOptions options_;
  limiter::LeaseBook book_;
  std::vector<Key> keys_;
  std::map<uint64_t, Call> calls_;
  uint64_t last_call_ = 0;
  std::optional<uint64_t> epoch_;
  bool was_connected_ = false;
  base::BootTime epoch_changed_until_{0};
  base::BootTime wake_at_{0};
};

}  // namespace headgate::simulation
