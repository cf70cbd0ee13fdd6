// Which history of its data each shard is in, judged by the reports of its servers, and which
// shards are learning. The data of a learning shard may lack leases that are still being spent, so
// nothing is decided there for as long as a lease can live. Pure: reports and the time come in,
// consequences go out.
//
//   what changed                                        what follows
//   the replication id of the same process, and the     the history continues
//     new id names no predecessor (a first replica
//     came, or a backlog was freed)
//   another process, younger than a lease can be:       learning until its start + ttl, the same
//     the server restarted                                on every node
//   a replica was promoted                              learning until first seen + ttl
//   another process that lived beside the last one:     learning until first seen + ttl
//     it replaced the server
//   back to a history that was seen before              nothing, so that two servers that answer
//                                                         in turn cause one term only
//
// At the same address, another process is taken for a restart of the last one, if its age allows
// that. At another address it never is: behind sentinels, a process that names the shard's history
// as its predecessor was promoted, whatever its age.
//
// A term is never extended: another change within a term adds nothing. The first process seen of a
// shard was promoted if it names a known history as its predecessor, and restarted if it is young
// and names an unknown one. Otherwise the process is new here, for example because a slot moved to
// it, or because this node is new.
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

// The report of a server under INFO server and INFO replication. An id is given by its first 8
// bytes; 0 means not reported.
struct ServerIdentity {
  uint64_t run = 0;          // run_id: the process
  uint64_t replication = 0;  // master_replid: the history
  // master_replid2: the history before a promotion, or before a restart from a file.
  uint64_t previous = 0;
  // The process is at least this old, and less than a second older. Servers count whole seconds
  // from the one in which they started.
  base::Duration age{0};
  bool primary = true;

  bool operator==(const ServerIdentity&) const = default;
};

// `server_info` and `replication_info` are the answers to INFO server and INFO replication. A field
// that cannot be read is 0.
ServerIdentity IdentityIn(std::string_view server_info, std::string_view replication_info);

using store::HistoryChange;

// Not thread-safe.
class ShardHistories {
 public:
  // `ttl` is the longest life of a lease.
  explicit ShardHistories(base::Duration ttl) : ttl_(ttl) {}

  // A server of `shard` reported its identity; `place` distinguishes its address from the others of
  // the shard. Returns the kind of change; its term may have begun, or be over already.
  HistoryChange OnSeen(uint32_t shard, const ServerIdentity& server, base::BootTime now,
                       uint32_t place = 0);

  // Nothing may be decided there before this time; nullopt if the shard is not learning.
  std::optional<base::BootTime> LearningUntil(uint32_t shard, base::BootTime now) const;

  // Call it when the shard is gone; another shard may get its number.
  void Forget(uint32_t shard) { shards_.erase(shard); }

 private:
  // Bounds per shard, and for all together; the oldest entries are forgotten first.
  static constexpr size_t kSeenMax = 8;
  static constexpr size_t kKnownMax = 4096;

  struct Seen {
    uint64_t run;
    uint64_t replication;
  };
  struct Shard {
    std::deque<Seen> seen;
    base::BootTime heard_at{0};  // when the last of them reported
    uint32_t place = 0;          // where it answered
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
