// Values with versions in DynamoDB, for the compare-and-set store: one object per event loop.
//
//   Get   GetItem, strongly consistent
//   Put   UpdateItem, or DeleteItem, under the condition that the version is the expected one
//
// A breaker keeps calls from a service that does not answer. Throttled calls are answered, so they
// leave it closed; the compare-and-set store repeats them after a pause that grows.
//
// The store is usable once DynamoDB has carried out a call. Until then, a call every second finds
// out the problem: a missing table, a missing right, no credentials.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "headgate/base/random.h"
#include "headgate/net/event_loop.h"
#include "headgate/store/breaker.h"
#include "headgate/store/cas/versioned_store.h"
#include "headgate/store/dynamodb/table_client.h"
#include "headgate/store/store_counters.h"

namespace headgate::store::dynamodb {

struct StateStoreOptions {
  BreakerOptions breaker{};
  uint64_t seed = 0;  // for jitter and versions: differs between processes and event loops
  // The pause between two attempts to use the store for the first time.
  base::Duration check_pause = std::chrono::seconds(1);
  // DynamoDB's time, if it is known and this machine's clock is too far away from it.
  std::function<std::optional<base::Instant>()> time{};
  std::function<void(bool open)> on_breaker{};
  // Called when DynamoDB and its credentials become usable (OK) or unusable; once for each change.
  std::function<void(const absl::Status& state)> on_usable{};
};

class StateStore final : public cas::VersionedStore {
 public:
  // All must outlive the store. The client must not call back once the store is destroyed.
  StateStore(TableClient& client, net::EventLoop& loop, StateStoreOptions options,
             LoopStoreCounters& counters);

  void Get(std::string_view name, base::BootTime deadline, GetDone done) override;
  void Put(const cas::PutRequest& request, PutDone done) override;

  std::optional<base::Instant> TimeAt(base::BootTime /*now*/) const override {
    return options_.time ? options_.time() : std::nullopt;
  }

  // Asks DynamoDB for an item, to find out whether it can be used. Call it once, to begin.
  void Check();
  // There is a connection: a breaker that is open may try again.
  void OnConnected();

 private:
  using Status = absl::Status;

  void Call(std::string_view action, std::string body, base::BootTime deadline,
            TableClient::Done done);
  void Finish(Breaker::Pass pass, base::BootTime sent, const Status& outcome, bool answered);
  void Count(const Status& outcome, bool answered, base::Duration took);
  void NoteUsable(const Status& outcome, bool answered);
  void TellBreaker(Breaker::Pass pass, const Status& outcome, bool answered);
  void Probe();

  TableClient& client_;
  net::EventLoop& loop_;
  const StateStoreOptions options_;
  LoopStoreCounters& counters_;
  Breaker breaker_;
  base::Random random_;
  bool was_usable_ = false;
  Status usable_ = absl::UnknownError("");  // nothing is known yet
  net::Timer probe_timer_;
  net::Timer check_timer_;
};

}  // namespace headgate::store::dynamodb
