// The conversation with one server over one connection, without I/O: events and the time come in,
// bytes, answers and actions go out.
//
//   down --time to try--> connecting --> handshake --> ready --ends--> down
//                                        HELLO, AUTH,
//                                        SELECT, INFO
//
// When ready, calls are appended to the output as they come; the owner of the socket writes once
// per turn. Replies come in the order of the calls. A call that is not answered in time
// (store/patience.h) fails; its reply is still awaited, and dropped. If the connection ends, calls
// that were sent fail with a status that says they may have been done; this class never sends them
// again. Calls that were not sent wait for the next connection, until their deadline.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/random.h"
#include "headgate/base/secret.h"
#include "headgate/base/status.h"
#include "headgate/store/backend_options.h"
#include "headgate/store/call_window.h"
#include "headgate/store/patience.h"
#include "headgate/store/redis/options.h"
#include "headgate/store/redis/pending_call.h"
#include "headgate/store/redis/reply_action.h"
#include "headgate/store/redis/shard_histories.h"
#include "headgate/wire/resp_reader.h"

namespace headgate::store::redis {

// A server's report about itself.
struct ServerFacts {
  ServerIdentity identity{};
  // The server's memory is bounded and its policy drops live keys, or it does not report its
  // policy.
  bool may_evict = false;
  std::string eviction_policy{};  // empty: not reported
  bool operator==(const ServerFacts&) const = default;
};

struct ConnectionSettings {
  std::string user{};
  base::Secret password{};  // read again for each connection
  uint32_t database = 0;
  std::string client_name{};
  bool sentinel = false;    // the server is a sentinel: no databases, no role
  bool replica_ok = false;  // stay connected to a replica: it knows the topology
  bool strict_store = false;
  base::Duration handshake_timeout = CallOptions{}.connect_timeout;
  base::Duration reply_overdue = RedisOptions{}.reply_overdue;
  base::Duration silence_max = CallOptions{}.silence_max;
  base::Duration reconnect_min = RedisOptions{}.reconnect_min;
  base::Duration reconnect_max = RedisOptions{}.reconnect_max;
  size_t in_flight_max = CallOptions{}.in_flight_max;
  size_t waiting_max = RedisOptions{}.waiting_max;
};

class Connection {
 public:
  // Receives the results. May send further calls and drop the connection meanwhile, but must not
  // destroy it.
  class User {
   public:
    // The reply to a call. The user owns the call again; so it does after OnFailed.
    virtual void OnReply(PendingCall& call, const wire::RespValue& reply, base::BootTime now) = 0;
    virtual void OnFailed(PendingCall& call, ConnectionEvent event, base::BootTime now) = 0;
    // A call that had timed out was answered without an error.
    virtual void OnLateReply(base::BootTime /*now*/) {}
    // Whether a call that is about to be sent must be withheld: then it fails with kLearning.
    virtual bool Withholds(const PendingCall& /*call*/, base::BootTime /*now*/) { return false; }
    virtual void OnFacts(const ServerFacts& facts, base::BootTime now) = 0;
    // Called after OnFacts, if the server can be used.
    virtual void OnReady(base::BootTime now) = 0;
    // The connection ended or was not established. PermissionDenied: the server refuses us.
    // Cancelled: we closed it. The message contains no password.
    virtual void OnDown(const absl::Status& why, base::BootTime now) = 0;

   protected:
    ~User() = default;
  };
  enum class State : uint8_t { kDown, kConnecting, kHandshake, kReady };
  enum class Action : uint8_t { kNone, kConnect, kDisconnect };

  // Bytes to send are appended to `output`.
  Connection(const ConnectionSettings& settings, User& user, std::string& output, uint64_t seed);

  // ---- Events. After each: see action(), the output and wake_at().
  void Start(base::BootTime now);
  void OnConnected(base::BootTime now);
  void OnBytes(std::string_view bytes, base::BootTime now);
  void OnClosed(const absl::Status& why, base::BootTime now);
  void OnTime(base::BootTime now);
  // The output was written, which may be later than the calls were sent: this process may have been
  // paused.
  void OnWritten(base::BootTime now);
  // Whether OnTime would end calls. The owner of the socket then reads first: their answers may be
  // there.
  bool EndsCalls(base::BootTime now) const { return now >= expire_at_ && !in_flight_.empty(); }
  // Takes ownership of the call until the user gets its result, which may be at once.
  void Send(PendingCall& call, base::BootTime now);
  // Sends nothing more, ends when all calls that were sent are answered, and reconnects.
  void Retire(const absl::Status& why, base::BootTime now);
  // Ends the connection as Retire does, and reconnects only for the next call.
  void Rest(base::BootTime now);
  // Ends the connection at once, and reconnects.
  void Drop(const absl::Status& why, base::BootTime now);

