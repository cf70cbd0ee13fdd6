#include "headgate/store/redis/shard.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace headgate::store::redis {
namespace {

constexpr base::Duration kPause = std::chrono::seconds(1);

std::string_view Sentence(ConnectionEvent event) {
  switch (event) {
    case ConnectionEvent::kReplyTimeout:
      return "no answer in time";
    case ConnectionEvent::kQueueTimeout:
      return "the call the call could not be sent in time";
    case ConnectionEvent::kOutOfTime:
      return "too many calls were ahead in the queue";
    case ConnectionEvent::kClosed:
      return "the connection ended before the answer";
    case ConnectionEvent::kConnectRefused:
      return "no connection";
    case ConnectionEvent::kQueueFull:
      return "too many calls are waiting for it";
    case ConnectionEvent::kBreakerOpen:
      return "it has failed, and its breaker is open";
    case ConnectionEvent::kStoreRefused:
      return "it cannot be used";
    case ConnectionEvent::kLearning:
      return "learning: its data may lack leases that are being spent, until the last of them "
             "has ended";
  }
  return "";
}

}  // namespace

Shard::Shard(net::EventLoop& loop, uint32_t index, const net::StreamTarget& target,
             const Settings& settings, User& user, LoopStoreCounters& counters, uint64_t seed)
    : index_(index),
      name_(target.ToString()),
      user_(user),
      breaker_(settings.breaker, seed),
      clock_watch_(settings.clock_memory) {
  base::Random seeds(seed);
  for (uint32_t i = 0; i < settings.connections; ++i) {
    links_.push_back(
        std::make_unique<Link>(loop, target, settings.stream, settings.tls, settings.connection,
                               static_cast<Connection::User&>(*this), counters, seeds.Next()));
  }
}

void Shard::Start(base::BootTime now) {
  for (const auto& link : links_) link->Start(now);
}

void Shard::Send(PendingCall& call, base::BootTime now) {
  call.shard = index_;
  call.link = 0;
  for (uint32_t i = 1; i < links_.size(); ++i) {
    const Connection& best = connection(call.link);
    const Connection& other = connection(i);
    const bool readier =
        other.state() == Connection::State::kReady && best.state() != Connection::State::kReady;
    const bool freer = other.state() == best.state() &&
                       other.in_flight() + other.waiting() < best.in_flight() + best.waiting();
    if (readier || freer) call.link = i;
  }
  links_[call.link]->Send(call, now);
}

void Shard::SendOver(uint32_t link, PendingCall& call, base::BootTime now) {
  call.shard = index_;
  call.link = link;
  links_[link]->Send(call, now);
}

void Shard::Retire(const PendingCall& call, const absl::Status& why, base::BootTime now) {
  links_[call.link]->Retire(why, now);
}

void Shard::Restart(base::BootTime now) {
  was_replica_ = false;
  for (const auto& link : links_)
    link->Retire(absl::CancelledError("the server's role may have changed"), now);
}

void Shard::Rest(base::BootTime now) {
  for (const auto& link : links_) link->Rest(now);
}

void Shard::Pause(const absl::Status& why, base::BootTime now) {
  paused_ = why;
  paused_until_ = now + kPause;
}

const absl::Status& Shard::PausedAt(base::BootTime now) {
  if (!paused_.ok() && now >= paused_until_) paused_ = absl::OkStatus();
  return paused_;
}

const absl::Status& Shard::StatusOf(ConnectionEvent event) {
  absl::Status& status = statuses_[static_cast<size_t>(event)];
  if (status.ok()) {
    std::string text = fmt::format("store redis {}: {}", name_, Sentence(event));
    const bool about_connection =
        event == ConnectionEvent::kConnectRefused || event == ConnectionEvent::kStoreRefused;
    if (about_connection && !down_.ok()) text += fmt::format(": {}", std::string(down_.message()));
    const bool denied = about_connection && down_.code() == absl::StatusCode::kPermissionDenied;
    status = absl::Status(denied ? down_.code() : ActionFor(event).status, text);
  }
  return status;
}

bool Shard::ready() const {
  return std::any_of(links_.begin(), links_.end(), [](const auto& link) {
    return link->connection().state() == Connection::State::kReady;
  });
}

bool Shard::at_rest() const {
  return std::all_of(links_.begin(), links_.end(),
                     [](const auto& link) { return link->connection().at_rest(); });
}

void Shard::OnReply(PendingCall& call, const wire::RespValue& reply, base::BootTime now) {
  user_.OnReply(*this, call, reply, now);
}

void Shard::OnFailed(PendingCall& call, ConnectionEvent event, base::BootTime now) {
  user_.OnFailed(*this, call, event, now);
}

void Shard::OnReplicationInfo(uint32_t link, std::string_view info, base::BootTime now) {
  ServerIdentity identity = IdentityIn("", info);
  identity.run = connection(link).facts().identity.run;
  was_replica_ = !identity.primary;
  user_.OnIdentity(*this, identity, now);
}

void Shard::OnFacts(const ServerFacts& facts, base::BootTime now) {
  was_replica_ = !facts.identity.primary;
  if (std::exchange(run_, facts.identity.run) != facts.identity.run) clock_watch_.Reset();
  user_.OnIdentity(*this, facts.identity, now);
  user_.OnFacts(*this, facts, now);
}

void Shard::OnReady(base::BootTime now) { user_.OnReady(*this, now); }

void Shard::OnDown(const absl::Status& why, base::BootTime now) {
  down_ = why;
  statuses_[static_cast<size_t>(ConnectionEvent::kConnectRefused)] = absl::OkStatus();
  statuses_[static_cast<size_t>(ConnectionEvent::kStoreRefused)] = absl::OkStatus();
  user_.OnDown(*this, why, now);
}

}  // namespace headgate::store::redis
