// One node of a simulated fleet, an event loop of an instance: the SharedDecider that production
// runs, with its breaker, and the instance's leases and local store. Behind it, as its shared
// store, is the simulated network: every call has a deadline, and a call without an answer counts
// as done.
//
// The instance's Ledgers keep a separate account of every lease. For each member of a request, an
// Evidence records the calls for it and the store's answers. Each request is decided once, in the
// mode that agrees with this evidence.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headgate/base/clock.h"
#include "headgate/limiter/shared/shared_decider.h"
#include "headgate/store/breaker.h"
#include "headgate/store/memory.h"
#include "headgate/store/redis/bucket_call.h"
#include "headgate/store/redis/shard_histories.h"
#include "tests/simulation/bound.h"
#include "tests/simulation/coverage.h"
#include "tests/simulation/evidence.h"
#include "tests/simulation/faults.h"
#include "tests/simulation/instance.h"
#include "tests/simulation/ledger.h"
#include "tests/simulation/plan.h"

namespace headgate::simulation {

class Node;

// The services that a node needs from the world.
class NodeHost {
 public:
  virtual ~NodeHost() = default;
  // A call. It may be lost, or arrive twice.
  struct Sent {
    uint64_t call;
    size_t key;
    uint64_t takes;  // the requests that it takes
    uint64_t gives;  // the requests that a refund or an undo gives back
    // The number of the node's request that caused the call; for an undo, that of the request to
    // undo.
    uint64_t request;
    base::Instant taken_at{0};  // of an undo: the time of the take, as the undo states it
    bool resets;
    uint64_t number = 0;  // of the lease that the call asks for
    std::vector<store::LeaseReport> reports{};
  };
  virtual void Send(Node& node, const Sent& sent, const store::redis::BucketCall& content) = 0;
  // Calls OnTimeout, OnWake or OnRequest at this time of the node's clock.
  enum class Timer : uint8_t { kTimeout, kWake, kRequest };
  virtual void At(Node& node, Timer timer, uint64_t what, base::BootTime at) = 0;
  // The call reports a local admission of before to the store.
  virtual void OnDebt(Node& node, uint64_t call) = 0;
  // An admission from leases.
  virtual void Admit(Node& node, size_t key, uint64_t cost, uint64_t request) = 0;
  // An admission by the instance's own share of the limit.
  virtual void AdmitLocally(Node& node, size_t key, uint64_t cost,
                            base::BootTime unanswered_since) = 0;
  // A denial by the store or from memory, although the cost fits the limit.
  virtual void Denied(Node& node, size_t key, uint64_t cost, base::BootTime unanswered_since) = 0;
  // A request that asks for one key has been decided.
  virtual void Decided(Node& /*node*/, size_t /*key*/, uint64_t /*cost*/,
                       const limiter::Settled& /*settled*/) {}
  // A request was admitted, from a lease or by the store's answer.
  virtual void Allowed(Node& node, size_t key, uint64_t cost) = 0;
  // A request, or what it took, goes back into leases.
  virtual void TakeBack(Node& node, size_t key, uint64_t cost, uint64_t request) = 0;
  virtual void Fail(const std::string& what) = 0;
  virtual bool tracing() const = 0;
  virtual void Say(Node& node, const std::string& what) = 0;
};

struct NodeStart {
  uint32_t index;
  // The server to which the node is connected.
  store::redis::ServerIdentity server;
  uint32_t shard;
  // The node's clock when the world begins.
  base::BootTime boot;
};

class Node final : public store::SharedStore {
 public:
  Node(NodeHost& host, const Plan& plan, std::optional<Mutant> mutant, Coverage& coverage,
       const NodeStart& start, Instance& instance);
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  uint32_t index() const { return start_.index; }
  // For the store, all loops of an instance are one node.
  uint64_t id() const { return instance_.id(); }
  bool connected() const { return connected_; }
  bool closing() const { return closing_; }
  uint64_t leased(size_t key) const { return keys_[key].leased; }
  // Whether the instance holds leases.
  bool holds_leases() const;
  // For a lease that the instance was granted, as recorded in its ledger.
  uint64_t Unspent(size_t key, uint64_t number) const;
  uint64_t Spent(size_t key, uint64_t number) const;
  // The requests of this key that the instance may spend from leases.
  uint64_t held(size_t key) const;
  // The deadline of a lease that can be spent from.
  std::optional<base::BootTime> DeadlineOf(size_t key, uint64_t number) const;
  // The number of requests that wait for their decision.
  size_t waiting() const { return requests_.size(); }

