// The conversation with one server over one connection, without the connection: events and the time
// come in, bytes, answers and wishes go out.
//
//   down --time to try--> connecting --> greeting: HELLO, AUTH, SELECT, INFO --> ready --ends-->
//   down
//
// Ready, calls are appended to the output as they come; whoever owns the socket writes once per
// turn. Replies come in the order of the calls. A call that is not answered by its deadline is told
// so; its reply is still awaited, and dropped. Where the connection ends, what had been sent is
// told that it may have been done, and is never sent again by this class; what had not been sent
// waits for the next connection, until its deadline.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/random.h"
#include "headgate/base/status.h"
#include "headgate/store/call_window.h"
#include "headgate/store/redis/pending_call.h"
#include "headgate/store/redis/reply_action.h"
#include "headgate/store/redis/shard_histories.h"
#include "headgate/wire/resp_reader.h"

namespace headgate::store::redis {

// What a server said of itself.
struct ServerFacts {
  ServerIdentity identity{};
  // Memory is bounded, and its policy drops what lives; or it does not say.
  bool may_evict = false;
  std::string eviction_policy{};  // empty: it does not say
  bool operator==(const ServerFacts&) const = default;
};

struct ConnectionSettings {
  std::string user{}, password{};
  uint32_t database = 0;
  std::string client_name{};
  bool sentinel = false;    // it is one: it has no databases and no role
  bool replica_ok = false;  // a replica stays connected: it knows the topology
  bool strict_store = false;
  base::Duration handshake_timeout = std::chrono::milliseconds(50);
  base::Duration reply_overdue = std::chrono::seconds(1);
  base::Duration reconnect_min = std::chrono::milliseconds(50);
  base::Duration reconnect_max = std::chrono::seconds(5);
  size_t in_flight_max = 1024;
  size_t waiting_max = 1024;
};

class Connection {
 public:
  // Who is told. May send further calls meanwhile, and drop the connection, but not destroy it.
  class User {
   public:
    // The call is the user's again.
    virtual void OnReply(PendingCall& call, const wire::RespValue& reply, base::BootTime now) = 0;
    virtual void OnFailed(PendingCall& call, ConnectionEvent event, base::BootTime now) = 0;
    // Whether a call that is about to be sent must not be: it fails with kLearning.
    virtual bool Withholds(const PendingCall& /*call*/, base::BootTime /*now*/) { return false; }
    virtual void OnFacts(const ServerFacts& facts, base::BootTime now) = 0;
    // Behind its facts, where it can be used.
    virtual void OnReady(base::BootTime now) = 0;
    // It ended, or could not be had. PermissionDenied: the server does not let us in; Cancelled: we
    // wanted it so. Holds no password.
    virtual void OnDown(const absl::Status& why, base::BootTime now) = 0;

   protected:
    ~User() = default;
  };
  enum class State : uint8_t { kDown, kConnecting, kGreeting, kReady };
  enum class Action : uint8_t { kNone, kConnect, kDisconnect };

  // What is to be sent is appended to `output`.
  Connection(const ConnectionSettings& settings, User& user, std::string& output, uint64_t seed);

  // ---- Events. After each: see action(), the output and wake_at().
  void Start(base::BootTime now);
  void OnConnected(base::BootTime now);
  void OnBytes(std::string_view bytes, base::BootTime now);
  void OnClosed(const absl::Status& why, base::BootTime now);
  void OnTime(base::BootTime now);
  // Takes the call until the user is told of it, which may be at once.
  void Send(PendingCall& call, base::BootTime now);
  // Sends nothing more; ends once all that was sent is answered, and begins anew.
  void Retire(const absl::Status& why, base::BootTime now);
  // Ends it as Retire does, and begins anew only when it is asked something.
  void Rest(base::BootTime now);
  // Ends it, and begins anew.
  void Drop(const absl::Status& why, base::BootTime now);

  // What the owner of the socket should do now. Once.
  Action TakeAction() { return std::exchange(action_, Action::kNone); }
  // When OnTime should be called at latest.
  base::BootTime wake_at() const { return wake_at_; }

