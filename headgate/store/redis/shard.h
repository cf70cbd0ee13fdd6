// One server as the client sees it: its connections, its breaker, and its reports about itself.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headgate/store/breaker.h"
#include "headgate/store/redis/clock_watch.h"
#include "headgate/store/redis/link.h"

namespace headgate::store::redis {

class Shard final : private Connection::User {
 public:
  class User {
   public:
    virtual void OnReply(Shard& shard, PendingCall& call, const wire::RespValue& reply,
                         base::BootTime now) = 0;
    virtual void OnFailed(Shard& shard, PendingCall& call, ConnectionEvent event,
                          base::BootTime now) = 0;
    virtual bool Withholds(const Shard& shard, const PendingCall& call,
                           base::BootTime now) const = 0;
    virtual void OnFacts(Shard& shard, const ServerFacts& facts, base::BootTime now) = 0;
    // The server reported its identity, perhaps again.
    virtual void OnIdentity(Shard& shard, const ServerIdentity& identity, base::BootTime now) = 0;
    virtual void OnReady(Shard& shard, base::BootTime now) = 0;
    virtual void OnDown(Shard& shard, const absl::Status& why, base::BootTime now) = 0;

   protected:
    ~User() = default;
  };

  struct Settings {
    net::Stream::Options stream{};          // without TLS
    std::shared_ptr<net::TlsClient> tls{};  // null: plain
    ConnectionSettings connection{};
    BreakerOptions breaker{};
    uint32_t connections = 1;
    base::Duration clock_memory = std::chrono::seconds(3);  // ClockWatch's
  };

  Shard(net::EventLoop& loop, uint32_t index, const net::StreamTarget& target,
        const Settings& settings, User& user, LoopStoreCounters& counters, uint64_t seed);

  void Start(base::BootTime now);
  // Sends over the connection with the fewest calls in flight.
  void Send(PendingCall& call, base::BootTime now);
  // Sends over this connection, which must be ready.
  void SendOver(uint32_t link, PendingCall& call, base::BootTime now);
  uint32_t link_count() const { return static_cast<uint32_t>(links_.size()); }
  // Replaces the connection that the call used, once everything that was sent over it is answered.
  void Retire(const PendingCall& call, const absl::Status& why, base::BootTime now);
  // Replaces all connections: the server may have changed since it reported its identity.
  void Restart(base::BootTime now);
  // Needs no connection until the next call.
  void Rest(base::BootTime now);
  // Sends the server nothing for a second.
  void Pause(const absl::Status& why, base::BootTime now);

  uint32_t index() const { return index_; }
  const std::string& name() const { return name_; }
  const Connection& connection(uint32_t link) const { return links_[link]->connection(); }
  Breaker& breaker() { return breaker_; }
  ClockWatch& clock_watch() { return clock_watch_; }
  const Breaker& breaker() const { return breaker_; }
  // Why nothing may be sent now; OK if calls may be sent.
  const absl::Status& PausedAt(base::BootTime now);
  // The status that calls fail with; made once.
  const absl::Status& StatusOf(ConnectionEvent event);

  // The answer to INFO replication over one of the connections.
  void OnReplicationInfo(uint32_t link, std::string_view info, base::BootTime now);
  bool ready() const;
  bool at_rest() const;
  // Whether the server last reported that it is a replica.
  bool was_replica() const { return was_replica_; }

 private:
  void OnReply(PendingCall& call, const wire::RespValue& reply, base::BootTime now) override;
  void OnFailed(PendingCall& call, ConnectionEvent event, base::BootTime now) override;
  void OnLateReply(base::BootTime now) override { breaker_.OnLateAnswer(now); }
  bool Withholds(const PendingCall& call, base::BootTime now) override {
    return user_.Withholds(*this, call, now);
  }
  void OnFacts(const ServerFacts& facts, base::BootTime now) override;
  void OnReady(base::BootTime now) override;
  void OnDown(const absl::Status& why, base::BootTime now) override;

  const uint32_t index_;
  const std::string name_;
  User& user_;
  Breaker breaker_;
  ClockWatch clock_watch_;
  uint64_t run_ = 0;  // the process that clock_watch_ watches
  absl::Status paused_;
  base::BootTime paused_until_{0};
  absl::Status down_;  // why the server was last down
  std::array<absl::Status, 1 + static_cast<size_t>(ConnectionEvent::kLearning)> statuses_;
  bool was_replica_ = false;
  std::vector<std::unique_ptr<Link>> links_;
};

}  // namespace headgate::store::redis
