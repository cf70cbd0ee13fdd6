#include "headgate/client/zookeeper/client.h"

#include <fmt/format.h>
#include <zookeeper/zookeeper.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <deque>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "headgate/client/zookeeper/node_name.h"
#include "headgate/net/name_lookup.h"

namespace headgate::client::zookeeper {
namespace {

// The bytes of a multi beyond the data and two paths.
constexpr size_t kMultiBytes = 64;
constexpr base::Duration kLookupPause = std::chrono::seconds(1);

// Threads of the C client must not take the process's signals.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &former_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &former_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;

 private:
  sigset_t former_{};
};

struct Reply {
  int code = ZOK;
  std::string text{};  // data, or the path of a new node
  std::vector<std::string> names{};
  NodeStat stat{};
};

NodeStat StatOf(const struct Stat* stat) {
  if (stat == nullptr) return {};
  return {.created_zxid = stat->czxid,
          .changed_zxid = stat->mzxid,
          .children_zxid = stat->pzxid,
          .version = stat->version,
          .owner = stat->ephemeralOwner,
          .changed_at = base::WallTime::FromNanos(stat->mtime * 1'000'000)};
}

enum class Effect : bool { kReads, kChanges };

absl::Status StatusOf(int code, Effect effect, const std::string& path) {
  const std::string what = fmt::format("{}: {}", path, ::zerror(code));
  switch (code) {
    case ZOK:
      return absl::OkStatus();
    case ZNONODE:
      return absl::NotFoundError(what);
    case ZNODEEXISTS:
      return absl::AlreadyExistsError(what);
    case ZBADVERSION:
      return absl::AbortedError(what);
    case ZNOAUTH:
      return absl::PermissionDeniedError(what);
    case ZNOTEMPTY:
    case ZNOCHILDRENFOREPHEMERALS:
      return absl::FailedPreconditionError(what);
    case ZBADARGUMENTS:
    case ZINVALIDACL:
      return absl::InvalidArgumentError(what);
    case ZINVALIDSTATE:
      return absl::UnavailableError(fmt::format("{}: no connection to ZooKeeper", path));
    case ZUNIMPLEMENTED:
      return absl::UnimplementedError(what);
    case ZTHROTTLEDOP:
      return absl::ResourceExhaustedError(what);
    default:
      return effect == Effect::kReads ? absl::UnavailableError(what) : absl::UnknownError(what);
  }
}

// Whether the code came from a server. Other codes mean that the C client ended the call itself.
bool IsOfServer(int code) {
  return code == ZOK || (code <= ZAPIERROR && code != ZSESSIONEXPIRED && code != ZCLOSING &&
                         code != ZSESSIONMOVED);
}

using Finish = std::function<void(Reply reply)>;

// Ends a call with the value that `take` reads from a successful reply.
template <typename Value, typename Take>
Finish Answering(const std::string& path, Effect effect, Client::Done<Value> done,
                 const Take& take) {
  return [path, effect, take, done = std::move(done)](Reply reply) {
    if (reply.code != ZOK) return done(StatusOf(reply.code, effect, path));
    done(take(reply));
  };
}

NodeStat TakeStat(Reply& reply) { return reply.stat; }

// Ends a call that has no value.
Finish Ending(const std::string& path, Effect effect, std::function<void(absl::Status)> done) {
  return [path, effect, done = std::move(done)](const Reply& reply) {
    done(StatusOf(reply.code, effect, path));
  };
}

std::optional<WatchEvent::Kind> KindOf(int type) {
  if (type == ZOO_CREATED_EVENT) return WatchEvent::Kind::kCreated;
  if (type == ZOO_DELETED_EVENT) return WatchEvent::Kind::kDeleted;
  if (type == ZOO_CHANGED_EVENT) return WatchEvent::Kind::kDataChanged;
  if (type == ZOO_CHILD_EVENT) return WatchEvent::Kind::kChildrenChanged;
  return std::nullopt;
}

int FlagsOf(CreateMode mode) {
  switch (mode) {
    case CreateMode::kEphemeral:
      return ZOO_EPHEMERAL;
    case CreateMode::kEphemeralSequential:
      return ZOO_EPHEMERAL_SEQUENTIAL;
    case CreateMode::kContainer:
      return ZOO_CONTAINER;
    case CreateMode::kPersistent:
      break;
  }
  return 0;
}

void Discard(const char* /*message*/) {}

// The arguments of a multi, which the C client uses until it has the answer.
struct ReplaceCall {
  ReplaceCall(std::string node, std::string_view bytes, int32_t version, const ACL_vector* acl)
      : path(std::move(node)), data(bytes) {
    ::zoo_delete_op_init(&ops[0], path.c_str(), version);
    ::zoo_create_op_init(&ops[1], path.c_str(), data.data(), static_cast<int>(data.size()), acl, 0,
                         nullptr, 0);
  }
  ReplaceCall(const ReplaceCall&) = delete;