  // The index after the last key is the gate, a limit that denies everything and has no leases.
  static std::string NameOf(size_t key);
  // Each key is in another part of the LeaseBooks; bits 32 and up of `high` select the part.
  static base::Hash128 HashOf(size_t key) {
    return {key * 0x9E3779B97F4A7C15u + 1, (key + 1) << 32 | (key + 1)};
  }

  void OnRequest(size_t key, uint64_t cost, base::BootTime now) {
    Begin({.members = OneOf(key, cost), .operation = store::Operation::kTake}, now);
  }
  // A request to all keys, decided together: a denial by one takes nothing from the others.
  void OnGroup(uint64_t cost, base::BootTime now);
  // A request decided together with the gate, so its whole cost has to go back.
  void OnGatedRequest(size_t key, uint64_t cost, base::BootTime now);
  void OnRefund(size_t key, uint64_t cost, base::BootTime now) {
    Begin({.members = OneOf(key, cost), .operation = store::Operation::kRefund}, now);
  }
  void OnReset(size_t key, base::BootTime now) {
    Begin({.members = OneOf(key, 0), .operation = store::Operation::kReset}, now);
  }
  void OnReply(uint64_t call, const wire::RespValue& reply, base::BootTime now);
  void OnTimeout(uint64_t call, base::BootTime now);
  void OnWake(base::BootTime now);
  void OnDisconnected() { connected_ = false; }
  // The connected server reports its identity, or the key's slot has moved to another shard.
  void OnServer(uint32_t shard, const store::redis::ServerIdentity& server, base::BootTime now);
  void OnConnected(uint32_t shard, const store::redis::ServerIdentity& server, base::BootTime now);
  void OnLimit(size_t key, const store::LimitHandle& limit);
  // The process is told to end: it returns what it holds, and takes no more requests.
  void OnShutdown(base::BootTime now);

  // The interface of store::SharedStore, which the SharedDecider uses.
  void Ask(const store::SharedRequest& request, Done done) override;
  base::BootTime Now() const override { return now_; }
  uint32_t instances() const override { return Is(Mutant::kShareIsWhole) ? 1 : plan_.instances; }
  store::LimitTable& limits() override { return instance_.limits(); }

 private:
  struct Call {
    size_t key;
    uint64_t request;  // the request that caused it; 0: none
    bool own = false;  // the call decides this request
    store::Operation operation = store::Operation::kTake;
    uint64_t cost = 0;    // of a decision
    uint64_t undoes = 0;  // the requests that a refund or an undo gives back
    base::Instant taken_at{0};
    uint64_t number = 0;  // of a lease; 0: the call is only a decision
    uint64_t most = 0;    // the most requests that the lease may hold
    std::vector<store::LeaseReport> reports{};
    base::BootTime asked_at;
    store::redis::BucketCall content;
    Done done;
    store::Breaker::Pass pass = store::Breaker::Pass::kRefused;
    bool timed_out = false;
  };
  struct Member {
    size_t key;
    uint64_t cost;
    bool counts_denied = false;  // by its limit on arrival
    Evidence evidence{};
  };
  struct Request {
    std::vector<Member> members;
    store::Operation operation;
    base::Instant at{0};  // by the wall clock of its machine
    std::unique_ptr<limiter::Pending> pending{};

    bool in_group() const { return members.size() > 1; }
  };
  struct Key {
    store::LimitHandle limit;
    uint64_t leased = 0;      // requests admitted from leases
    int64_t unaccounted = 0;  // spent from leases in this turn, less refunds
    // State of mutants.
    uint64_t pot = 0;
    base::BootTime pot_until{0};
    bool denied_for_ever = false;
    bool asked = false;
    std::map<uint64_t, uint64_t> reported{};
  };
  // The handling of one event: a request, an answer, or the passing of time.
  struct Turn {
    Request* request = nullptr;  // the request that is handled
    uint64_t id = 0;
    bool first = false;  // it has just arrived
    bool asked_lease = false;
  };

