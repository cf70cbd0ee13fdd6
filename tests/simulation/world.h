// A fleet, its store and the network between them, in virtual time. A seed determines the whole
// run.
//
// Faults come first, as the plan says. Then the calm phase begins without faults, and the fleet has
// to do its work. At the end nobody asks any more, and all leases have to be returned. Checked at
// every event: the bound of each limit over the whole fleet, each node's ledger, and each bucket
// that the store writes.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "headgate/base/random.h"
#include "tests/simulation/bound.h"
#include "tests/simulation/coverage.h"
#include "tests/simulation/faults.h"
#include "tests/simulation/lockout.h"
#include "tests/simulation/node.h"
#include "tests/simulation/plan.h"
#include "tests/simulation/server.h"
#include "tests/simulation/terms.h"
#include "tests/simulation/yardstick.h"

namespace headgate::simulation {

struct Outcome {
  std::string failure;  // empty: all checks passed
  uint64_t digest = 0;  // of all events
  uint64_t calls = 0;   // to the store
  uint64_t admitted = 0;
  uint64_t leased = 0;  // part of `admitted`: from leases, without a call
  uint64_t local = 0;   // in addition, by instances that could not reach the store
  uint64_t denied = 0;
  size_t holders_most = 0;  // the most nodes that held leases of one bucket at a time
};

class World final : public NodeHost {
 public:
  // `trace`: prints the events.
  World(const Plan& plan, std::optional<Mutant> mutant, redis_host::ScriptHost& scripts,
        Coverage& coverage, bool trace);

  Outcome Run();

  void Send(Node& node, const Sent& sent, const store::redis::BucketCall& content) override;
  void At(Node& node, Timer timer, uint64_t what, base::BootTime at) override;
  void OnDebt(Node& node, uint64_t call) override;
  void Admit(Node& node, size_t key, uint64_t cost, uint64_t request) override;
  void AdmitLocally(Node& node, size_t key, uint64_t cost,
                    base::BootTime unanswered_since) override;
  void Denied(Node& node, size_t key, uint64_t cost, base::BootTime unanswered_since) override;
  void Allowed(Node& node, size_t key, uint64_t cost) override;
  void TakeBack(Node& node, size_t key, uint64_t cost, uint64_t request) override;
  void Fail(const std::string& what) override;
  bool tracing() const override { return trace_; }
  void Say(Node& node, const std::string& what) override;

 private:
  struct Event {
    base::Duration at;
    uint64_t order;
    std::function<void()> happen;
  };
  // A machine with one instance: the state that survives a restart of the process.
  struct Machine {
    std::unique_ptr<Instance> instance;
    std::vector<std::unique_ptr<Node>> nodes;  // by loop; empty: not running
    uint64_t incarnation = 0;
    int64_t drift_ppm = 0;
    base::Duration boot{0};  // its clock when the world begins
    base::Duration paused_until{0};
    base::Duration cut_until{0};   // from the store
    bool aside = false;            // talks to the old server
    base::Duration paused_for{0};  // in total, for a clock that stops
    std::vector<bool> switched{};  // by key: it has the changed limit
    // By key, during the measurement.
    std::vector<uint64_t> admitted{};
    std::vector<uint64_t> admitted_exactly{};  // by the yardstick
    std::vector<uint64_t> calls{};
    std::vector<int64_t> budget_even_at{};  // by key: limiter::lease::AskBudget
  };
  // The demand for one node.
  struct Demand {
    std::vector<uint64_t> weight{};     // by key
    std::vector<bool> on{};             // by key: now in a burst
    std::vector<uint64_t> leased_at{};  // by key, when the measurement began
  };
  struct Key {
    store::LimitHandle limit;
    store::LimitHandle changed{};
    Bound bound;  // admissions by the store and from leases
    Bound total;  // and by instances that could not reach the store
    Lockout lockout;
    base::Duration quiet_until{0};     // until then nobody asks for it
    base::Duration change_noticed{0};  // by all instances
    bool change_over = false;          // the changed limit holds alone
    // During the measurement.
    std::optional<Yardstick> exact{};
    uint64_t admitted = 0;
    base::Duration span{0};
  };
  // When a request took; empty if it took nothing. A call that arrives twice may take twice: then
  // the take at `wall`, or the last.
  std::optional<Bound::Taken> TakenBy(const std::array<uint64_t, 4>& taker,
                                      base::Instant wall) const;
  struct Message {
    uint32_t node;
    uint64_t node_id;
    uint64_t incarnation;
    bool aside;           // goes to the old server
    uint64_t generation;  // of the connection
    Sent sent;
    std::string_view script;
    std::vector<std::string> parts;
  };

  // The holder of a lease.
  struct Holder {
    uint32_t node;
    base::Duration last_instant;  // in true time, like its end at the store
    base::Duration end;
  };

