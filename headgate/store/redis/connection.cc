#include "headgate/store/redis/connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "headgate/base/check.h"
#include "headgate/store/redis/info_text.h"

namespace headgate::store::redis {
namespace {

// The least pause before a server that refused us is tried again.
constexpr base::Duration kRefusedPause = std::chrono::seconds(1);
// A connection that had worked is replaced within this time.
constexpr base::Duration kFirstPauseMax = std::chrono::milliseconds(4);
// A connection that was ready for this long has worked, even without a call.
constexpr base::Duration kWorkedAfter = std::chrono::seconds(1);
// Jitter, so that a fleet does not reconnect together.
constexpr uint32_t kPauseJitterPercent = 50;
// If an action that was due happens at least this much later, this process did not run meanwhile.
constexpr base::Duration kPauseLeast = std::chrono::milliseconds(2);

}  // namespace

Connection::Connection(const ConnectionSettings& settings, User& user, std::string& output,
                       uint64_t seed)
    : settings_(settings),
      user_(user),
      output_(output),
      random_(seed),
      window_(static_cast<uint32_t>(settings.in_flight_max)),
      patience_(settings.silence_max) {}

void Connection::Start(base::BootTime now) {
  resting_ = false;
  if (state_ != State::kDown) return;
  state_ = State::kConnecting;
  action_ = Action::kConnect;
  // The stream has its own timeout for connecting.
  handshake_until_ = base::BootTime{INT64_MAX};
  wake_at_ = expire_at_;
  (void)now;
}

void Connection::OnConnected(base::BootTime now) {
  state_ = State::kHandshake;
  handshake_until_ = now + settings_.handshake_timeout;
  WakeAt(handshake_until_);
  hello_refused_ = false;
  facts_ = {};
  server_info_.clear();
  StartHandshake({HandshakeStep::kHello});
}

// ---- HandshakeStep

void Connection::StartHandshake(std::vector<HandshakeStep> steps) {
  for (const HandshakeStep step : steps) Append(step);
  std::reverse(steps.begin(), steps.end());
  handshake_ = std::move(steps);
}

void Connection::Append(HandshakeStep step) {
  std::vector<std::string_view> words;
  const std::string database = std::to_string(settings_.database);
  const std::string password = settings_.password.Now();
  const std::string_view user =
      settings_.user.empty() ? "default" : std::string_view(settings_.user);
  switch (step) {
    case HandshakeStep::kHello:
      words = {"HELLO", "3"};
      if (!password.empty()) words.insert(words.end(), {"AUTH", user, password});
      if (!settings_.client_name.empty())
        words.insert(words.end(), {"SETNAME", settings_.client_name});
      break;
    case HandshakeStep::kAuth:
      words = {"AUTH"};
      if (!settings_.user.empty()) words.push_back(settings_.user);
      words.push_back(password);
      break;
    case HandshakeStep::kSetName:
      words = {"CLIENT", "SETNAME", settings_.client_name};
      break;
    case HandshakeStep::kSelect:
      words = {"SELECT", database};
      break;
    case HandshakeStep::kServer:
      words = {"INFO", "server"};
      break;
    case HandshakeStep::kReplication:
      words = {"INFO", "replication"};
      break;
    case HandshakeStep::kMemory:
      words = {"INFO", "memory"};
      break;
  }
  AppendCommand(output_, words);
}

void Connection::OnHandshakeReply(const wire::RespValue& reply, base::BootTime now) {
  if (handshake_.empty())
    return End(absl::UnavailableError("it sent an answer without a request"), kRefusedPause, now);
  const HandshakeStep step = handshake_.back();
  handshake_.pop_back();
  if (reply.is_error()) {
    OnHandshakeError(step, reply.text, now);
  } else if (step == HandshakeStep::kServer) {
    server_info_ = reply.text;
  } else if (step == HandshakeStep::kReplication) {
    facts_.identity = IdentityIn(server_info_, reply.text);
  } else if (step == HandshakeStep::kMemory) {
    facts_.eviction_policy = std::string(InfoField(reply.text, "maxmemory_policy"));
    facts_.may_evict =
        InfoField(reply.text, "maxmemory") != "0" && facts_.eviction_policy != "noeviction";
  }
  if (state_ != State::kHandshake || !handshake_.empty()) return;
  if (step != HandshakeStep::kMemory && !(settings_.sentinel && step != HandshakeStep::kHello)) {
    // HELLO was answered; the commands that follow are independent of each other.
    std::vector<HandshakeStep> steps;
    if (hello_refused_ && !settings_.password.empty()) steps.push_back(HandshakeStep::kAuth);
    if (hello_refused_ && !settings_.client_name.empty()) steps.push_back(HandshakeStep::kSetName);
    if (!settings_.sentinel) {
      if (settings_.database != 0) steps.push_back(HandshakeStep::kSelect);
      steps.insert(steps.end(),
                   {HandshakeStep::kServer, HandshakeStep::kReplication, HandshakeStep::kMemory});
    }
    if (!steps.empty()) return StartHandshake(std::move(steps));
  }
  OnHandshakeDone(now);
}

// The text of the error is not passed on, because old servers quote unknown commands, which may
// contain the password.
void Connection::OnHandshakeError(HandshakeStep step, std::string_view error, base::BootTime now) {
  const std::string_view code = ErrorCode(error);
  if (step == HandshakeStep::kHello && (code == "ERR" || code == "NOPROTO")) {
    // The server is older than Redis 6, or is a program that only resembles Redis.
    if (error.starts_with("ERR max number of clients")) {
      return End(absl::UnavailableError("it has reached its maximum number of clients"),
                 kRefusedPause, now);
    }
    hello_refused_ = true;
    return;
  }
  // A server that does not report its process may still report its history.
  if (step == HandshakeStep::kSetName || (step == HandshakeStep::kServer && code != "NOAUTH"))
    return;
  // The reply matters only for a strict store.
  if (step == HandshakeStep::kMemory && code != "NOAUTH") {
    facts_.may_evict = true;
    return;
  }
  if (code == "DENIED") {
    return End(absl::PermissionDeniedError(
                   "it is in protected mode, and answers only its own machine; give it a password "
                   "(requirepass) and Headgate the same one, or set protected-mode no in a network "
                   "of your own"),
               kRefusedPause, now);
  }
  const ReplyAction& action = ActionFor(error);
  if (step == HandshakeStep::kAuth || action.status == absl::StatusCode::kPermissionDenied) {
    return End(absl::PermissionDeniedError(fmt::format(
                   "it refuses the login of user '{}' ({}); check the store's user and password",
                   settings_.user.empty() ? "default" : settings_.user, code)),
               kRefusedPause, now);
  }
  // These two commands contain no secret.
  if (step == HandshakeStep::kSelect) {
    return End(absl::UnavailableError(
                   fmt::format("it has no database {} ({})", settings_.database, error)),
               kRefusedPause, now);
  }
  if (step == HandshakeStep::kReplication) {
    return End(
        absl::UnavailableError(fmt::format("it did not answer INFO replication ({})", error)),
        kRefusedPause, now);
  }
  End(absl::UnavailableError(fmt::format("it answered {} to HELLO", code)), kRefusedPause, now);
}

void Connection::OnHandshakeDone(base::BootTime now) {
  user_.OnFacts(facts_, now);
  if (!settings_.sentinel && !settings_.replica_ok && !facts_.identity.primary) {
    return End(absl::UnavailableError("it is a replica"), kRefusedPause, now);
  }
  if (settings_.strict_store && facts_.may_evict) {
    const std::string why =
        facts_.eviction_policy.empty()
            ? "INFO memory does not show whether it may evict live limits; allow Headgate's user "
              "to run "
              "INFO"
            : fmt::format(
                  "its eviction policy {} may delete live limits; set maxmemory-policy noeviction",
                  facts_.eviction_policy);
    return End(absl::FailedPreconditionError(why + ", or strict_store: no"), kRefusedPause, now);
  }
  state_ = State::kReady;
  ready_at_ = now;
  window_.Reset();
  user_.OnReady(now);
  if (state_ == State::kReady) SendWaiting(now);
}

// ---- Calls

void Connection::Send(PendingCall& call, base::BootTime now) {
  if (state_ == State::kReady && waiting_.empty() && HasRoom()) return SendNow(call, now);
  if (resting_) {
    resting_ = false;
    if (state_ == State::kDown) Start(now);
  }
  if (state_ != State::kReady && failed_attempts_ > 0)
    return user_.OnFailed(call, ConnectionEvent::kConnectRefused, now);
  if (waiting_.size() >= settings_.waiting_max)
    return user_.OnFailed(call, ConnectionEvent::kQueueFull, now);
  waiting_.push_back(&call);
  ExpireAt(EndOf(call, call.started, now));
}

void Connection::SendNow(PendingCall& call, base::BootTime now) {
  if (user_.Withholds(call, now)) return user_.OnFailed(call, ConnectionEvent::kLearning, now);
  if (in_flight_.empty()) patience_.OnFirst(now);
  if (call.asking) {
    output_.append("*1\r\n$6\r\nASKING\r\n");
    in_flight_.push_back({.call = nullptr, .at = now});
  }
  call.Encode(output_);
  call.scripts_sent_before = scripts_sent_;
  if (call.with_text) ++scripts_sent_;
  in_flight_.push_back({.call = &call, .at = now});
  has_unwritten_ = true;
  ++calls_appended_;
  ExpireAt(EndOf(call, now, now));
  WakeAt(in_flight_.front().at + settings_.reply_overdue);
}

void Connection::OnWritten(base::BootTime now) {
  if (std::exchange(has_unwritten_, false) && !in_flight_.empty())
    CountPause(in_flight_.back().at, now);
}

// An action that was due at `due` happens only now. If that is late by kPauseLeast, this process
// did not run meanwhile, and the pause does not count for any call.
void Connection::CountPause(base::BootTime due, base::BootTime now) {
  const base::Duration pause = now - std::max(due, counted_until_);
  if (pause < kPauseLeast) return;
  counted_until_ = now;
  patience_.OnPause(pause, now);
  for (Sent& sent : in_flight_) {
    sent.at = std::min(sent.at + pause, now);
    if (sent.call != nullptr) sent.call->deadline += pause;
  }
  for (PendingCall* call : waiting_) call->deadline += pause;
}

void Connection::SendWaiting(base::BootTime now) {
  while (!waiting_.empty() && HasRoom()) {
    PendingCall& call = *waiting_.front();
    waiting_.pop_front();
    // If nothing is in flight, no reply can be late.
    const base::BootTime end = patience_.WholeEndOf(WaiterOf(call, now), now);
    if (end <= now || (!in_flight_.empty() && !window_.MakesIt(end, now))) {
      user_.OnFailed(call, UnsentEvent(call), now);
      if (state_ != State::kReady) return;
    } else {
      SendNow(call, now);
    }
  }
}

void Connection::OnWorked() {
  failed_attempts_ = 0;
  back_at_once_ = true;
}

void Connection::OnCallReply(base::BootTime now) {
  const Sent sent = in_flight_.front();
  in_flight_.pop_front();
  if (!reply_.is_error()) OnWorked();
  answered_at_ = now;
  if (sent.call != nullptr) {
    patience_.OnAnswer(now - sent.at, sent.call->timeout, now);
    const base::BootTime end = patience_.WholeEndOf(WaiterOf(*sent.call, sent.at), now);
    window_.OnAnswer(now - sent.at, end - sent.call->started, !waiting_.empty());
  } else {
    patience_.OnAnswer(base::Duration::max(), {}, now);
  }
  if (sent.late) {
    ++late_replies_;
    if (!reply_.is_error()) user_.OnLateReply(now);
  }
  if (sent.call != nullptr) user_.OnReply(*sent.call, reply_, now);
  if (!retired_.ok() && in_flight_.empty()) End(absl::Status(retired_), {}, now);
}

void Connection::OnBytes(std::string_view bytes, base::BootTime now) {
  CountPause(wake_at_, now);
  const uint64_t generation = generation_;
  const bool kept = !rest_.empty();
  std::string_view input = bytes;
  if (kept) {
    rest_.append(bytes);
    input = rest_;
  }
  while (true) {
    size_t consumed = 0;
    const wire::RespReader::Step step = reader_.Read(input, consumed);
    input.remove_prefix(consumed);
    if (step == wire::RespReader::Step::kIncomplete) break;
    if (step == wire::RespReader::Step::kError) {
      return End(
          absl::UnavailableError(fmt::format("its answer is malformed: {}", reader_.error())), {},
          now);
    }
    if (reader_.value().kind == wire::RespValue::Kind::kPush) continue;
    if (state_ == State::kHandshake) {
      OnHandshakeReply(reader_.value(), now);
    } else if (in_flight_.empty()) {
      return End(absl::UnavailableError("it sent an answer without a request"), {}, now);
    } else {
      // The reply is swapped out of the reader, which may be reset during the callback. So both
      // keep their memory.
      std::swap(reply_, reader_.value());
      OnCallReply(now);
    }
    if (generation_ != generation) return;  // the connection ended meanwhile
  }
  if (kept) {
    rest_.erase(0, rest_.size() - input.size());
  } else {
    rest_.assign(input);
  }
  if (state_ == State::kReady && !waiting_.empty()) SendWaiting(now);
}

// ---- The end, and time

void Connection::OnClosed(const absl::Status& why, base::BootTime now) {
  End(why, {}, now);
  if (action_ == Action::kDisconnect) action_ = Action::kNone;
}

void Connection::Retire(const absl::Status& why, base::BootTime now) {
  if (state_ != State::kReady || in_flight_.empty()) return End(why, {}, now);
  retired_ = why;
}

void Connection::Rest(base::BootTime now) {
  if (resting_ || !waiting_.empty()) return;
  resting_ = true;
  if (state_ != State::kDown) return Retire(absl::CancelledError("it is not needed"), now);
  failed_attempts_ = 0;
  retry_at_ = base::BootTime{INT64_MAX};
}

void Connection::Drop(const absl::Status& why, base::BootTime now) { End(why, {}, now); }

void Connection::End(const absl::Status& why, base::Duration pause_min, base::BootTime now) {
  if (state_ == State::kDown) return;
  const bool was_ready = state_ == State::kReady;
  if (was_ready && (now - ready_at_ >= kWorkedAfter || absl::IsCancelled(why))) OnWorked();
  state_ = State::kDown;
  action_ = Action::kDisconnect;
  ++generation_;
  ++reconnects_;
  output_.clear();
  rest_.clear();
  reader_ = wire::RespReader(kReplyBounds);
  handshake_.clear();
  retired_ = absl::OkStatus();
  if (was_ready && pause_min == base::Duration(0) && back_at_once_) {
    // A connection is replaced at once only if it has worked: a server may complete the handshake
    // and then close each time.
    back_at_once_ = false;
    retry_at_ =
        now + base::Duration(static_cast<int64_t>(random_.Below(uint64_t{kFirstPauseMax.count()})));
  } else {
    base::Duration pause = settings_.reconnect_min;
    for (uint32_t i = 0; i < failed_attempts_ && pause < settings_.reconnect_max; ++i) pause *= 2;
    retry_at_ = now + std::max(pause_min, random_.Jitter(std::min(pause, settings_.reconnect_max),
                                                         kPauseJitterPercent));
    ++failed_attempts_;
  }
  if (resting_) {
    failed_attempts_ = 0;
    retry_at_ = base::BootTime{INT64_MAX};
  }
  wake_at_ = std::min(retry_at_, expire_at_);
  std::deque<Sent> sent;
  sent.swap(in_flight_);
  has_unwritten_ = false;
  for (const Sent& entry : sent) {
    if (entry.call != nullptr) user_.OnFailed(*entry.call, ConnectionEvent::kClosed, now);
  }
  user_.OnDown(why, now);
  if (failed_attempts_ > 0) {
    FailWaiting(why.code() == absl::StatusCode::kFailedPrecondition
                    ? ConnectionEvent::kStoreRefused
                    : ConnectionEvent::kConnectRefused,
                now);
  }
}

void Connection::FailWaiting(ConnectionEvent event, base::BootTime now) {
  std::deque<PendingCall*> waiting;
  waiting.swap(waiting_);
  for (PendingCall* call : waiting) user_.OnFailed(*call, event, now);
}

void Connection::OnTime(base::BootTime now) {
  CountPause(wake_at_, now);
  wake_at_ = base::BootTime{INT64_MAX};
  if (state_ == State::kDown && now >= retry_at_ && generation_ > 0) Start(now);
  if (state_ == State::kHandshake && now >= handshake_until_) {
    End(absl::UnavailableError("it connected, and did not say hello in time"), {}, now);
  }
  if (now >= expire_at_) ExpireCalls(now);
  if (!in_flight_.empty() && now - in_flight_.front().at >= settings_.reply_overdue) {
    End(absl::UnavailableError("it has not answered within the timeout"), {}, now);
  }
  if (state_ == State::kDown && generation_ > 0) WakeAt(retry_at_);
  if (state_ == State::kHandshake) WakeAt(handshake_until_);
  if (!in_flight_.empty()) WakeAt(in_flight_.front().at + settings_.reply_overdue);
  WakeAt(expire_at_);
}

// Most calls have the same timeout, so this runs about once per timeout, over the calls in flight.
void Connection::ExpireCalls(base::BootTime now) {
  expire_at_ = base::BootTime{INT64_MAX};
  std::vector<std::pair<PendingCall*, ConnectionEvent>> expired;
  for (Sent& sent : in_flight_) {
    if (sent.call == nullptr) continue;
    if (const base::BootTime end = EndOf(*sent.call, sent.at, now); end > now) {
      expire_at_ = std::min(expire_at_, end);
      continue;
    }
    // A silence does not show how many calls the server can take.
    if (answered_at_ >= sent.at) window_.OnTimeout(sent.at, now);
    expired.emplace_back(sent.call, ConnectionEvent::kReplyTimeout);
    sent.call = nullptr;
    sent.late = true;
  }
  std::erase_if(waiting_, [&](PendingCall* call) {
    if (const base::BootTime end = EndOf(*call, call->started, now); end > now) {
      expire_at_ = std::min(expire_at_, end);
      return false;
    }
    expired.emplace_back(call, UnsentEvent(*call));
    return true;
  });
  for (const auto& [call, event] : expired) user_.OnFailed(*call, event, now);
}

}  // namespace headgate::store::redis