  // The next action for the owner of the socket; each is returned once.
  Action TakeAction() { return std::exchange(action_, Action::kNone); }
  // The latest time to call OnTime.
  base::BootTime wake_at() const { return wake_at_; }

  State state() const { return state_; }
  // The server's report in the last handshake.
  const ServerFacts& facts() const { return facts_; }
  // Whether the connection is not needed and nothing is in flight.
  bool at_rest() const { return resting_ && state_ == State::kDown && waiting_.empty(); }
  size_t in_flight() const { return in_flight_.size(); }
  // The number of calls appended to the output so far.
  uint64_t calls_appended() const { return calls_appended_; }
  size_t waiting() const { return waiting_.size(); }
  // The number of calls that may be in flight: it follows the calls answered in time, up to
  // in_flight_max.
  uint32_t window() const { return window_.size(); }
  // The number of script texts sent over this connection: a call sent before the last of them may
  // have lacked it.
  uint64_t scripts_sent() const { return scripts_sent_; }
  uint64_t late_replies() const { return late_replies_; }
  uint64_t reconnects() const { return reconnects_; }

 private:
  struct Sent {
    PendingCall* call;  // null: the call no longer waits
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
  void OnHandshakeReply(const wire::RespValue& reply, base::BootTime now);
  void OnHandshakeError(HandshakeStep step, std::string_view error, base::BootTime now);
  void OnHandshakeDone(base::BootTime now);
  void OnCallReply(base::BootTime now);
  void OnWorked();
  bool HasRoom() const { return in_flight_.size() < window_.size() && retired_.ok(); }
  // The event of a call that was not sent in time: too many calls went before it, or the server
  // answers nothing at all.
  ConnectionEvent UnsentEvent(const PendingCall& call) const {
    return answered_at_ >= call.started ? ConnectionEvent::kOutOfTime
                                        : ConnectionEvent::kQueueTimeout;
  }
  void SendNow(PendingCall& call, base::BootTime now);
  void SendWaiting(base::BootTime now);
  void End(const absl::Status& why, base::Duration pause_min, base::BootTime now);
  void FailWaiting(ConnectionEvent event, base::BootTime now);
  void ExpireCalls(base::BootTime now);
  static Patience::Waiter WaiterOf(const PendingCall& call, base::BootTime sent) {
    return {
        .started = call.started, .sent = sent, .deadline = call.deadline, .timeout = call.timeout};
  }
  base::BootTime EndOf(const PendingCall& call, base::BootTime sent, base::BootTime now) const {
    return patience_.EndOf(WaiterOf(call, sent), now);
  }
  void ExpireAt(base::BootTime at) {
    expire_at_ = std::min(expire_at_, at);
    WakeAt(expire_at_);
  }
  void CountPause(base::BootTime due, base::BootTime now);
  void WakeAt(base::BootTime at) { wake_at_ = std::min(wake_at_, at); }

  const ConnectionSettings settings_;
  User& user_;
  std::string& output_;
  base::Random random_;
  State state_ = State::kDown;
  Action action_ = Action::kNone;
  uint64_t generation_ = 0;       // counts connections
  uint32_t failed_attempts_ = 0;  // since the last that worked
  bool back_at_once_ = true;      // a connection has worked since the last immediate reconnect
  base::BootTime ready_at_{0};
  base::BootTime retry_at_{0};         // while down
  base::BootTime handshake_until_{0};  // while connecting and in the handshake
  base::BootTime wake_at_{INT64_MAX};
  std::vector<HandshakeStep> handshake_;  // sent and not answered, in reverse order
  bool hello_refused_ = false;
  bool resting_ = false;  // not needed
  absl::Status retired_;  // why the connection ends once everything is answered
  ServerFacts facts_;
  std::string server_info_;  // until INFO replication is answered
  wire::RespReader reader_{kReplyBounds};
  wire::RespValue reply_;  // being passed to the user
  std::string rest_;       // input that is not parsed yet
  std::deque<Sent> in_flight_;
  std::deque<PendingCall*> waiting_;
  CallWindow window_;
  Patience patience_;
  base::BootTime answered_at_{INT64_MIN};  // when a call was last answered
  base::BootTime expire_at_{INT64_MAX};    // no call ends earlier
  bool has_unwritten_ = false;
  base::BootTime counted_until_{0};  // pauses are counted
  uint64_t calls_appended_ = 0;
  uint64_t scripts_sent_ = 0;
  uint64_t late_replies_ = 0;
  uint64_t reconnects_ = 0;
};

}  // namespace headgate::store::redis
