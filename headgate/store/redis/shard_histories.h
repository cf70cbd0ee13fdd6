// Which history of its data each shard is in, by what its servers say of themselves, and which
// shards are learning: what they have may lack leases that are still being spent, so that for as
// long as a lease can live nothing is decided there. Pure: what a server said and the time come in,
// what follows goes out.
//
//   - the replication id of the same process changed, which names none before it (a first replica
//   came, a backlog was
//     freed): the history continues
//   - another process, younger than a lease can be, restarted: learning until its start + ttl, the
//   same on every node
//   - a replica was promoted: learning until first seen + ttl
//   - another process, which lived beside the last one, replaced it: learning until first seen +
//   ttl
//   - a history that was seen before: nothing, so that two servers that answer in turn teach one
//   term in all
//
// At one address another process is a restart of the last one if it may be. At another address it
// is none: behind sentinels, a process that names the history of its shard as its own before was
// promoted, however old it is.
//
// A term is never extended: a change within one teaches nothing more. Who is the first that is seen
// of a shard was promoted if it names a known history as its own before, and restarted if it is
// young and names any; else it is new here, as after a slot moved to it, or this node is.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "headgate/base/clock.h"
#include "headgate/base/time.h"
#include "headgate/store/store_listener.h"

namespace headgate::store::redis {

// What a server says of itself under INFO server and INFO replication. Of ids the first 8 bytes; 0:
// it does not say.
struct ServerIdentity {
  uint64_t run = 0;          // run_id: the process
  uint64_t replication = 0;  // master_replid: the history
  uint64_t previous = 0;     // master_replid2: the one that it followed before it was promoted, or
                             // restarted from a file
  // The process is at least so old, and less than a second older. Servers count whole seconds since
  // the one in which they started.
  base::Duration age{0};
  bool primary = true;

  bool operator==(const ServerIdentity&) const = default;
};

// `server_info` is the answer to INFO server, `replication_info` that to INFO replication. What
// cannot be read is 0.
ServerIdentity IdentityIn(std::string_view server_info, std::string_view replication_info);

using store::HistoryChange;

// Not thread-safe.
class ShardHistories {
 public:
  // `ttl`: the longest life of a lease.
  explicit ShardHistories(base::Duration ttl) : ttl_(ttl) {}

  // A server of `shard` said who it is; `place` tells its address from the shard's others. Returns
  // what that means for what is decided there: the term may have begun, or already be over.
  HistoryChange OnSeen(uint32_t shard, const ServerIdentity& server, base::BootTime now,
                       uint32_t place = 0);

  // Nothing is decided there before; nothing where it is not learning.
  std::optional<base::BootTime> LearningUntil(uint32_t shard, base::BootTime now) const;

  // It is no more; its number may be another's.
  void Forget(uint32_t shard) { shards_.erase(shard); }

 private:
  // Of each shard, and of all together; the oldest are forgotten first.
  static constexpr size_t kSeenMax = 8;
  static constexpr size_t kKnownMax = 4096;

  struct Seen {
    uint64_t run;
    uint64_t replication;
  };
  struct Shard {
    std::deque<Seen> seen;
    base::BootTime heard_at{0};  // from the last of them,
    uint32_t place = 0;          // which answered there
    base::BootTime learning_until{0};
  };
  struct Known {
    uint64_t replication;
    uint32_t shard;
  };

  HistoryChange ChangeOf(const Shard& shard, const ServerIdentity& server, const Known* followed,
                         base::BootTime now, uint32_t place) const;
  const Known* Find(uint64_t replication) const;
  void Remember(uint64_t replication, uint32_t shard);

  const base::Duration ttl_;
  std::map<uint32_t, Shard> shards_;
  std::deque<Known> known_;
};

}  // namespace headgate::store::redis