  const std::string path;
  const std::string data;
  std::array<zoo_op_t, 2> ops{};
  std::array<zoo_op_result_t, 2> results{};
};

}  // namespace

// Lives as long as the client, and longer while a session is being closed.
class Client::Core : public std::enable_shared_from_this<Core> {
 public:
  Core(ClientOptions options, net::EventLoop& loop, Listener listener)
      : options_(std::move(options)),
        loop_(loop),
        listener_(std::move(listener)),
        heard_at_(loop.Now()),
        deadlines_timer_(loop, [this] { EndLateCalls(); }),
        lost_timer_(loop, [this] { Replace(); }),
        lookup_timer_(loop, [this] { LookUp(); }) {}

  // Called by the client's destructor.
  void Stop() {
    stopped_ = true;
    if (session_ != nullptr) Close(std::move(session_));
    for (auto& [number, closer] : closers_) closer.join();
    closers_.clear();
    calls_.clear();
    lookups_.clear();
  }

  // Finds the addresses of all servers, then connects.
  void LookUp() {
    if (stopped_) return;
    addresses_.clear();
    lookups_.clear();
    awaited_ = options_.servers.size();
    for (const net::StreamTarget& server : options_.servers) {
      lookups_.push_back(std::make_unique<net::NameLookup>(
          loop_, server.host, server.port,
          [this](const absl::StatusOr<net::SocketAddresses>& found) { OnLookedUp(found); }));
    }
  }

  // Sends a call with `send`, which returns a code and hands the ticket to the C client. `kept`
  // lives as long as the C client may use it.
  template <typename Send>
  void Call(const std::string& path, size_t bytes, Finish finish, const Send& send,
            std::shared_ptr<void> kept = nullptr) {
    int code = ZINVALIDSTATE;
    if (!IsNodePath(path) || path.size() + bytes > kRequestBytesMax) {
      code = ZBADARGUMENTS;
    } else if (connected_) {
      const uint64_t number = ++last_call_;
      PendingCall& call = calls_[number];
      call = {.ticket = std::make_unique<Ticket>(Ticket{this, number}),
              .session = session_->number,
              .kept = std::move(kept),
              .finish = std::move(finish)};
      deadlines_.emplace_back(loop_.Now() + options_.call_timeout, number);
      if (deadlines_.size() == 1) deadlines_timer_.Set(deadlines_.front().first);
      code = send(session_->handle, call.ticket.get());
      if (code == ZOK) return;
      finish = std::move(calls_.extract(number).mapped().finish);
    }
    finish({.code = code});
  }

  void Leave(std::function<void()> done) {
    stopped_ = true;
    connected_ = false;
    lost_timer_.Cancel();
    lookup_timer_.Cancel();
    lookups_.clear();
    if (session_ == nullptr) return done();
    left_ = std::move(done);
    left_session_ = session_->number;
    Close(std::move(session_));
  }

  const ACL_vector* acl() const {
    return options_.digest.empty() ? &ZOO_OPEN_ACL_UNSAFE : &ZOO_CREATOR_ALL_ACL;
  }
  bool connected() const { return connected_; }
  base::BootTime heard_at() const { return heard_at_; }
  int64_t session_id() const { return connected_ ? session_id_ : 0; }

