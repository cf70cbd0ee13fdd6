// The shared store in Redis or Valkey: a pending becomes the call of a script (bucket_call.h), the
// client carries it (client.h), and what comes back becomes the answer.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "headgate/base/counter.h"
#include "headgate/base/pool.h"
#include "headgate/store/redis/bucket_call.h"
#include "headgate/store/redis/client.h"
#include "headgate/store/redis/heartbeat.h"
#include "headgate/store/shared_store.h"

namespace headgate::store::redis {

// What happened to buckets, so far.
struct BucketEvents {
  uint64_t replaced_corrupt = 0;
  uint64_t clock_resets = 0;
  uint64_t carried_over = 0;
  uint64_t script_errors =
      0;  // the script ended with an error: a missing right, or a fault of ours

  BucketEvents& operator+=(const BucketEvents& other) {
    replaced_corrupt += other.replaced_corrupt;
    clock_resets += other.clock_resets;
    carried_over += other.carried_over;
    script_errors += other.script_errors;
    return *this;
  }
};

class RedisStore final : public SharedStore {
 public:
  struct Options {
    // Set: decides by this instant instead of the server's clock, as scenarios in virtual time do.
    const base::Instant* virtual_now = nullptr;
    // Counts the instances; may be of another loop. Null: there is but this one.
    const Heartbeat* heartbeat = nullptr;
    // How many there are, whatever is counted; 0: as counted.
    uint32_t instances = 0;
    // Somebody should hear of a script that failed.
    std::function<void(const std::string& error)> on_script_error{};
  };

  // All of it must outlive the store.
  RedisStore(Client& client, LimitTable& limits, const Options& options)
      : client_(client), limits_(limits), options_(options) {}
  RedisStore(const RedisStore&) = delete;
  RedisStore& operator=(const RedisStore&) = delete;

  void Ask(const SharedRequest& request, Done done) override;
  base::BootTime Now() const override { return client_.loop().Now(); }
  uint32_t instances() const override {
    if (options_.instances != 0) return options_.instances;
    return options_.heartbeat != nullptr ? options_.heartbeat->instances() : 1;
  }
  LimitTable& limits() override { return limits_; }

  // From any thread.
  BucketEvents ReadEvents() const;

 private:
  // A request under way; reused.
  struct PendingRequest {
    std::optional<BucketCall> call;
    std::string memory;  // for the next
    Done done;
    base::BootTime give_up_at{0};
  };

  CallContext Context() const;
  void Send(PendingRequest& pending, base::Duration timeout);
  void OnReply(PendingRequest& pending, const PendingCall::Outcome& reply);
  void Finish(PendingRequest& pending, const SharedAnswer& answer);
  void Count(const SharedEvents& events);

  Client& client_;
  LimitTable& limits_;
  const Options options_;
  base::Pool<PendingRequest> pending_;
  base::Counter replaced_corrupt_, clock_resets_, carried_over_, script_errors_;
};

}  // namespace headgate::store::redis
