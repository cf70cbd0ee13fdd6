// Runs scripts on the servers of a Redis or Valkey store, from one event loop.
//
// Each script touches one key. The calls of one turn of the loop travel together, in one write per
// server. Every call is answered once and in time: by the store, or by a status that says whether
// the call may have been done (see reply_action.h). A call that was certainly not done is tried at
// most once more, within its time and a budget.
//
//   Call ──> topology ───────> breaker ──────────> connection ──(end of turn)──> one write
//            which server      may it be asked     append
//
//   done <── reply_action <────────────────────── replies in order <──────────── one read
//            what follows from an error
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/pool.h"
#include "headgate/base/random.h"
#include "headgate/net/event_loop.h"
#include "headgate/store/redis/client_listener.h"
#include "headgate/store/redis/options.h"
#include "headgate/store/redis/pending_call.h"
#include "headgate/store/redis/retry_budget.h"
#include "headgate/store/redis/shard.h"
#include "headgate/store/redis/topology.h"
#include "headgate/store/store_counters.h"

namespace headgate::store::redis {

struct ScriptCall {
  const Script* script = nullptr;  // outlives the client
  // Used only before Call returns.
  std::string_view key;
  std::span<const std::string_view> arguments{};
  // Unavailable while the key's shard is learning (shard_histories.h).
  bool learns = false;
  // If this is set, the call is given up at this time at the latest.
  base::BootTime give_up_at{0};
};

class Client final : private Shard::User {
 public:
  using Done = PendingCall::Done;

  // InvalidArgument if the options are not valid, or if a file of the TLS options cannot be used.
  // Connects at once. Two clients with one seed draw the same jitter.
  static absl::StatusOr<std::unique_ptr<Client>> Make(net::EventLoop& loop,
                                                      const RedisOptions& options, uint64_t seed,
                                                      StoreListener listener = {});
  // Calls in flight are forgotten: their `done` is not called.
  ~Client();
  Client(const Client&) = delete;

  // `timeout`: how long the server may be silent; 0: the timeout of the options. While it answers
  // other calls, the wait may last up to wait_max (store/patience.h). Calls `done` exactly once,
  // perhaps before Call returns; `done` may make further calls, but must not destroy the client.
  // Unavailable: the call was not done. DeadlineExceeded, Aborted: it may have been done.
  // PermissionDenied: the store refuses us. ResourceExhausted: too many calls in flight here, so it
  // was not sent. Internal, Unimplemented: a bug of ours; Unimplemented if the keys are on several
  // servers (CROSSSLOT). An error that the script itself returns is a reply.
  void Call(const ScriptCall& call, base::Duration timeout, Done done);
  // The same for a command that touches one key, or no key if `key` is empty.
  void CallCommand(std::string_view key, std::span<const std::string_view> words,
                   base::Duration timeout, Done done);

  // When the key's shard will have learned, as far as this loop knows; nullopt if it is not
  // learning.
  std::optional<base::BootTime> LearningUntil(std::string_view key) const;
  // Whether the key's server is connected and its breaker closed.
  bool AvailableFor(std::string_view key) const;

  const RedisOptions& options() const { return options_; }
  net::EventLoop& loop() { return loop_; }
  // The clock is read once per turn of the loop.
  base::BootTime Now();
  // From any thread.
  StoreCounters ReadCounters() const { return counters_.Read(); }

 private:
  Client(net::EventLoop& loop, const RedisOptions& options, std::shared_ptr<net::TlsClient> tls,
         uint64_t seed, StoreListener listener);

  PendingCall& Acquire(std::string_view key, base::Duration timeout, Done done);
  void Dispatch(PendingCall& call, base::BootTime now);
  void SendTo(uint32_t server, PendingCall& call, base::BootTime now);
  // True if the call will be sent a second time.
  bool RetryLater(PendingCall& call, base::Duration least, base::Duration spread,
                  base::BootTime now);
  bool RetryFresh(PendingCall& call, base::BootTime now);
  bool MayRetry(PendingCall& call, base::BootTime now);
  void Finish(PendingCall& call, const PendingCall::Outcome& outcome);
  void CountAnswer(const PendingCall& call, base::BootTime now);
  void CountFailure(absl::StatusCode code);
  void FinishBreaker(Shard& shard, PendingCall& call, Breaker::Outcome outcome, base::BootTime now);
  void Follow(Shard& shard, PendingCall& call, const ReplyAction& action, std::string_view error,
              base::BootTime now);
  void Suspect(base::BootTime now);
  void Alarm(const Shard& shard, std::string_view error);

  // Queries of the topology.
  void AskTopology(base::BootTime now);
  void OnTopologyAnswer(uint32_t server, const PendingCall::Outcome& answer);
  void TellTopology(uint32_t server, const std::string& problem);
  void ConnectServersInUse(base::BootTime now);
  void LookAtServers(base::BootTime now);
  void LookAtHistories(base::BootTime now);
  void LookAtClocks(base::BootTime now);
  void EndLearning(base::BootTime now);
  // The shard of a server, for histories: behind sentinels there is one shard on several servers.
  uint32_t ShardOf(uint32_t server) const {
    return options_.topology == TopologyKind::kSentinel ? 0 : server;
  }
  void ForgetServers();
  void OnTime();
  void SetTimer();
  // Does nothing if the timer is set to an earlier time.
  void WakeAt(base::BootTime at);

  Shard& EnsureShard(uint32_t server, base::BootTime now);
  const Shard* FindShard(std::string_view key) const;

  void OnReply(Shard& shard, PendingCall& call, const wire::RespValue& reply,
               base::BootTime now) override;
  void OnFailed(Shard& shard, PendingCall& call, ConnectionEvent event,
                base::BootTime now) override;
  bool Withholds(const Shard& shard, const PendingCall& call, base::BootTime now) const override;
  void OnFacts(Shard& shard, const ServerFacts& facts, base::BootTime now) override;
  void OnIdentity(Shard& shard, const ServerIdentity& identity, base::BootTime now) override;
  void OnReady(Shard& shard, base::BootTime now) override;
  void OnDown(Shard& shard, const absl::Status& why, base::BootTime now) override;

  net::EventLoop& loop_;
  const RedisOptions options_;
  const std::shared_ptr<net::TlsClient> tls_;
  base::Random random_;
  LoopStoreCounters counters_;
  ListenerReports reports_;
  RetryBudget retries_;
  std::unique_ptr<Topology> topology_;
  ShardHistories histories_;
  struct Learning {
    uint32_t shard;
    std::string server;
    base::BootTime until;
  };
  std::vector<Learning> learning_;  // reported to the listener

  base::Pool<PendingCall> calls_;
  std::deque<PendingCall*> unrouted_;  // their server is not known yet, or has changed
  struct Later {
    base::BootTime at;
    PendingCall* call;
  };
  std::vector<Later> later_;
  bool asking_topology_ = false;
  base::BootTime look_at_servers_at_{0};

  base::BootTime turn_now_{0};
  bool turn_open_ = false;
  net::EventLoop::Hook turn_end_;
  net::Timer timer_;
  base::BootTime timer_at_{INT64_MAX};
  // By the topology's index; null: never connected to. Declared last, so destroyed first.
  std::vector<std::unique_ptr<Shard>> shards_;
};

}  // namespace headgate::store::redis
