// The client of one event loop. A call goes to the server that has its key (Dispatch, SendTo). If
// the server has not done the call, Follow decides whether it is sent again: elsewhere, later, with
// the text of its script, or not at all. Invariant: a call is owned by exactly one of a shard,
// `later_` and `unrouted_`, until Finish calls its `done` once. One file because every event of a
// server can move a call between these three.
#include "headgate/store/redis/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "headgate/wire/resp_number.h"

namespace headgate::store::redis {
namespace {

// How often servers are asked for their history, and servers that are gone are forgotten.
constexpr base::Duration kLookInterval = std::chrono::seconds(1);

constexpr uint8_t kRedirectsMax = 5;
// The pause before a call to a moving slot is retried.
constexpr base::Duration kRetrySoonMin = std::chrono::milliseconds(5);
constexpr base::Duration kRetrySoonSpread = std::chrono::milliseconds(15);
// The pause before a call is retried at an address that another server has taken over.
constexpr base::Duration kRetryFreshMin = std::chrono::milliseconds(2);
constexpr base::Duration kRetryFreshSpread = std::chrono::milliseconds(3);

Shard::Settings SettingsFor(const RedisOptions& options, const std::shared_ptr<net::TlsClient>& tls,
                            bool sentinel) {
  return {.stream = {.server_name = options.tls_server_name,
                     .connect_timeout = options.connect_timeout},
          .tls = tls,
          .connection = {.user = sentinel ? options.sentinel_user : options.user,
                         .password = sentinel ? options.sentinel_password : options.password,
                         .database = options.database,
                         .client_name = options.client_name,
                         .sentinel = sentinel,
                         .replica_ok = options.topology == TopologyKind::kCluster,
                         .strict_store = options.strict_store,
                         .handshake_timeout = options.connect_timeout,
                         .reply_overdue = options.reply_overdue,
                         .silence_max = options.silence_max,
                         .reconnect_min = options.reconnect_min,
                         .reconnect_max = options.reconnect_max,
                         .in_flight_max = options.in_flight_max,
                         .waiting_max = options.waiting_max},
          .breaker = options.breaker,
          .connections = sentinel ? 1 : options.connections_per_server,
          // Every held lease that is not tiny was granted within this time (leases.md).
          .clock_memory = options.lease_ttl + kLookInterval};
}

// Reads the answer to TIME: seconds and microseconds.
std::optional<base::Instant> ClockIn(const wire::RespValue& answer) {
  if (answer.kind != wire::RespValue::Kind::kArray || answer.items.size() != 2) return std::nullopt;
  const std::optional<int64_t> seconds = wire::RespNumber(answer.items[0].text);
  const std::optional<int64_t> micros = wire::RespNumber(answer.items[1].text);
  constexpr int64_t kSecondsMax = 4'000'000'000;
  if (!seconds || !micros || *seconds < 0 || *seconds > kSecondsMax || *micros < 0 ||
      *micros > 999'999) {
    return std::nullopt;
  }
  return base::Instant::FromNanos(*seconds * 1'000'000'000 + *micros * 1'000);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Client>> Client::Make(net::EventLoop& loop,
                                                     const RedisOptions& options, uint64_t seed,
                                                     StoreListener listener) {
  if (const auto problems = options.Problems(); !problems.empty())
    return absl::InvalidArgumentError(problems[0].what);
  std::shared_ptr<net::TlsClient> tls;
  if (options.tls) {
    HEADGATE_ASSIGN_OR_RETURN(tls, net::TlsClient::Load(options.tls_files));
  }
  return std::unique_ptr<Client>(
      new Client(loop, options, std::move(tls), seed, std::move(listener)));
}

Client::Client(net::EventLoop& loop, const RedisOptions& options,
               std::shared_ptr<net::TlsClient> tls, uint64_t seed, StoreListener listener)
    : loop_(loop),
      options_(options),
      tls_(std::move(tls)),
      random_(seed),
      reports_(std::move(listener)),
      retries_(options.retry_percent),
      topology_(MakeTopology(options, random_.Next())),
      histories_(options.lease_ttl),
      turn_end_(loop, [this] { turn_open_ = false; }),
      timer_(loop, [this] { OnTime(); }) {
  const base::BootTime now = loop_.Now();
  ConnectServersInUse(now);
  AskTopology(now);
  SetTimer();
}

Client::~Client() = default;

base::BootTime Client::Now() {
  if (!turn_open_) {
    turn_now_ = loop_.Now();
    turn_open_ = true;
    loop_.AtEndOfTurn(turn_end_);
  }
  return turn_now_;
}

// ---- Calls

PendingCall& Client::Acquire(std::string_view key, base::Duration timeout, Done done) {
  PendingCall& call = calls_.Take();
  call.script = nullptr;
  call.argument_count = 0;
  call.body.clear();
  call.key.assign(key);
  call.started = Now();
  call.timeout = timeout > base::Duration(0) ? timeout : options_.timeout;
  // `timeout` bounds the silence of the server, `wait_max` the wait while it answers other calls.
  call.deadline = call.started + std::max(call.timeout, options_.wait_max);
  call.done = std::move(done);
  call.redirects = call.retries = call.script_misses = 0;
  call.with_text = call.asking = call.own = call.learns = false;
  call.pass = Breaker::Pass::kRefused;
  return call;
}

void Client::Call(const ScriptCall& call, base::Duration timeout, Done done) {
  PendingCall& pending = Acquire(call.key, timeout, std::move(done));
  pending.script = call.script;
  pending.learns = call.learns;
  if (call.give_up_at.ns > 0) pending.deadline = std::min(pending.deadline, call.give_up_at);
  pending.argument_count = static_cast<uint32_t>(call.arguments.size());
  wire::RespWriter writer(pending.body, wire::RespVersion::k2);
  writer.Bulk(call.key);
  for (const std::string_view argument : call.arguments) writer.Bulk(argument);
  retries_.OnCall();
  Dispatch(pending, pending.started);
}

void Client::CallCommand(std::string_view key, std::span<const std::string_view> words,
                         base::Duration timeout, Done done) {
  PendingCall& pending = Acquire(key, timeout, std::move(done));
  AppendCommand(pending.body, words);
  retries_.OnCall();
  Dispatch(pending, pending.started);
}

void Client::Dispatch(PendingCall& call, base::BootTime now) {
  if (const std::optional<uint32_t> server = topology_->Find(call.key))
    return SendTo(*server, call, now);
  if (unrouted_.size() >= options_.waiting_max) {
    return Finish(call, absl::ResourceExhaustedError(
                            "store redis: too many calls wait until their server is known"));
  }
  unrouted_.push_back(&call);
  WakeAt(call.UnroutedUntil());
  Suspect(now);
}

void Client::SendTo(uint32_t server, PendingCall& call, base::BootTime now) {
  Shard& shard = EnsureShard(server, now);
  // After a server has refused us, nothing is sent to it for a second.
  if (const absl::Status& paused = shard.PausedAt(now); !paused.ok()) return Finish(call, paused);
  call.pass = shard.breaker().Ask(now);
  if (call.pass == Breaker::Pass::kRefused) {
    // No other server is tried, because this one has the key, as far as is known.
    return OnFailed(shard, call, ConnectionEvent::kBreakerOpen, now);
  }
  shard.Send(call, now);
}

bool Client::RetryLater(PendingCall& call, base::Duration least, base::Duration spread,
                        base::BootTime now) {
  const base::BootTime at =
      now + least +
      base::Duration(static_cast<int64_t>(random_.Below(static_cast<uint64_t>(spread.count()))));
  // The budget is charged last, so that a call without time left does not use it up.
  if (at >= call.deadline || !MayRetry(call, now)) return false;
  later_.push_back({at, &call});
  WakeAt(at);
  return true;
}

// Retries on a fresh connection to the current primary. If the topology can tell which server is
// the primary, the call waits for its answer.
bool Client::RetryFresh(PendingCall& call, base::BootTime now) {
  const bool asks = topology_->wake_at().ns != INT64_MAX;
  if (!asks) return RetryLater(call, kRetryFreshMin, kRetryFreshSpread, now);
  if (unrouted_.size() >= options_.waiting_max || now >= call.UnroutedUntil()) return false;
  if (!MayRetry(call, now)) return false;
  unrouted_.push_back(&call);
  WakeAt(call.UnroutedUntil());
  return true;
}

bool Client::MayRetry(PendingCall& call, base::BootTime now) {
  if (call.retries > 0 || now >= call.deadline) return false;
  if (!retries_.Take()) {
    counters_.retries_refused.Add();
    return false;
  }
  ++call.retries;
  counters_.retries.Add();
  return true;
}

void Client::Finish(PendingCall& call, const PendingCall::Outcome& outcome) {
  if (!outcome.ok() && !call.own) CountFailure(outcome.status().code());
  const Done done = std::exchange(call.done, nullptr);
  calls_.Release(call);
  done(outcome);
}

void Client::CountAnswer(const PendingCall& call, base::BootTime now) {
  if (call.own) return;
  counters_.calls_answered.Add();
  counters_.call_ns.Add(static_cast<uint64_t>(std::max<int64_t>(0, (now - call.started).count())));
}

void Client::CountFailure(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kUnavailable:
      return counters_.calls_unavailable.Add();
    case absl::StatusCode::kDeadlineExceeded:
      return counters_.calls_timed_out.Add();
    case absl::StatusCode::kAborted:
      return counters_.calls_aborted.Add();
    case absl::StatusCode::kPermissionDenied:
      return counters_.calls_denied.Add();
    case absl::StatusCode::kResourceExhausted:
      return counters_.calls_refused.Add();
    default:
      return counters_.calls_failed.Add();
  }
}

void Client::FinishBreaker(Shard& shard, PendingCall& call, Breaker::Outcome outcome,
                           base::BootTime now) {
  const Breaker::Pass pass = std::exchange(call.pass, Breaker::Pass::kRefused);
  if (pass == Breaker::Pass::kRefused) return;
  Breaker& breaker = shard.breaker();
  const bool was_closed = breaker.state() == Breaker::State::kClosed;
  const uint64_t opened = breaker.opened();
  breaker.Finish(pass, outcome, now);
  const bool closed = breaker.state() == Breaker::State::kClosed;
  counters_.breaker_opened.Add(breaker.opened() - opened);
  if (was_closed == closed) return;
  if (closed) {
    counters_.breakers_open.Subtract();
  } else {
    counters_.breakers_open.Add();
  }
  reports_.Breaker(shard.name(), !closed);
}

void Client::OnReply(Shard& shard, PendingCall& call, const wire::RespValue& reply,
                     base::BootTime now) {
  // An answer, even an error of our script, proves that the server works. So only errors that the
  // table counts as failures count against the breaker.
  if (!reply.is_error()) {
    FinishBreaker(shard, call, Breaker::Outcome::kSuccess, now);
    CountAnswer(call, now);
    if (!call.own) reports_.Used();
    return Finish(call, &reply);
  }
  const ReplyAction& action = ActionFor(reply.text);
  FinishBreaker(shard, call,
                action.counts_as_failure ? Breaker::Outcome::kFailure : Breaker::Outcome::kSuccess,
                now);
  if (action.alarms) Alarm(shard, reply.text);
  if (action.pauses_server) {
    const std::string why = fmt::format("it refuses us ({})", action.code);
    shard.Pause(absl::PermissionDeniedError(fmt::format("store redis {}: {}", shard.name(), why)),
                now);
    reports_.Refused(shard.name(), why);
  }
  if (action.action == CallAction::kPassOn) {
    CountAnswer(call, now);
    return Finish(call, &reply);
  }
  if (action.refreshes_topology) Suspect(now);
  // The connection ends only after its other calls are answered: they are independent of this
  // error.
  if (action.drops_connection)
    shard.Retire(call, absl::UnavailableError(fmt::format("it says {}", action.code)), now);
  Follow(shard, call, action, reply.text, now);
}

// Decides about a call that the server has not done.
void Client::Follow(Shard& shard, PendingCall& call, const ReplyAction& action,
                    std::string_view error, base::BootTime now) {
  const bool in_time = now < call.deadline;
  switch (action.action) {
    case CallAction::kFollow:
    case CallAction::kAsk: {
      if (!in_time || call.redirects >= kRedirectsMax) break;
      const bool remember = action.action == CallAction::kFollow;
      const std::optional<uint32_t> server = topology_->OnRedirect(error, shard.index(), remember);
      if (!server) {
        // For example, a cluster that is configured as a single server.
        Alarm(shard, error);
        break;
      }
      // MOVED changes the map of slots, so servers may be needed that have no connection yet.
      if (remember) ConnectServersInUse(now);
      ++call.redirects;
      counters_.redirects.Add();
      call.asking = !remember;
      return SendTo(*server, call, now);
    }
    case CallAction::kRetrySoon:
      call.asking = false;
      if (RetryLater(call, kRetrySoonMin, kRetrySoonSpread, now)) return;
      break;
    case CallAction::kRetryFresh:
      if (RetryFresh(call, now)) return;
      break;
    case CallAction::kSendScript: {
      counters_.script_misses.Add();
      // A server that does not know the script although it got its text is not asked again.
      if (!in_time || call.script == nullptr || call.with_text) break;
      // Another call that missed the script may have sent its text already; then the digest
      // suffices.
      const bool text_followed =
          shard.connection(call.link).scripts_sent() > call.scripts_sent_before;
      call.with_text = call.script_misses > 0 || !text_followed;
      ++call.script_misses;
      return SendTo(shard.index(), call, now);
    }
    case CallAction::kFail:
    case CallAction::kPassOn:
      break;
  }
  Finish(call, absl::Status(action.status, fmt::format("store redis {}: {}", shard.name(), error)));
}

void Client::OnFailed(Shard& shard, PendingCall& call, ConnectionEvent event, base::BootTime now) {
  const ReplyAction& action = ActionFor(event);
  // An event that says nothing about the server, such as a refusal by the breaker itself, leaves
  // the breaker alone.
  const auto failure = IsTimeout(event) ? Breaker::Outcome::kNoAnswer : Breaker::Outcome::kFailure;
  FinishBreaker(shard, call, action.counts_as_failure ? failure : Breaker::Outcome::kNeither, now);
  if (action.refreshes_topology) Suspect(now);
  Finish(call, shard.StatusOf(event));
}

void Client::Alarm(const Shard& shard, std::string_view error) {
  counters_.alarms.Add();
  reports_.Alarm(shard.name(), error);
}

// ---- Servers

Shard& Client::EnsureShard(uint32_t server, base::BootTime now) {
  if (server >= shards_.size()) shards_.resize(server + 1);
  std::unique_ptr<Shard>& shard = shards_[server];
  if (shard == nullptr) {
    shard = std::make_unique<Shard>(loop_, server, topology_->servers()[server],
                                    SettingsFor(options_, tls_, topology_->IsSentinel(server)),
                                    static_cast<Shard::User&>(*this), counters_, random_.Next());
    shard->Start(now);
  }
  return *shard;
}

void Client::ConnectServersInUse(base::BootTime now) {
  for (uint32_t server = 0; server < topology_->servers().size(); ++server) {
    if (!topology_->InUse(server)) {
      // The next call reconnects it.
      if (server < shards_.size() && shards_[server] != nullptr) shards_[server]->Rest(now);
      continue;
    }
    Shard& shard = EnsureShard(server, now);
    // The server was promoted, so its report as a replica is out of date.
    if (shard.was_replica()) shard.Restart(now);
  }
}

bool Client::Withholds(const Shard& shard, const PendingCall& call, base::BootTime now) const {
  return call.learns && histories_.LearningUntil(ShardOf(shard.index()), now).has_value();
}

void Client::OnIdentity(Shard& shard, const ServerIdentity& identity, base::BootTime now) {
  // Sentinels hold no buckets, so they have no history.
  if (topology_->IsSentinel(shard.index())) return;
  const uint32_t index = ShardOf(shard.index());
  const bool was_learning = histories_.LearningUntil(index, now).has_value();
  const HistoryChange change = histories_.OnSeen(index, identity, now, shard.index());
  if (change != HistoryChange::kNone) counters_.history_changes[static_cast<size_t>(change)].Add();
  const std::optional<base::BootTime> until = histories_.LearningUntil(index, now);
  // Reported once per term: a further change within a term adds nothing (shard_histories.h).
  if (was_learning || !until) return;
  counters_.shards_learning.Add();
  learning_.push_back({.shard = index, .server = shard.name(), .until = *until});
  WakeAt(*until);
  reports_.Learning(shard.name(), change, *until - now);
}

void Client::EndLearning(base::BootTime now) {
  std::erase_if(learning_, [&](const Learning& learning) {
    if (now < learning.until) return false;
    counters_.shards_learning.Subtract();
    reports_.Learned(learning.server);
    return true;
  });
}

void Client::OnFacts(Shard& shard, const ServerFacts& facts, base::BootTime) {
  const bool concerns = facts.may_evict && !options_.strict_store;
  reports_.EvictionPolicy(shard.index(), shard.name(),
                          concerns && !topology_->IsSentinel(shard.index())
                              ? std::optional(facts.eviction_policy)
                              : std::nullopt);
}

void Client::OnReady(Shard& shard, base::BootTime now) {
  shard.breaker().ProbeSoon(now);
  reports_.Connection(shard.index(), shard.name(), absl::OkStatus());
}

void Client::OnDown(Shard& shard, const absl::Status& why, base::BootTime now) {
  if (absl::IsCancelled(why)) return;  // we closed it
  Suspect(now);
  // The server refuses us, or must not be used: an operator has to act.
  if (absl::IsPermissionDenied(why) || absl::IsFailedPrecondition(why)) {
    counters_.alarms.Add();
    reports_.Refused(shard.name(), std::string(why.message()));
  }
  reports_.Connection(shard.index(), shard.name(), why);
}

const Shard* Client::FindShard(std::string_view key) const {
  const std::optional<uint32_t> server = topology_->Find(key);
  return server && *server < shards_.size() ? shards_[*server].get() : nullptr;
}

std::optional<base::BootTime> Client::LearningUntil(std::string_view key) const {
  const std::optional<uint32_t> server = topology_->Find(key);
  if (!server) return std::nullopt;
  return histories_.LearningUntil(ShardOf(*server), loop_.Now());
}

bool Client::AvailableFor(std::string_view key) const {
  const Shard* const shard = FindShard(key);
  return shard != nullptr && shard->ready() && shard->breaker().state() == Breaker::State::kClosed;
}

// ---- The topology

void Client::Suspect(base::BootTime now) {
  topology_->OnSuspicion(now);
  if (!asking_topology_) WakeAt(topology_->wake_at());
}

void Client::AskTopology(base::BootTime now) {
  // One query at a time: an older answer must not overwrite a newer one.
  if (asking_topology_) return;
  const std::optional<Topology::Query> query = topology_->Ask(now);
  if (!query) return;
  asking_topology_ = true;
  counters_.topology_refreshes.Add();
  PendingCall& call = Acquire("", std::max(options_.timeout, options_.connect_timeout) * 4,
                              [this, server = query->server](const PendingCall::Outcome& answer) {
                                OnTopologyAnswer(server, answer);
                              });
  call.own = true;
  const std::vector<std::string_view> words(query->words.begin(), query->words.end());
  AppendCommand(call.body, words);
  // Bypasses the breaker: the answer shows the way around a server in trouble.
  EnsureShard(query->server, now).Send(call, now);
}

void Client::OnTopologyAnswer(uint32_t server, const PendingCall::Outcome& answer) {
  asking_topology_ = false;
  const base::BootTime now = Now();
  if (!answer.ok()) {
    topology_->OnNoAnswer(now);
  } else if ((*answer)->is_error()) {
    topology_->OnNoAnswer(now);
    // A server that is loading or has lost its primary recovers by itself; other errors need an
    // operator.
    const ReplyAction& action = ActionFor((*answer)->text);
    if (action.alarms || action.action == CallAction::kPassOn) {
      TellTopology(server, fmt::format("it answered {}", (*answer)->text));
    }
  } else {
    const bool changed = topology_->OnAnswer(**answer, now);
    TellTopology(server, topology_->problem());
    if (changed) {
      counters_.topology_changes.Add();
      ConnectServersInUse(now);
    }
  }
  // Every waiting call is routed again, whatever the answer was. If its server is still unknown, it
  // waits again, until UnroutedUntil. The queue is swapped out first, because Dispatch may append
  // to it.
  std::deque<PendingCall*> unrouted;
  unrouted.swap(unrouted_);
  for (PendingCall* call : unrouted) Dispatch(*call, now);
  SetTimer();
}

// While no server gives the topology, every decision is made without the store, and only this
// report shows why.
void Client::TellTopology(uint32_t server, const std::string& problem) {
  if (!problem.empty()) counters_.alarms.Add();
  reports_.Topology(server, shards_[server]->name(), problem);
}

void Client::LookAtServers(base::BootTime now) {
  if (now < look_at_servers_at_) return;
  look_at_servers_at_ = now + kLookInterval;
  ForgetServers();
  LookAtHistories(now);
  LookAtClocks(now);
}

// Forgets servers that a cluster no longer has. Otherwise the indices would run out if nodes keep
// coming and going at new addresses.
void Client::ForgetServers() {
  for (uint32_t server = 0; server < shards_.size(); ++server) {
    std::unique_ptr<Shard>& shard = shards_[server];
    if (shard == nullptr || !shard->at_rest() || !topology_->Forget(server)) continue;
    if (shard->breaker().state() != Breaker::State::kClosed) counters_.breakers_open.Subtract();
    shard.reset();
    reports_.Forget(server);
    // Behind sentinels the history continues on another server.
    if (options_.topology != TopologyKind::kSentinel) histories_.Forget(ShardOf(server));
  }
}

// Asks on every connection, because connections survive when a server is demoted and promoted
// again.
void Client::LookAtHistories(base::BootTime now) {
  for (const std::unique_ptr<Shard>& shard : shards_) {
    if (shard == nullptr || topology_->IsSentinel(shard->index())) continue;
    for (uint32_t link = 0; link < shard->link_count(); ++link) {
      if (shard->connection(link).state() != Connection::State::kReady) continue;
      PendingCall& call = Acquire(
          "", kLookInterval, [this, &shard = *shard, link](const PendingCall::Outcome& answer) {
            if (answer.ok() && !(*answer)->is_error())
              shard.OnReplicationInfo(link, (*answer)->text, loop_.Now());
          });
      call.own = true;
      constexpr std::string_view kWords[] = {"INFO", "replication"};
      AppendCommand(call.body, kWords);
      shard->SendOver(link, call, now);
    }
  }
}

// If no call has come that could be the breaker's probe, the TIME command is the probe.
void Client::LookAtClocks(base::BootTime now) {
  for (const std::unique_ptr<Shard>& shard : shards_) {
    if (shard == nullptr || !shard->ready() || topology_->IsSentinel(shard->index())) continue;
    const base::BootTime asked = loop_.Now();
    const bool probes = shard->breaker().LacksProbe(kLookInterval, now);
    PendingCall& call = Acquire(
        "", probes ? options_.timeout : kLookInterval,
        [this, &shard = *shard, asked](const PendingCall::Outcome& answer) {
          const std::optional<base::Instant> clock = answer.ok() ? ClockIn(**answer) : std::nullopt;
          if (!clock) return;
          const auto missed = shard.clock_watch().OnAnswer(*clock, asked, loop_.Now());
          if (!missed) return;
          counters_.pauses_missed.Add();
          reports_.PauseMissed(shard.name(), *missed);
        });
    call.own = true;
    if (probes) call.pass = shard->breaker().Ask(now);
    constexpr std::string_view kWords[] = {"TIME"};
    AppendCommand(call.body, kWords);
    shard->Send(call, now);
  }
}

void Client::OnTime() {
  const base::BootTime now = loop_.Now();
  timer_at_ = base::BootTime{INT64_MAX};
  // Calls are collected before they are sent or ended, because a `done` may make further calls,
  // which change the lists.
  std::vector<PendingCall*> due;
  std::erase_if(later_, [&](const Later& later) {
    if (later.at <= now) due.push_back(later.call);
    return later.at <= now;
  });
  for (PendingCall* call : due) {
    if (now < call->deadline) {
      Dispatch(*call, now);
    } else {
      Finish(*call, absl::UnavailableError("store redis: no time was left for a retry"));
    }
  }
  std::vector<PendingCall*> expired;
  std::erase_if(unrouted_, [&](PendingCall* call) {
    if (call->UnroutedUntil() <= now) expired.push_back(call);
    return call->UnroutedUntil() <= now;
  });
  for (PendingCall* call : expired) {
    Finish(*call,
           absl::UnavailableError("store redis: the server that holds the key is not known yet"));
  }
  AskTopology(now);
  EndLearning(now);
  LookAtServers(now);
  SetTimer();
}

void Client::SetTimer() {
  WakeAt(look_at_servers_at_);
  for (const Learning& learning : learning_) WakeAt(learning.until);
  if (!asking_topology_) WakeAt(topology_->wake_at());
  for (const Later& later : later_) WakeAt(later.at);
  for (const PendingCall* call : unrouted_) WakeAt(call->UnroutedUntil());
}

void Client::WakeAt(base::BootTime at) {
  // The timer is only ever moved to an earlier time. If it fires too early, OnTime finds nothing
  // due, and SetTimer sets it again.
  if (at >= timer_at_) return;
  timer_at_ = at;
  timer_.Set(at);
}

}  // namespace headgate::store::redis