  // Callbacks of the C client, on its threads. They copy their arguments, which do not outlive
  // them.
  static void OnData(int code, const char* data, int size, const struct Stat* stat,
                     const void* ticket) {
    Reply reply{.code = code, .stat = StatOf(stat)};
    if (data != nullptr && size > 0) reply.text.assign(data, static_cast<size_t>(size));
    Deliver(ticket, std::move(reply));
  }
  static void OnStat(int code, const struct Stat* stat, const void* ticket) {
    Deliver(ticket, {.code = code, .stat = StatOf(stat)});
  }
  static void OnChildren(int code, const String_vector* names, const struct Stat* stat,
                         const void* ticket) {
    Reply reply{.code = code, .stat = StatOf(stat)};
    if (names != nullptr) reply.names.assign(names->data, names->data + names->count);
    Deliver(ticket, std::move(reply));
  }
  static void OnCreated(int code, const char* path, const struct Stat* stat, const void* ticket) {
    Deliver(ticket, {.code = code, .text = path == nullptr ? "" : path, .stat = StatOf(stat)});
  }
  static void OnDone(int code, const void* ticket) { Deliver(ticket, {.code = code}); }
  static void OnSynced(int code, const char* /*path*/, const void* ticket) {
    Deliver(ticket, {.code = code});
  }

 private:
  // The C client gives it back with a reply.
  struct Ticket {
    Core* core;
    uint64_t call;
  };
  struct PendingCall {
    std::unique_ptr<Ticket> ticket;
    uint64_t session = 0;
    std::shared_ptr<void> kept;
    Finish finish;  // null once it has been called
  };
  struct Session {
    Core* core;
    uint64_t number;
    zhandle_t* handle = nullptr;
    bool authorized = false;
  };

  static void Deliver(const void* ticket, Reply reply) {
    const auto& known = *static_cast<const Ticket*>(ticket);
    known.core->loop_.Post(
        [core = known.core->shared_from_this(), call = known.call, reply = std::move(reply)] {
          if (IsOfServer(reply.code)) core->heard_at_ = core->loop_.Now();
          core->End(call, reply);
        });
  }

  static void OnEvent(zhandle_t* /*handle*/, int type, int state, const char* path, void* context) {
    const auto& session = *static_cast<const Session*>(context);
    session.core->loop_.Post([core = session.core->shared_from_this(), number = session.number,
                              type, state, path = std::string(path == nullptr ? "" : path)] {
      if (core->session_ == nullptr || core->session_->number != number) return;
      if (type == ZOO_SESSION_EVENT) return core->OnState(state);
      core->heard_at_ = core->loop_.Now();
      if (const auto kind = KindOf(type); kind && core->listener_.on_watch)
        core->listener_.on_watch({.kind = *kind, .path = path});
    });
  }

  void OnLookedUp(const absl::StatusOr<net::SocketAddresses>& found) {
    if (found.ok()) {
      for (const net::SocketAddress& address : *found) addresses_.push_back(address.ToString());
    } else {
      lookup_status_ = found.status();
    }
    if (--awaited_ > 0) return;
    if (addresses_.empty()) {
      if (listener_.on_trouble) listener_.on_trouble(lookup_status_);
      lookup_timer_.SetAfter(kLookupPause);
      return;
    }
    Connect();
  }

  void Connect() {
    std::string hosts;
    for (const std::string& address : addresses_)
      hosts.append(hosts.empty() ? "" : ",").append(address);
    session_ = std::make_shared<Session>(Session{this, ++last_session_});
    const SignalsBlocked blocked;
    ::zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    const auto timeout =
        std::chrono::duration_cast<std::chrono::milliseconds>(options_.session_timeout);
    session_->handle = ::zookeeper_init2(hosts.c_str(), OnEvent, static_cast<int>(timeout.count()),
                                         nullptr, session_.get(), 0, Discard);
    if (session_->handle == nullptr) {
      session_ = nullptr;
      if (listener_.on_trouble)
        listener_.on_trouble(absl::UnavailableError(fmt::format("{} is refused", hosts)));
      lookup_timer_.SetAfter(kLookupPause);
      return;
    }
    // Otherwise the C client would resolve the addresses at every turn of its thread.
    ::zoo_set_servers_resolution_delay(session_->handle, -1);
    AwaitConnection(options_.session_timeout);
  }

  // A session without a connection for a third longer than its timeout has expired, even if no
  // server is there to say so.
  void AwaitConnection(base::Duration session_timeout) {
    lost_timer_.SetAfter(session_timeout + session_timeout / 3);
  }

  void OnState(int state) {
    if (state == ZOO_CONNECTED_STATE) {
      if (!connected_) OnConnected();
      return;
    }
    if (connected_) {
      AwaitConnection(std::chrono::milliseconds(::zoo_recv_timeout(session_->handle)));
      Disconnect();
    }
    if (state == ZOO_AUTH_FAILED_STATE && listener_.on_trouble)
      listener_.on_trouble(absl::UnauthenticatedError("the ensemble refuses user and password"));
    if (state == ZOO_EXPIRED_SESSION_STATE) Replace();
  }

