// One process of a simulated fleet, with one event loop: the SharedDecider, the leases and the
// compare-and-set store of production. Its connection to the service is simulated by the world.
// Each request to the store is recorded as an Operation. The rounds in which an operation took part
// are known too: the exchange fills in the answers of a round before it writes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headgate/base/clock.h"
#include "headgate/limiter/lease/lease_books.h"
#include "headgate/limiter/shared/outage.h"
#include "headgate/limiter/shared/shared_decider.h"
#include "headgate/store/cas/key_owner.h"
#include "headgate/store/memory.h"
#include "tests/strict_simulation/mutants.h"
#include "tests/strict_simulation/plan.h"

namespace headgate::strict_simulation {

class Instance;

// A request of an instance to its store, about a bucket.
struct Operation {
  size_t key = 0;
  store::Operation operation = store::Operation::kTake;
  uint64_t cost = 0;
  bool lease = false;
  base::Duration called{0};
  std::optional<base::Duration> returned{};  // empty: its instance has died
  absl::StatusCode code = absl::StatusCode::kUnknown;
  algorithm::Decision decision{};
  // If no write answered it: the state that was read, and the time of the decision.
  size_t read = 0;
  base::Instant read_at{0};
  std::vector<uint64_t> puts{};  // the writes of rounds in which it took part
};

// A write of a round.
struct Put {
  size_t key = 0;
  base::Instant at{0};        // the time of its decisions
  base::Duration decided{0};  // the same in true time
  std::vector<size_t> members{};
};

// The answer to a client.
struct Told {
  size_t key = 0;
  uint64_t cost = 0;
  base::Duration called{0};
  base::Duration told{0};
  limiter::Settled settled;
  std::vector<size_t> operations{};
};

// The services that an instance needs from the world.
class InstanceHost {
 public:
  virtual ~InstanceHost() = default;
  virtual base::Duration now() const = 0;
  virtual const base::Clock& clock() const = 0;
  // A call to the service; `number` identifies a write, and is the same if it is repeated.
  using Connection = store::cas::VersionedStore;
  virtual void Get(Instance& instance, size_t key, base::BootTime deadline,
                   Connection::GetDone done) = 0;
  virtual void Put(Instance& instance, size_t key, uint64_t number,
                   const store::cas::PutRequest& request, Connection::PutDone done) = 0;
  virtual std::vector<Operation>& operations() = 0;
  virtual std::vector<strict_simulation::Put>& puts() = 0;
  virtual void Tell(const Told& told) = 0;
};

class Instance final : public store::SharedStore, private store::cas::VersionedStore {
 public:
  Instance(InstanceHost& host, const Plan& plan, std::optional<Mutant> mutant, uint32_t index,
           uint64_t id, base::Duration ahead);

  uint32_t index() const { return index_; }

  // A request of a client.
  void Request(size_t key, store::Operation operation, uint64_t cost);
  void OnTime();
  // Called after each event. Returns when OnTime has to be called.
  base::BootTime EndTurn();
  void StepWall(base::Duration by) { wall_.ahead += by; }
  void Discipline() { decisions_.Discipline(); }
  // Its store has read this state, or written it.
  void OnState(size_t key, size_t state) { keys_[key].state = state; }

  const store::cas::CasCounters& counters() const { return owner_.counters(); }
  // The number of requests that wait for the store.
  size_t waits() const { return waiting_.size(); }
  static std::string NameOf(size_t key) { return "k" + std::to_string(key); }

  // store::SharedStore, for the SharedDecider.
  void Ask(const store::SharedRequest& request, Done done) override;
  base::BootTime Now() const override { return wall_.BootNow(); }
  uint32_t instances() const override { return plan_.instances; }
  store::LimitTable& limits() override { return local_.limits(); }

 private:
  // Its wall clock may be wrong, and may be set.
  struct Wall final : base::Clock {
    Wall(const base::Clock& true_clock, base::Duration how_far)
        : clock(true_clock), ahead(how_far) {}
    base::BootTime BootNow() const override { return clock.BootNow(); }
    base::WallTime WallNow() const override { return clock.WallNow() + ahead; }
    const base::Clock& clock;
    base::Duration ahead;
  };
  struct Key {
    store::LimitHandle limit;
    // The last write, until there is another one.
    uint64_t put = 0;
    std::string bytes{};
    size_t state = 0;  // the last state that the store has read or written
  };
  struct Client {
    size_t key;
    store::Operation operation;
    uint64_t cost;
    base::Duration called;
    base::Instant at;
    std::vector<size_t> operations{};
    std::unique_ptr<limiter::Pending> pending{};
  };

  // store::cas::VersionedStore, for the compare-and-set store.
  void Get(std::string_view name, base::BootTime deadline, GetDone done) override;
  void Put(const store::cas::PutRequest& request, PutDone done) override;

  bool Take(Client& client, limiter::Settled& settled);
  void Settle(Client& client, const limiter::Settled& settled);
  static size_t KeyOf(std::string_view name) { return static_cast<size_t>(name[1] - '0'); }

  InstanceHost& host_;
  const Plan& plan_;
  const std::optional<Mutant> mutant_;
  const uint32_t index_;
  Wall wall_;
  base::DisciplinedClock decisions_;
  store::MemoryStore local_;
  limiter::lease::LeaseBooks leases_;
  limiter::shared::SharedRests rests_;
  store::cas::KeyOwner owner_;
  limiter::shared::SharedDecider decider_;
  std::vector<Key> keys_;
  // Not yet answered, by their number in host_.operations().
  std::map<size_t, const store::cas::WaitingRequest*> waiting_;
  std::map<uint64_t, Client> clients_;  // that wait
  uint64_t last_client_ = 0;
  Client* asking_ = nullptr;
  std::vector<uint64_t> ready_;
  bool asked_ = false;
};

}  // namespace headgate::strict_simulation
