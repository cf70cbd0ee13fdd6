#include "tests/simulation/server.h"

#include <set>

#include <fmt/format.h>

#include "headgate/algorithm/decide.h"
#include "headgate/algorithm/token_bucket.h"

namespace headgate::simulation {

using base::Duration;
using base::Instant;
using store::ParseBucket;
using wire::RespValue;

RespValue Server::Run(std::string_view script, const std::vector<std::string>& parts, Duration at) {
  if (mutant_) {
    auto [it, is_new] = mutated_.try_emplace(script);
    if (is_new) it->second = Mutate(mutant_, script);
    script = it->second;
  }
  std::vector<std::string_view> arguments(parts.begin() + 1, parts.end());
  if (mutant_ == Mutant::kChangeForgetsLeases && arguments.size() == 5) {
    constexpr size_t kLeaseBytes = 32;
    if (const auto found = ParseBucket(arguments[4]))
      arguments[4].remove_suffix(kLeaseBytes * found->leases.size());
  }
  RespValue reply = scripts_.Eval(keys_, Wall(at), script, parts[0], arguments);
  constexpr char kOtherLimit = 2;
  const bool other_limit =
      reply.kind == RespValue::Kind::kBulk && !reply.text.empty() && reply.text[0] == kOtherLimit;
  if (other_limit && mutant_ == Mutant::kChangeMints) {
    keys_.Run(std::vector<std::string>{"DEL", parts[0]}, Wall(at));
    reply = scripts_.Eval(keys_, Wall(at), script, parts[0], arguments);
  }
  return reply;
}

void Server::Become(uint64_t previous, Duration started) {
  identity_ = {
      .run = identity_.run + 1, .replication = identity_.replication + 1, .previous = previous};
  started_ = started;
}

void Server::FailOver(Duration at) {
  keys_ = replica_;
  Become(identity_.replication, at - std::chrono::hours(1));
}

void Server::Restart(bool from_file, Duration at) {
  if (from_file) {
    keys_ = replica_;
  } else {
    keys_.Clear();
    replica_.Clear();
  }
  Become(from_file ? identity_.replication : 0, at);
}

void Server::Move(Duration at) {
  ++shard_;
  Become(0, at - std::chrono::hours(1));
}

store::redis::ServerIdentity Server::identity(Duration at) const {
  store::redis::ServerIdentity identity = identity_;
  identity.age = at - started_;
  return identity;
}

std::string Server::ValueOf(redis_host::Keyspace& keys, const std::string& key, Duration at) const {
  RespValue reply = keys.Run(std::vector<std::string>{"GET", key}, Wall(at));
  if (!reply.is_error()) return std::move(reply.text);
  std::string value;
  reply = keys.Run(std::vector<std::string>{"LRANGE", key, "0", "-1"}, Wall(at));
  for (const RespValue& item : reply.items) value += item.text;
  return value;
}

std::vector<StoredLease> Server::Leases(const std::string& key, Duration at) {
  std::vector<StoredLease> leases;
  const auto found = Bucket(key, at);
  if (!found) return leases;
  for (const algorithm::Lease& lease : found->leases) {
    leases.push_back({.node = lease.id.node,
                      .number = lease.id.number,
                      .granted = lease.granted,
                      .reported = lease.reported,
                      .expires_at = lease.expires_at});
  }
  return leases;
}

std::optional<algorithm::LimitSpec> Server::LimitOf(const std::string& key, Duration at) {
  const auto found = Bucket(key, at);
  if (!found) return std::nullopt;
  return found->limit.spec();
}

algorithm::BucketState Server::State(const std::string& key, Duration at) {
  const auto found = Bucket(key, at);
  return found ? found->state : algorithm::BucketState{};
}

store::HitList Server::Hits(const std::string& key, Duration at) {
  const auto found = Bucket(key, at);
  return found ? found->hits : store::HitList();
}

uint64_t Server::Rest(const algorithm::Limit& limit, const std::string& key, Duration at) {
  uint64_t outstanding = 0;
  for (const StoredLease& lease : Leases(key, at)) {
    if (lease.expires_at > Wall(at)) outstanding += lease.granted - lease.reported;
  }
  algorithm::BucketState state = State(key, at);
  store::HitList hits = Hits(key, at);
  const uint64_t left = algorithm::Decide(limit, state, hits, 0, Wall(at)).remaining;
  return std::min(left, limit.capacity() - std::min(limit.capacity(), outstanding));
}

bool Server::IsOf(const algorithm::Limit& limit, const std::string& key, Duration at) {
  for (redis_host::Keyspace* keys : {&keys_, &replica_}) {
    const std::string value = ValueOf(*keys, key, at);
    if (value.empty()) continue;
    const auto found = ParseBucket(value);
    if (!found || found->limit.spec() != limit.spec()) return false;
  }
  return true;
}

std::string Server::Inspect(const std::string& key, Duration at) {
  const std::string value = ValueOf(keys_, key, at);
  if (value.empty()) return "";
  const auto found = ParseBucket(value);
  if (!found) return "the bucket cannot be read";
  std::set<std::pair<uint64_t, uint64_t>> ids;
  uint64_t outstanding = 0;
  for (const StoredLease& lease : Leases(key, at)) {
    if (!ids.emplace(lease.node, lease.number).second) {
      return fmt::format("lease #{} of node {} is stored twice", lease.number, lease.node);
    }
    if (lease.reported == algorithm::Lease::kEnded) continue;
    if (lease.reported > lease.granted) return "more was reported than granted";
    if (lease.expires_at > found->state.seen) outstanding += lease.granted - lease.reported;
  }
  const algorithm::Limit& limit = found->limit;
  const uint64_t owed = std::min(outstanding, limit.capacity());
  switch (limit.algorithm()) {
    case algorithm::Algorithm::kLeakyBucketQueue:
    case algorithm::Algorithm::kSlidingWindowLog:
      return outstanding > 0 ? "a bucket that keeps no leases has some" : "";
    case algorithm::Algorithm::kFixedWindow:
      if (found->state.count < outstanding) return "the count is below the leased requests";
      return "";
    case algorithm::Algorithm::kSlidingWindowCounter:
      if (static_cast<uint32_t>(found->state.edge) < outstanding)
        return "the count is below the leased requests";
      return "";
    default:
      if (Ahead(found->state, found->state.seen) < Price(limit, owed)) {
        return fmt::format("{} are outstanding, but the bucket has room for them", outstanding);
      }
      return "";
  }
}

}  // namespace headgate::simulation