  void Schedule(base::Duration at, std::function<void()> happen);
  // Runs `happen` when the machine is not paused, and only if it has not restarted since.
  void OnNode(uint32_t index, uint64_t incarnation, base::Duration at,
              std::function<void(Node&)> happen);
  void OnNode(uint32_t index, base::Duration at, std::function<void(Node&)> happen) {
    OnNode(index, MachineOf(index).incarnation, at, std::move(happen));
  }
  void Start(uint32_t machine);
  Machine& MachineOf(uint32_t node) { return machines_[node / plan_.loops]; }
  const Machine& MachineOf(uint32_t node) const { return machines_[node / plan_.loops]; }
  // Null while its instance does not run.
  Node* NodeAt(uint32_t index) const;
  uint64_t WeightOf(uint32_t node, size_t key) const;
  void ScheduleFaults();
  void ScheduleChange(size_t key);
  void Switch(uint32_t machine, size_t key);
  void FinishChange(size_t key, base::Duration at);
  base::Duration SettledAfterChange() const;
  std::optional<base::Duration> MustWaitForChange(size_t key);
  void NextRequest(uint32_t index, size_t key);
  base::Duration UntilNextBeat(uint32_t index, base::Duration period, base::Duration gap) const;
  void RequestNow(uint32_t index, size_t key);
  void Request(Node& node, size_t key, uint64_t cost);
  bool IsGate(const Sent& sent) const { return sent.key == keys_.size(); }
  void BeginDemand();
  void NextBurst(uint32_t index, size_t key);
  bool IsAnyQuiet() const;
  void ShutDownAll();
  std::optional<Holder> LargestHolder(size_t key);
  std::optional<Holder> Stampede(size_t key);
  void SpendAll(uint32_t index, size_t key);
  void AskForEverything(size_t key);
  void Arrive(const Message& message);
  void WatchLeases(const Message& message, const std::vector<StoredLease>& before);
  void CountAtStore(const Message& message, Server& server, bool allowed);
  void Reply(const Message& message, const wire::RespValue& reply);
  void Crash(uint32_t machine);
  void StartLater(uint32_t machine);
  void ShutDown(uint32_t machine);
  void Reset();
  void Pause(uint32_t machine);
  void SetPaused(Machine& machine, base::Duration until);
  void Cut(uint32_t machine);
  // The parameters of a fault's term.
  struct Quantity {
    uint64_t tokens = 0;
    base::Duration time{0};
  };
  void Allow(Fault fault, size_t key, const Quantity& quantity);
  void LoseEnd(Fault fault, const std::function<void()>& become);
  void FailOver();
  void Restart(bool from_file);
  void ContinueHistory(Fault fault);
  void Sleep();
  void Reconnect(uint32_t machine);
  void Partition();
  void EndPartition();
  bool IsGone(const Message& message) const;
  bool IsDebt(const Message& message) const {
    return debts_.contains({message.node, message.incarnation, message.sent.call});
  }
  void Flush();
  void StepClock(base::Duration by);
  void Replicate();
  void ScheduleMeasurement(size_t key);
  void BeginMeasurement(size_t key, base::Duration until);
  void EndMeasurement(size_t key);
  bool IsOverspent(const Machine& machine, size_t key);
  void CheckShares(size_t key);
  void CheckCalls(size_t key);
  uint64_t Held(size_t key) const;
  uint64_t Unspent(size_t key);
  uint64_t KeptMax(const algorithm::LimitSpec& spec, base::Duration pace) const;
  uint64_t DueIn(size_t key, base::Duration time) const;
  void CheckReturned();

  const store::LimitHandle& LimitAfter(size_t key) const {
    return plan_.keys[key].changed ? keys_[key].changed : keys_[key].limit;
  }
  static bool IsFirstHit(const algorithm::Limit& limit) {
    return limit.spec().align == algorithm::Align::kFirstHit;
  }
  bool calm() const { return now_ >= plan_.calm_from; }
  base::Duration Delay();
  base::Duration AnyTime();
  base::Duration Below(base::Duration most);
  base::BootTime BootAt(const Machine& machine, base::Duration at) const;
  base::Duration TrueAt(const Machine& machine, base::BootTime at) const;
  base::Duration Forgotten(size_t key) const;
  base::Duration WindowEnd(size_t key) const;
  void Digest(uint64_t value);
  void Note(const std::string& what);

  Plan plan_;
  const std::optional<Mutant> mutant_;
  Coverage& coverage_;
  const bool trace_;
  base::Random random_;
  store::LimitTable limits_;
  Server server_;
  std::vector<Machine> machines_;
  std::vector<Demand> demands_;    // by node
  std::vector<uint64_t> weights_;  // the sum over all nodes, by key: during faults; in the calm
  std::vector<uint64_t> weights_calm_;
  std::vector<Key> keys_;
  std::vector<Event> events_;  // a heap
  uint64_t last_order_ = 0;
  base::Duration now_{0};
  uint64_t generation_ = 0;  // of connections
  // The old server, while it still answers.
  std::optional<Server> old_server_;
  uint64_t partitions_ = 0;
  // Calls that report local admissions to the store: by node, incarnation and number.
  std::set<std::array<uint64_t, 3>> debts_;
  // When requests took, by node, its incarnation, the request and the key.
  std::map<std::array<uint64_t, 4>, std::vector<Bound::Taken>> taken_;
  Outcome outcome_;
};

}  // namespace headgate::simulation
