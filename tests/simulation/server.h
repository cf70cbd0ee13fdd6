// The store of a simulated fleet: one Redis server's keyspace with the production scripts, a
// replica that lags behind, a wall clock that can be set, and access to every stored bucket for the
// checks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/algorithm/bucket.h"
#include "headgate/algorithm/limit.h"
#include "headgate/base/time.h"
#include "headgate/store/bucket_codec.h"
#include "headgate/store/hit_list.h"
#include "headgate/store/redis/shard_histories.h"
#include "headgate/wire/resp_reader.h"
#include "tests/redis/keyspace.h"
#include "tests/redis/script_host.h"
#include "tests/simulation/faults.h"

namespace headgate::simulation {

// A lease as stored in a bucket.
struct StoredLease {
  uint64_t node;
  uint64_t number;
  uint64_t granted;
  uint64_t reported;
  base::Instant expires_at;
};

class Server {
 public:
  // `scripts` runs the scripts, in Lua or as their C++ twins.
  Server(redis_host::ScriptHost& scripts, std::optional<Mutant> mutant, base::Instant start)
      : scripts_(scripts), mutant_(mutant), start_(start) {}

  base::Instant Wall(base::Duration at) const { return start_ + at + step_; }
  void StepClock(base::Duration by) { step_ += by; }

  wire::RespValue Run(std::string_view script, const std::vector<std::string>& parts,
                      base::Duration at);

  // Copies the server's state to the replica.
  void Replicate() { replica_ = keys_; }
  // The replica becomes the server.
  void FailOver(base::Duration at);
  // The server restarts as another process, with the replica's state (in place of a file) or empty.
  void Restart(bool from_file, base::Duration at);
  // A first replica is attached: the same process begins a history that continues the last one.
  void AttachReplica() {
    ++identity_.replication;
    identity_.previous = 0;
  }
  // All keys move to another shard, with their contents.
  void Move(base::Duration at);
  void Flush() { keys_.Clear(); }

  // The identity that the server reports.
  store::redis::ServerIdentity identity(base::Duration at) const;
  uint32_t shard() const { return shard_; }
  bool Contains(const std::string& key, base::Duration at) { return keys_.Contains(key, Wall(at)); }

  // The limit that last decided an existing bucket.
  std::optional<algorithm::LimitSpec> LimitOf(const std::string& key, base::Duration at);
  // The leases in a bucket, expired ones included.
  std::vector<StoredLease> Leases(const std::string& key, base::Duration at);
  // The bucket's state; a fresh one if there is none.
  algorithm::BucketState State(const std::string& key, base::Duration at);
  // The remembered hits of a log.
  store::HitList Hits(const std::string& key, base::Duration at);
  // The requests left in the shared bucket.
  uint64_t Rest(const algorithm::Limit& limit, const std::string& key, base::Duration at);
  // Whether the bucket is one of this limit or missing, on the server and the replica.
  bool IsOf(const algorithm::Limit& limit, const std::string& key, base::Duration at);
  // Describes a violated invariant of the bucket; empty if there is none: tokens + Σ outstanding ≤
  // capacity, and no lease is stored twice.
  std::string Inspect(const std::string& key, base::Duration at);

 private:
  // The value of a key, for a log its header and hits joined; empty if there is none.
  std::string ValueOf(redis_host::Keyspace& keys, const std::string& key, base::Duration at) const;
  std::optional<store::StoredBucket> Bucket(const std::string& key, base::Duration at) {
    return store::ParseBucket(ValueOf(keys_, key, at));
  }

  redis_host::ScriptHost& scripts_;
  const std::optional<Mutant> mutant_;
  const base::Instant start_;
  base::Duration step_{0};
  redis_host::Keyspace keys_;
  redis_host::Keyspace replica_;
  void Become(uint64_t previous, base::Duration started);

  // Never used again for another process or history.
  store::redis::ServerIdentity identity_{.run = 1, .replication = 1};
  base::Duration started_ = -std::chrono::hours(1);
  uint32_t shard_ = 0;
  std::map<std::string_view, std::string> mutated_;
};

}  // namespace headgate::simulation