  State state() const { return state_; }
  // What it said when it was greeted last.
  const ServerFacts& facts() const { return facts_; }
  // Not needed, and nothing is under way.
  bool at_rest() const { return resting_ && state_ == State::kDown && waiting_.empty(); }
  size_t in_flight() const { return in_flight_.size(); }
  // How many calls were ever appended to the output.
  uint64_t calls_appended() const { return calls_appended_; }
  size_t waiting() const { return waiting_.size(); }
  // How many calls may be under way, by what was answered in time; at most in_flight_max.
  uint32_t window() const { return window_.size(); }
  // How many texts of scripts have been sent over this connection: what came before the last of
  // them may have lacked it.
  uint64_t scripts_sent() const { return scripts_sent_; }
  uint64_t late_replies() const { return late_replies_; }
  uint64_t reconnects() const { return reconnects_; }

 private:
  struct Sent {
    PendingCall* call;  // null: nobody waits for the reply
    base::BootTime at;
    bool late = false;
  };
  enum class HandshakeStep : uint8_t {
    kHello,
    kAuth,
    kSetName,
    kSelect,
    kServer,
    kReplication,
    kMemory
  };

  void StartHandshake(std::vector<HandshakeStep> steps);
  void Append(HandshakeStep step);
  void OnGreetingReply(const wire::RespValue& reply, base::BootTime now);
  void OnHandshakeError(HandshakeStep step, std::string_view error, base::BootTime now);
  void OnGreeted(base::BootTime now);
  void OnCallReply(base::BootTime now);
  void OnWorked();
  bool HasRoom() const { return in_flight_.size() < window_.size() && retired_.ok(); }
  // Of a call that was not sent in time: too many went before it, or nothing is answered at all.
  ConnectionEvent UnsentEvent(const PendingCall& call) const {
    return answered_at_ >= call.started ? ConnectionEvent::kOutOfTime
                                        : ConnectionEvent::kQueueTimeout;
  }
  void SendNow(PendingCall& call, base::BootTime now);
  void SendWaiting(base::BootTime now);
  void End(const absl::Status& why, base::Duration pause_min, base::BootTime now);
  void FailWaiting(ConnectionEvent event, base::BootTime now);
  void ExpireCalls(base::BootTime now);
  void WakeAt(base::BootTime at) { wake_at_ = std::min(wake_at_, at); }

  const ConnectionSettings settings_;
  User& user_;
  std::string& output_;
  base::Random random_;
  State state_ = State::kDown;
  Action action_ = Action::kNone;
  uint64_t generation_ = 0;       // of connections
  uint32_t failed_attempts_ = 0;  // since the last one that worked
  bool back_at_once_ = true;      // a connection has worked since one was last made anew at once
  base::BootTime ready_at_{0};
  base::BootTime retry_at_{0};     // while down
  base::BootTime greet_until_{0};  // while connecting and greeting
  base::BootTime wake_at_{INT64_MAX};
  std::vector<HandshakeStep> handshake_;  // sent and not answered, the next one last
  bool hello_refused_ = false;
  bool resting_ = false;  // not needed
  absl::Status retired_;  // why it ends when all is answered
  ServerFacts facts_;
  std::string server_info_;  // until INFO replication is answered too
  wire::RespReader reader_{kReplyBounds};
  wire::RespValue reply_;  // the one that is being told of
  std::string rest_;       // of the input, not digested
  std::deque<Sent> in_flight_;
  std::deque<PendingCall*> waiting_;
  CallWindow window_;
  base::BootTime answered_at_{INT64_MIN};  // when a call was last answered in time
  base::BootTime expire_at_{INT64_MAX};    // no call's deadline is before
  uint64_t calls_appended_ = 0;
  uint64_t scripts_sent_ = 0;
  uint64_t late_replies_ = 0;
  uint64_t reconnects_ = 0;
};

}  // namespace headgate::store::redis