  void OnConnected() {
    connected_ = true;
    heard_at_ = loop_.Now();
    lost_timer_.Cancel();
    const int64_t id = ::zoo_client_id(session_->handle)->client_id;
    const bool is_new = std::exchange(session_id_, id) != id;
    if (!options_.digest.empty() && !std::exchange(session_->authorized, true)) {
      const std::string digest = options_.digest.Now();
      ::zoo_add_auth(session_->handle, "digest", digest.data(), static_cast<int>(digest.size()),
                     nullptr, nullptr);
    }
    if (listener_.on_connected) listener_.on_connected(is_new);
  }

  void Disconnect() {
    if (std::exchange(connected_, false) && listener_.on_disconnected) listener_.on_disconnected();
  }

  void Replace() {
    if (stopped_) return;
    Disconnect();
    if (session_ != nullptr) Close(std::move(session_));
    session_ = nullptr;
    LookUp();
  }

  // Closing waits for the servers, so it has a thread of its own.
  void Close(std::shared_ptr<Session> session) {
    const uint64_t number = session->number;
    const SignalsBlocked blocked;
    closers_[number] = std::thread([core = shared_from_this(), session = std::move(session)] {
      ::zookeeper_close(session->handle);
      core->loop_.Post([core, number = session->number] { core->OnClosed(number); });
    });
  }

  // The C client makes no more callbacks, although some calls are unanswered: end them here.
  void OnClosed(uint64_t session) {
    if (const auto closer = closers_.find(session); closer != closers_.end()) {
      closer->second.join();
      closers_.erase(closer);
    }
    std::vector<uint64_t> unanswered;
    for (const auto& [number, call] : calls_)
      if (call.session == session) unanswered.push_back(number);
    for (const uint64_t number : unanswered) End(number, {.code = ZCLOSING});
    if (left_ && left_session_ == session) std::exchange(left_, nullptr)();
  }

  void End(uint64_t number, const Reply& reply) {
    const auto found = calls_.find(number);
    if (found == calls_.end()) return;
    const Finish finish = std::move(found->second.finish);
    calls_.erase(found);
    if (finish) finish(reply);
  }

  void EndLateCalls() {
    const base::BootTime now = loop_.Now();
    while (!deadlines_.empty() && deadlines_.front().first <= now) {
      const uint64_t number = deadlines_.front().second;
      deadlines_.pop_front();
      const auto found = calls_.find(number);
      if (found == calls_.end()) continue;
      // The C client still has the ticket.
      if (const Finish finish = std::exchange(found->second.finish, nullptr))
        finish({.code = ZOPERATIONTIMEOUT});
    }
    if (!deadlines_.empty()) deadlines_timer_.Set(deadlines_.front().first);
  }

  const ClientOptions options_;
  net::EventLoop& loop_;
  const Listener listener_;
  std::shared_ptr<Session> session_;
  bool connected_ = false;
  bool stopped_ = false;
  base::BootTime heard_at_;
  int64_t session_id_ = 0;  // of the last session that had a connection
  uint64_t last_session_ = 0;
  uint64_t last_call_ = 0;
  std::map<uint64_t, PendingCall> calls_;
  std::deque<std::pair<base::BootTime, uint64_t>> deadlines_;
  std::map<uint64_t, std::thread> closers_;  // by session
  std::function<void()> left_;
  uint64_t left_session_ = 0;
  net::Timer deadlines_timer_;
  net::Timer lost_timer_;
  net::Timer lookup_timer_;
  std::vector<std::unique_ptr<net::NameLookup>> lookups_;
  size_t awaited_ = 0;
  std::vector<std::string> addresses_;
  absl::Status lookup_status_;
};

Client::Client(ClientOptions options, net::EventLoop& loop, Listener listener)
    : core_(std::make_shared<Core>(std::move(options), loop, std::move(listener))) {
  core_->LookUp();
}

Client::~Client() { core_->Stop(); }

void Client::Get(const std::string& path, Watch watch, Done<Node> done) {
  core_->Call(
      path, 0,
      Answering<Node>(
          path, Effect::kReads, std::move(done),
          [](Reply& reply) { return Node{.data = std::move(reply.text), .stat = reply.stat}; }),
      [&](zhandle_t* handle, const void* ticket) {
        return ::zoo_aget(handle, path.c_str(), static_cast<int>(watch), Core::OnData, ticket);
      });
}

