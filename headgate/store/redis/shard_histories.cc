#include "headgate/store/redis/shard_histories.h"

#include <algorithm>
#include <charconv>

#include "headgate/store/redis/info_text.h"

namespace headgate::store::redis {
namespace {

using base::BootTime;
using base::Duration;

uint64_t IdIn(std::string_view info, std::string_view name) {
  const std::string_view text = InfoField(info, name).substr(0, 16);
  uint64_t id = 0;
  std::from_chars(text.data(), text.data() + text.size(), id, 16);
  return id;
}

int64_t NumberIn(std::string_view info, std::string_view name) {
  const std::string_view text = InfoField(info, name);
  int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  // A century; sums stay far inside 63 bits.
  return std::clamp<int64_t>(number, 0, 3'155'760'000);
}

// uptime_in_seconds is the whole second of now minus the whole second of the start, so the start is
// known to the second. server_time_usec, if reported, gives the fraction of the current second.
Duration AgeIn(std::string_view info) {
  const std::string_view usec = InfoField(info, "server_time_usec");
  const std::string_view fraction =
      usec.size() > 6 ? usec.substr(usec.size() - 6) : std::string_view();
  int64_t into_second = 0;
  std::from_chars(fraction.data(), fraction.data() + fraction.size(), into_second);
  const Duration age = std::chrono::seconds(NumberIn(info, "uptime_in_seconds") - 1) +
                       std::chrono::microseconds(std::clamp<int64_t>(into_second, 0, 999'999));
  return std::max(age, Duration(0));
}

}  // namespace

ServerIdentity IdentityIn(std::string_view server_info, std::string_view replication_info) {
  return {.run = IdIn(server_info, "run_id"),
          .replication = IdIn(replication_info, "master_replid"),
          .previous = IdIn(replication_info, "master_replid2"),
          .age = AgeIn(server_info),
          .primary = InfoField(replication_info, "role") != "slave"};
}

HistoryChange ShardHistories::OnSeen(uint32_t index, const ServerIdentity& server, BootTime now,
                                     uint32_t place) {
  // Remembers the history that a replica follows: the replica may be promoted.
  if (!server.primary) {
    Remember(server.replication, index);
    return HistoryChange::kNone;
  }
  Shard& shard = shards_[index];
  const bool seen = std::any_of(shard.seen.begin(), shard.seen.end(), [&](const Seen& one) {
    return one.run == server.run && one.replication == server.replication;
  });
  if (seen) {
    shard.heard_at = now;
    shard.place = place;
    return HistoryChange::kNone;
  }
  const Known* followed = server.previous != 0 ? Find(server.previous) : nullptr;
  const HistoryChange change = ChangeOf(shard, server, followed, now, place);
  if (change != HistoryChange::kNone && now >= shard.learning_until) {
    BootTime until =
        now +
        (change == HistoryChange::kRestarted ? std::max(ttl_ - server.age, Duration(0)) : ttl_);
    // The history that the promoted server followed may be learning itself; its term is not
    // extended either.
    if (followed != nullptr && change == HistoryChange::kPromoted) {
      until = std::min(until, LearningUntil(followed->shard, now).value_or(until));
    }
    shard.learning_until = until;
  }
  shard.seen.push_back({.run = server.run, .replication = server.replication});
  if (shard.seen.size() > kSeenMax) shard.seen.pop_front();
  shard.heard_at = now;
  shard.place = place;
  Remember(server.replication, index);
  return change;
}

HistoryChange ShardHistories::ChangeOf(const Shard& shard, const ServerIdentity& server,
                                       const Known* followed, BootTime now, uint32_t place) const {
  const auto has = [&](auto matches) {
    return std::any_of(shard.seen.begin(), shard.seen.end(), matches);
  };
  if (has([&](const Seen& one) { return one.run == server.run; })) {
    return server.previous == 0 ? HistoryChange::kNone : HistoryChange::kPromoted;
  }
  // A restart from a file names the previous history, as a promotion does. But a restarted process
  // names the history of its own shard, at its own address.
  const bool own = has([&](const Seen& one) { return one.replication == server.previous; });
  if (followed != nullptr && (!own || place != shard.place)) return HistoryChange::kPromoted;
  const bool first = shard.seen.empty();
  if (server.age < ttl_)
    return first && server.previous == 0 ? HistoryChange::kNone : HistoryChange::kRestarted;
  // The last process reported when this one was already running, so this is not a restart.
  if (!first && server.age > now - shard.heard_at) {
    return own ? HistoryChange::kPromoted : HistoryChange::kReplaced;
  }
  return HistoryChange::kNone;
}

std::optional<BootTime> ShardHistories::LearningUntil(uint32_t index, BootTime now) const {
  const auto shard = shards_.find(index);
  if (shard == shards_.end() || now >= shard->second.learning_until) return std::nullopt;
  return shard->second.learning_until;
}

const ShardHistories::Known* ShardHistories::Find(uint64_t replication) const {
  const auto known = std::find_if(known_.rbegin(), known_.rend(),
                                  [&](const Known& one) { return one.replication == replication; });
  return known != known_.rend() ? &*known : nullptr;
}

void ShardHistories::Remember(uint64_t replication, uint32_t shard) {
  if (replication == 0 || Find(replication) != nullptr) return;
  known_.push_back({.replication = replication, .shard = shard});
  if (known_.size() > kKnownMax) known_.pop_front();
}

}  // namespace headgate::store::redis
