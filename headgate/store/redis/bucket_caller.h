// Sends requests about buckets to the store: each becomes a script call (bucket_call.h), which the
// client sends (client.h), and the reply becomes the answer. A bucket that has to be carried over
// to another limit takes a second call, within the time of the first.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "headgate/base/pool.h"
#include "headgate/store/redis/bucket_call.h"
#include "headgate/store/redis/client.h"
#include "headgate/store/shared_store.h"
#include "headgate/store/store_counters.h"

namespace headgate::store::redis {

class BucketCaller {
 public:
  struct Events {
    // Told each error of a script.
    std::function<void(const std::string& error)> on_error{};
    // Told whenever a request has failed because the value of its key is damaged.
    std::function<void()> on_damaged{};
  };

  // The client must outlive this.
  BucketCaller(Client& client, Events events) : client_(client), events_(std::move(events)) {}
  BucketCaller(const BucketCaller&) = delete;
  BucketCaller& operator=(const BucketCaller&) = delete;

  // As SharedStore::Ask.
  void Ask(const SharedRequest& request, const CallContext& context, SharedStore::Done done);

  // Adds to `counters` what has happened to buckets so far. From any thread.
  void AddTo(StoreCounters& counters) const;

 private:
  // A request in flight; reused.
  struct PendingRequest {
    std::optional<BucketCall> call;
    std::string memory;  // for the next call
    SharedStore::Done done;
    base::Duration timeout{0};
    base::BootTime give_up_at{0};
  };

  void Send(PendingRequest& pending);
  void OnReply(PendingRequest& pending, const PendingCall::Outcome& reply);
  void Finish(PendingRequest& pending, const SharedAnswer& answer);
  void Count(const SharedAnswer& answer);

  Client& client_;
  const Events events_;
  base::Pool<PendingRequest> pending_;
  base::Counter damaged_, clock_reset_, carried_over_, script_errors_;
};

}  // namespace headgate::store::redis
