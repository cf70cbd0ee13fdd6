// The shared store in Redis or Valkey, as one event loop asks it. The server's clock decides.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "headgate/base/counter.h"
#include "headgate/store/redis/bucket_caller.h"
#include "headgate/store/redis/client.h"
#include "headgate/store/redis/counter_call.h"
#include "headgate/store/redis/error_text.h"
#include "headgate/store/redis/heartbeat.h"
#include "headgate/store/redis/permit_call.h"
#include "headgate/store/shared_store.h"

namespace headgate::store::redis {

class RedisStore final : public SharedStore {
 public:
  struct Options {
    // The number of instances; from any thread. Null: there is only this one.
    std::function<uint32_t()> counted{};
    // The number of instances, which overrides the counted number; 0: the counted number is used.
    uint32_t instances = 0;
    // Called for each error of a script.
    std::function<void(const std::string& error)> on_script_error{};
    // As BucketCaller::Events::on_damaged.
    std::function<void()> on_damaged{};
  };

  // The client and the limits must outlive the store.
  RedisStore(Client& client, LimitTable& limits, const Options& options)
      : client_(client),
        limits_(limits),
        options_(options),
        caller_(client, {.on_error = options.on_script_error, .on_damaged = options.on_damaged}) {}

  void Ask(const SharedRequest& request, Done done) override {
    caller_.Ask(request, {}, std::move(done));
  }
  void Increment(const SharedCount& request, CountDone done) override {
    const CounterCall call(request);
    client_.Call(
        {.script = &CounterCall::script(), .key = call.key(), .arguments = call.arguments()},
        request.timeout, [this, done = std::move(done)](const PendingCall::Outcome& reply) {
          OnCount(reply, done);
        });
  }
  void AskPermits(const SharedPermits& request, PermitsDone done) override {
    const PermitCall call(request);
    client_.Call(
        {.script = &PermitCall::script(), .key = call.key(), .arguments = call.arguments()},
        request.timeout, [this, done = std::move(done)](const PendingCall::Outcome& reply) {
          if (!reply.ok()) return done(reply.status());
          NoteError(**reply);
          done(PermitCall::Read(**reply));
        });
  }
  base::BootTime Now() const override { return client_.loop().Now(); }
  uint32_t instances() const override {
    if (options_.instances != 0) return options_.instances;
    return options_.counted ? options_.counted() : 1;
  }
  LimitTable& limits() override { return limits_; }

  // Everything counted on this loop. From any thread.
  StoreCounters ReadCounters() const {
    StoreCounters counters = client_.ReadCounters();
    caller_.AddTo(counters);
    counters.script_errors += script_errors_.value();
    return counters;
  }

 private:
  void OnCount(const PendingCall::Outcome& reply, const CountDone& done) {
    if (!reply.ok()) return done(reply.status());
    NoteError(**reply);
    done(CounterCall::Read(**reply));
  }
  void NoteError(const wire::RespValue& reply) {
    if (!reply.is_error()) return;
    script_errors_.Add();
    if (options_.on_script_error) options_.on_script_error(WithoutArguments(reply.text));
  }

  Client& client_;
  LimitTable& limits_;
  const Options options_;
  BucketCaller caller_;
  base::Counter script_errors_;  // of counters and permits
};

}  // namespace headgate::store::redis