  static std::vector<Member> OneOf(size_t key, uint64_t cost) {
    return {Member{.key = key, .cost = cost}};
  }
  void Begin(Request request, base::BootTime now);
  bool Take(Request& request, std::span<limiter::Settled> settled);
  void Resume(uint64_t id);
  void EndTurn(size_t key);
  void AccountAll(const Request& request);
  void Account(size_t key);
  // Tells the decision of a request that had to wait.
  void TellWaiting(uint64_t id, std::span<limiter::Settled> settled);
  void Tell(const Request& request, std::span<limiter::Settled> settled);
  void TellGroup(const Request& request, std::span<const limiter::Settled> settled);
  void CheckHonest(const Request& request, std::span<const limiter::Settled> settled);
  void OnLocal(const store::TakeRequest& request, const algorithm::Decision& decision,
               base::Instant at);

  size_t KeyOf(std::string_view name) const;
  static Evidence* EvidenceOf(Request& request, size_t key);
  rule::OnStoreFailure PolicyOf(size_t key) const;
  rule::Sharing SharingOf(size_t key) const;
  bool IsGate(size_t key) const { return key + 1 == keys_.size(); }
  store::Breaker::Pass MayAsk(bool learns);
  void FinishPass(Call& call, store::Breaker::Outcome outcome);
  void AnswerHere(size_t key, const store::SharedRequest& request,
                  const store::SharedAnswer& answer, const Done& done);
  void AskDecision(size_t key, const store::SharedRequest& request, Done done);
  void AskLease(size_t key, const store::SharedRequest& request, Done done);
  void Send(uint64_t id);
  void SendContent(uint64_t id, const Call& call);
  void Complete(Call& call, const store::SharedAnswer& answer);
  void NoteAnswer(const Call& call, const store::SharedAnswer& answer);
  void MarkAnswer(const Call& call, const store::SharedAnswer& answer);
  void OnGrant(Call& call, store::LeaseGrant& grant);
  store::redis::CallContext Context() const { return {.lease_ttl_most = plan_.tiny_ttl}; }
  void Compare(size_t key);
  // Called at the end of a turn, because it may have changed leases that another loop waits for.
  void WakeAll() { instance_.WakeLoops(); }
  void Wake();
  base::Instant Wall() const { return plan_.start + (now_ - start_.boot); }
  void Wrong(const std::string& what) {
    if (plan_.ledger) host_.Fail(what);
  }

  // Behaviour of mutants: planted.cc.
  bool Is(Mutant mutant) const { return mutant_ == mutant; }
  bool SpendPot(size_t key, uint64_t cost);
  void MutateAsk(size_t key, store::LeaseAsk& ask, std::vector<store::LeaseReport>& reports);
  void MutateGrant(const Call& call, store::LeaseGrant& grant);
  void RefundOnceMore(size_t key, uint64_t cost);
  // Whether the call is kept for a late answer.
  bool MutateFailure(const Call& call, store::SharedAnswer& answer);
  void OnLate(const Call& call, const store::SharedAnswer& answer);
  Call* AnotherCall(const Call& call);

  NodeHost& host_;
  const Plan& plan_;
  const std::optional<Mutant> mutant_;
  Coverage& coverage_;
  const NodeStart start_;
  base::BootTime now_{0};
  Instance& instance_;
  WatchedStore local_;
  store::Breaker breaker_;
  limiter::shared::SharedDecider fleet_;
  std::vector<Key> keys_;
  std::map<uint64_t, Call> calls_;
  uint64_t last_call_ = 0;
  std::map<uint64_t, Request> requests_;  // not yet decided
  uint64_t last_request_ = 0;
  std::vector<uint64_t> ready_;
  Turn turn_;
  base::BootTime answered_at_{0};  // when the store last answered
  bool connected_ = true;
  uint32_t shard_;  // the shard of all keys
  store::redis::ShardHistories histories_{plan_.ttl};
  base::BootTime wake_at_{0};
  bool closing_ = false;
};

}  // namespace headgate::simulation