void Client::Exists(const std::string& path, Watch watch, Done<NodeStat> done) {
  core_->Call(path, 0, Answering<NodeStat>(path, Effect::kReads, std::move(done), TakeStat),
              [&](zhandle_t* handle, const void* ticket) {
                return ::zoo_aexists(handle, path.c_str(), static_cast<int>(watch), Core::OnStat,
                                     ticket);
              });
}

void Client::List(const std::string& path, Watch watch, Done<Children> done) {
  core_->Call(path, 0,
              Answering<Children>(path, Effect::kReads, std::move(done),
                                  [](Reply& reply) {
                                    return Children{.names = std::move(reply.names),
                                                    .stat = reply.stat};
                                  }),
              [&](zhandle_t* handle, const void* ticket) {
                return ::zoo_aget_children2(handle, path.c_str(), static_cast<int>(watch),
                                            Core::OnChildren, ticket);
              });
}

void Client::Create(const std::string& path, std::string_view data, CreateMode mode,
                    Done<Created> done) {
  core_->Call(
      path, data.size(),
      Answering<Created>(
          path, Effect::kChanges, std::move(done),
          [](Reply& reply) { return Created{.path = std::move(reply.text), .stat = reply.stat}; }),
      [&](zhandle_t* handle, const void* ticket) {
        return ::zoo_acreate2(handle, path.c_str(), data.data(), static_cast<int>(data.size()),
                              core_->acl(), FlagsOf(mode), Core::OnCreated, ticket);
      });
}

void Client::Set(const std::string& path, std::string_view data, int32_t version,
                 Done<NodeStat> done) {
  core_->Call(path, data.size(),
              Answering<NodeStat>(path, Effect::kChanges, std::move(done), TakeStat),
              [&](zhandle_t* handle, const void* ticket) {
                return ::zoo_aset(handle, path.c_str(), data.data(), static_cast<int>(data.size()),
                                  version, Core::OnStat, ticket);
              });
}

void Client::Delete(const std::string& path, int32_t version,
                    std::function<void(absl::Status)> done) {
  core_->Call(path, 0, Ending(path, Effect::kChanges, std::move(done)),
              [&](zhandle_t* handle, const void* ticket) {
                return ::zoo_adelete(handle, path.c_str(), version, Core::OnDone, ticket);
              });
}

void Client::Replace(const std::string& path, std::string_view data, int32_t version,
                     std::function<void(absl::Status)> done) {
  auto call = std::make_shared<ReplaceCall>(path, data, version, core_->acl());
  core_->Call(
      path, path.size() + kMultiBytes + data.size(),
      Ending(path, Effect::kChanges, std::move(done)),
      [&](zhandle_t* handle, const void* ticket) {
        return ::zoo_amulti(handle, static_cast<int>(call->ops.size()), call->ops.data(),
                            call->results.data(), Core::OnDone, ticket);
      },
      call);
}

void Client::Sync(const std::string& path, std::function<void(absl::Status)> done) {
  core_->Call(path, 0, Ending(path, Effect::kReads, std::move(done)),
              [&](zhandle_t* handle, const void* ticket) {
                return ::zoo_async(handle, path.c_str(), Core::OnSynced, ticket);
              });
}

void Client::CreateAll(const std::string& path, std::function<void(absl::Status)> done) {
  Create(path, {}, CreateMode::kPersistent,
         [this, path, done = std::move(done)](const absl::StatusOr<Created>& created) {
           if (created.ok() || absl::IsAlreadyExists(created.status()))
             return done(absl::OkStatus());
           const size_t slash = path.rfind('/');
           if (!absl::IsNotFound(created.status()) || slash == 0) return done(created.status());
           CreateAll(path.substr(0, slash), [this, path, done](const absl::Status& status) {
             if (!status.ok()) return done(status);
             CreateAll(path, done);
           });
         });
}

void Client::Leave(std::function<void()> done) { core_->Leave(std::move(done)); }

bool Client::connected() const { return core_->connected(); }

base::BootTime Client::heard_at() const { return core_->heard_at(); }

int64_t Client::session_id() const { return core_->session_id(); }

}  // namespace headgate::client::zookeeper
