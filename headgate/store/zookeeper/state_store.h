// Values with versions in ZooKeeper, for the compare-and-set store: one object per event loop, over
// one session.
//
//   Get   sync and getData, sent together: one round trip
//   Put   create, setData with a version, or delete with a version
//
// A follower of an ensemble may lag behind, so each read is preceded by a sync (client.h states the
// limits of a sync; README.md, their consequences here). Writes are decided by a majority.
//
// Each call ends at its deadline, whatever the C client does with it afterwards. A breaker keeps
// calls from an ensemble that does not answer.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "headgate/client/zookeeper/client.h"
#include "headgate/net/event_loop.h"
#include "headgate/store/breaker.h"
#include "headgate/store/cas/versioned_store.h"
#include "headgate/store/store_counters.h"
#include "headgate/store/zookeeper/state_nodes.h"

namespace headgate::store::zookeeper {

struct StateStoreOptions {
  std::string root = "/rate-limiter";  // the path of a node; missing nodes are made
  // Calls that the C client has; further ones fail at once. Raise it with the latency.
  uint32_t in_flight_max = 1024;
  BreakerOptions breaker{};
  uint64_t seed = 0;  // for jitter
  // A node is replaced by a new one when its version gets here: otherwise versions would wrap
  // around, and ZooKeeper takes the version -1 for any version.
  int32_t version_max = int32_t{1} << 30;
  cas::KeyLocks* locks = nullptr;  // must outlive the store
  // The leader's time, if it is known and this machine's clock is too far away from it.
  std::function<std::optional<base::Instant>()> time{};
  std::function<void(bool open)> on_breaker{};
  std::function<void(const std::string& error)> on_alarm{};
  // A call succeeded for the first time, or was refused before one has.
  std::function<void(const absl::Status& state)> on_usability{};
};

class StateStore final : public cas::VersionedStore {
 public:
  // All must outlive the store. The client must not call back once the store is destroyed.
  StateStore(client::zookeeper::Client& client, net::EventLoop& loop, StateStoreOptions options,
             LoopStoreCounters& counters);

  void Get(std::string_view name, base::BootTime deadline, GetDone done) override;
  void Put(const cas::PutRequest& request, PutDone done) override;

  std::optional<base::Instant> TimeAt(base::BootTime /*now*/) const override {
    return options_.time ? options_.time() : std::nullopt;
  }
  cas::KeyLocks* locks() override { return options_.locks; }

  // There is a connection: a breaker that is open may try again.
  void OnConnected();

 private:
  using Status = absl::Status;
  struct Call {
    Breaker::Pass pass;
    base::BootTime sent;
    base::BootTime deadline;
    std::function<void(const Status& why)> fail;
  };

  // Returns the call's number, or why it must not be sent. `fail` is called at the deadline.
  absl::StatusOr<uint64_t> Begin(base::BootTime deadline,
                                 std::function<void(const Status& why)> fail);
  // Call it when the client has answered. Returns false if the deadline was over.
  bool End(uint64_t number, const Status& outcome);
  void Make(uint64_t number, const std::string& path, std::shared_ptr<const std::string> bytes,
            bool may_make_shard, PutDone done);
  void Set(uint64_t number, const std::string& path, std::string_view bytes, cas::Version expected,
           PutDone done);
  void Renew(uint64_t number, const std::string& path, std::string_view bytes,
             cas::Version expected, PutDone done);
  void Delete(uint64_t number, const std::string& path, cas::Version expected, PutDone done);

  void OnDeadline();
  void SetTimer();
  void Finish(Breaker::Pass pass, const Status& outcome);
  void Count(const Status& outcome, base::Duration took);
  void Probe();
  void Alarm(const std::string& error);

  client::zookeeper::Client& client_;
  net::EventLoop& loop_;
  const StateStoreOptions options_;
  const StateNodes nodes_;
  LoopStoreCounters& counters_;
  Breaker breaker_;
  uint64_t last_number_ = 0;
  bool denied_ = false;     // an alarm has said so
  bool was_used_ = false;   // a call has succeeded
  uint32_t in_flight_ = 0;  // at the C client, including ones that have timed out
  std::map<uint64_t, Call> calls_;
  std::set<std::pair<base::BootTime, uint64_t>> deadlines_;
  net::Timer deadline_timer_;
  net::Timer probe_timer_;
};

}  // namespace headgate::store::zookeeper
